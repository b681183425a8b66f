"""Something that another real user of the machine does: uid 65534, in a process of its own.

Forked and not started: the interpreter that runs the tests may lie where that user cannot go.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

STRANGER = 65534
HOST = "127.0.0.1"


class Other:
    """`action(say)` as another user; `lines` is what it says, one text a line. Ended at the latest with the block."""

    def __init__(self, action) -> None:
        reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                os.close(reader)
                os.setgroups([])
                os.setgid(STRANGER)
                os.setuid(STRANGER)
                action(lambda text: os.write(writer, text.encode() + b"\n"))
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        self.lines = os.fdopen(reader)
        self._status: int | None = None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._wait()
        self.lines.close()

    def said(self) -> list[str]:
        """Everything, once it has ended; a fault of the action itself fails the test."""
        lines = self.lines.read().splitlines()
        assert self._wait() == 0
        return lines

    def _wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


def prowl(paths: list[str]) -> list[str]:
    """What another user gets done with these paths: read, listed, wrote, added, removed, connected."""

    def action(say) -> None:
        for path in paths:
            for what, attempt in _ATTEMPTS.items():
                with contextlib.suppress(OSError):
                    attempt(path)
                    say(f"{what} {path}")

    with Other(action) as other:
        return other.said()


def _opened(flags: int):
    return lambda path: os.close(os.open(path, flags | os.O_NONBLOCK))


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)


_ATTEMPTS = {
    "read": _opened(os.O_RDONLY),
    "wrote": _opened(os.O_WRONLY),
    "listed": os.listdir,
    "entered": lambda path: os.stat(os.path.join(path, ".")),
    "added": lambda path: os.mkdir(os.path.join(path, "planted")),
    "removed": os.unlink,
    "connected": _connect,
}


def listen(say) -> None:
    """An action: listens on a port, says it, then what each connection sends first; answers yes to everything."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(5)
        say(str(listener.getsockname()[1]))
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.settimeout(10)
                say(repr(peer.recv(65536)))
                peer.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"ok":true}')


def ask(port: int, heads: list[str]):
    """An action: posts to /call with each of these fields; says the statuses."""

    def action(say) -> None:
        for head in heads:
            with socket.socket() as peer:
                peer.settimeout(10)
                peer.connect((HOST, port))
                peer.sendall(f"POST /call HTTP/1.1\r\n{head}content-length: 2\r\n\r\n{{}}".encode())
                say(peer.recv(65536).split()[1].decode())

    return action
