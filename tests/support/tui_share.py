"""A running `termsprawlctl tui share`, and raw requests to one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import uuid
from pathlib import Path

from .waiting import PATIENCE_S, until


class RunningShare:
    """The process, its output line by line, and what it shares."""

    def __init__(self, argv: list[str], env: dict) -> None:
        self.process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=lambda: self.out.extend(self.process.stdout), daemon=True),
            threading.Thread(target=lambda: self.err.extend(self.process.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        until(lambda: self.out or self.process.poll() is not None, "the share says where it is")
        assert self.out, "".join(self.err)
        assert self.out[0].startswith("TUIMCP on: ")
        assert self.out[0].endswith("  [Revoke]\n")
        self.path = self.out[0][len("TUIMCP on: ") : -len("  [Revoke]\n")]
        self.folder = Path(self.path).parent
        self.members = json.loads(Path(self.path).read_text())

    def context(self) -> dict:
        """What the view is now."""
        answer = ask(self.path, {"operation": "get_view_context"})
        assert answer["status"] == "context", answer
        return answer["context"]

    def quiet_context(self) -> dict:
        """The view once the user has been left alone for long enough."""
        seen: list[dict] = []
        until(lambda: seen.append(self.context()) or not seen[-1]["blocked"], "the user is quiet")
        return seen[-1]

    def select(self, session_id: str, **other) -> dict:
        """Ask for a session, with what a fresh context says unless `other` has it."""
        return ask(self.path, select_request(other.pop("context", None) or self.context(), session_id, **other))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; returns the exit status."""
        status = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        text = "".join(self.out + self.err)
        assert self.members["token"] not in text
        assert "Traceback" not in text
        return status


def select_request(context: dict, session_id: str, **other) -> dict:
    """A select_session request for what `context` says."""
    return {
        "operation": "select_session",
        "requestId": str(uuid.uuid4()),
        "instanceId": context["instanceId"],
        "generation": context["generation"],
        "expectedRevision": context["revision"],
        "sessionId": session_id,
        **other,
    }


def dial(path: str) -> socket.socket:
    """A connection to the share whose endpoint.json is at `path`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(PATIENCE_S)
    try:
        sock.connect(os.path.join(os.path.dirname(path), "s"))
    except OSError:
        sock.close()
        raise
    return sock


def frame(path: str, request: object, **other) -> bytes:
    """A whole frame with the share's token, or what `other` has instead of it."""
    token = json.loads(Path(path).read_text())["token"]
    return json.dumps({"token": token, "request": request, **other}).encode() + b"\n"


def ask(path: str, request: object, **other) -> dict:
    """One request in one connection; the answer's line, parsed."""
    return exchange(path, frame(path, request, **other))


def exchange(path: str, data: bytes) -> dict:
    """Send bytes and take the one line that comes back before the server closes."""
    with dial(path) as sock:
        sock.sendall(data)
        return one_line(sock)


def one_line(sock: socket.socket) -> dict:
    """The server's one line; fails unless it then closes."""
    received = everything(sock)
    assert received.endswith(b"\n"), received
    assert received.count(b"\n") == 1, received
    return json.loads(received)


def everything(sock: socket.socket) -> bytes:
    """All bytes until the server closes."""
    received = b""
    while True:
        chunk = sock.recv(65536)
        if not chunk:
            return received
        received += chunk
