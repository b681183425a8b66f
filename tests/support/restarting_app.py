"""A quick stand-in for the app, a process of its own that is started anew at every restart.

usage: restarting_app.py DATA_FOLDER INSTANCE JOURNAL

Listens on a new port, makes a new token, publishes both, says `ready` and answers until it is ended. Each answer
names the instance; each call's number goes to the journal (4 bytes, little-endian) before it is answered, so that a
call that was made twice is found even if the answer got lost.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


def text_of(number: int, size: int) -> str:
    """What terminal_read answers: `size` characters that only this number has."""
    unit = f"{number:x}|\u00e9 "
    return (unit * (size // len(unit) + 1))[:size]


def picture_of(number: int, size: int) -> str:
    """What browser_screenshot answers: base64 of about `size` bytes."""
    return base64.b64encode(PNG + str(number).encode() * (size // len(str(number)))).decode("ascii")


class RestartingApp:
    """The tests' side: `start()`, then `restart(how)`; the files lie under `data`."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._journal = data / "journal"
        self._process: subprocess.Popen | None = None
        self.number = 0  # of the instance that runs
        self.session = str(data / "agent-tools" / "sessions" / "agent-1.json")

    def start(self) -> None:
        self.number += 1
        self._process = subprocess.Popen(
            [sys.executable, "-ISB", __file__, self._data, str(self.number), self._journal],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout.readline() == b"ready\n"

    def restart(self, how: str) -> None:
        """How: "killed" whatever it does, "stopped" between two calls, "replaced" by one that is there before."""
        before = self._process
        if how == "replaced":
            self.start()
        before.send_signal(signal.SIGTERM if how == "stopped" else signal.SIGKILL)
        before.wait()
        before.stdout.close()
        if how != "replaced":
            self.start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def journal(self) -> list[int]:
        """The numbers of all calls that arrived, in order."""
        data = self._journal.read_bytes()
        return [number for (number,) in struct.iter_unpack("<I", data)]


def _publish(path: str, value: dict) -> None:
    with open(f"{path}.new", "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(value, file)
    os.replace(f"{path}.new", path)


def _request(sock: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(65536)
        if not chunk:
            raise ConnectionError
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        chunk = sock.recv(65536)
        if not chunk:
            raise ConnectionError
        body += chunk
    return head, body


def _answer(request: dict, instance: int, journal: int) -> dict:
    operation, args = request["operation"], request["args"]
    if operation == "session_info":
        return {"ok": True, "value": {"nodeId": "agent-1", "instanceId": str(instance), "operations": []}}
    number = int(args["nodeId"])
    os.write(journal, struct.pack("<I", number))
    if operation == "browser_screenshot":
        return {"ok": True, "value": {"nodeId": args["nodeId"], "image": picture_of(number, 3000)}}
    if operation == "terminal_close":
        return {"ok": False, "error": f"Unknown node: {number} ({instance})"}
    if operation == "terminal_interrupt":
        time.sleep(0.05)  # is under way when somebody hangs up, or the app is killed
    value = {"nodeId": args["nodeId"], "instance": instance}
    if operation == "terminal_read":
        value["output"] = text_of(number, args["maxChars"])
    return {"ok": True, "value": value}


def main() -> None:
    data, instance, journal = sys.argv[1:]
    folder = os.path.join(data, "agent-tools")
    os.makedirs(os.path.join(folder, "sessions"), exist_ok=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    token = secrets.token_hex(32)
    session = {"nodeId": "agent-1", "projectId": "p-1", "token": token, "status": {"state": "connected"}}
    _publish(os.path.join(folder, "sessions", "agent-1.json"), session)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/call"
    _publish(os.path.join(folder, "endpoint.json"), {"url": url, "instanceId": instance})
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: (ending.append(1), listener.close()))
    signal.siginterrupt(signal.SIGTERM, True)
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    bearer = f"authorization: bearer {token}".encode()
    os.write(1, b"ready\n")
    while not ending:
        try:
            sock, _ = listener.accept()
        except OSError:
            continue
        with sock:
            try:
                head, body = _request(sock)
                if bearer in head.lower():
                    status, result = "200 OK", _answer(json.loads(body), int(instance), descriptor)
                else:
                    status, result = "401 Unauthorized", {"ok": False, "error": "Unknown or revoked session"}
                answer = json.dumps(result, ensure_ascii=False).encode()
                sock.sendall(f"HTTP/1.1 {status}\r\ncontent-length: {len(answer)}\r\n\r\n".encode() + answer)
            except OSError:
                continue  # the client hung up


if __name__ == "__main__":
    main()
