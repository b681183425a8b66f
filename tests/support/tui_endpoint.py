"""Endpoints of the test's own making, and a server on one that says what it is told to."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from pathlib import Path

from termsprawlctl.share import wire

from .waiting import PATIENCE_S

TOKEN = "0123456789abcdef" * 4
INSTANCE = "11111111-1111-4111-8111-111111111111"
GENERATION = "22222222-2222-4222-8222-222222222222"
MEMBERS = {"version": 1, "instanceId": INSTANCE, "generation": GENERATION, "token": TOKEN}
VIEW = {
    "instanceId": INSTANCE,
    "generation": GENERATION,
    "revision": 3,
    "route": "session",
    "sessionId": "ses_a",
    "ready": True,
    "blocked": False,
}
CONTEXT = {"status": "context", "context": VIEW}
APPLIED = {"status": "applied", "context": VIEW}
SELECT = {
    "requestId": "44444444-4444-4444-8444-444444444444",
    "instanceId": INSTANCE,
    "generation": GENERATION,
    "expectedRevision": 3,
    "sessionId": "ses_a",
}


def changed(request: wire.SelectSession, **changes) -> wire.SelectSession:
    """The same request but for some of its fields."""
    fields = {name: getattr(request, name) for name in wire.SelectSession.__slots__}
    return wire.SelectSession(**{**fields, **changes})


class FakeEndpoint:
    """A private directory with endpoint.json and a listening socket, right in every way unless told otherwise."""

    def __init__(self, folder: Path, members: object = MEMBERS) -> None:
        self.folder = Path(os.path.realpath(folder)) / "e"
        self.folder.mkdir(mode=0o700)
        self.file = self.folder / "endpoint.json"
        self.path = str(self.file)
        self.write(members)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.folder / "s"))
        (self.folder / "s").chmod(0o600)
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE_S)
        self.requests: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._events: list[threading.Event] = []
        self._taken = threading.Event()  # set once the last serve() has its connection
        self._taken.set()

    def write(self, members: object) -> None:
        self.file.write_bytes(members if isinstance(members, bytes) else json.dumps(members).encode())
        self.file.chmod(0o600)

    def serve(self, *chunks: bytes | threading.Event) -> None:
        """Answer the next connection that no other serve() answers: bytes are sent, an Event is waited for."""
        before, self._taken = self._taken, threading.Event()
        taken = self._taken

        def talk() -> None:
            before.wait(PATIENCE_S)
            connection, _ = self.listener.accept()
            taken.set()
            with connection:
                connection.settimeout(PATIENCE_S)
                received = b""
                while not received.endswith(b"\n"):
                    chunk = connection.recv(65536)
                    if not chunk:
                        break
                    received += chunk
                self.requests.append(received)
                for chunk in chunks:
                    if isinstance(chunk, bytes):
                        # The client may have what it wants, or enough of it.
                        with contextlib.suppress(OSError):
                            connection.sendall(chunk)
                    else:
                        chunk.wait(PATIENCE_S)

        self._events += [chunk for chunk in chunks if not isinstance(chunk, bytes)]
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        self._threads.append(thread)

    def close(self) -> None:
        self.listener.close()
        for event in self._events:
            event.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
