"""One CLI process with its supervisor: started, listened to, ended."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys

from ...base.processes import find_program
from ...base.processtable import MARKER, Family
from ...base.program import for_children
from ...base.waiting import readable
from .supervise import DISMISSED, encode_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json


# The supervisor starts isolated, as the built file does, from the same file or folder.
BOOT = "import sys;sys.path.insert(0,sys.argv.pop(1));from termsprawlctl.agents.runs.supervise import main;main()"
ROOT = os.path.dirname(__file__).rpartition(os.path.join("", "termsprawlctl", ""))[0]
# Beyond what the stop_signals signals may take: SIGKILL for the CLI, and for what it left.
HARD_LIMIT_S = 12.0


def find_executable(name: str, path: str) -> str:
    """The absolute path of a program on a PATH; empty when it is not there."""
    return find_program(name, path) or ""


class Child:
    """A CLI that runs once go() has said so. `pid` is 0 and `failed_errno` set when it could not be started."""

    def __init__(self, order: Json, environment: dict[str, str], files: tuple[int, ...]) -> None:
        """Start its supervisor; the order is that of supervise.encode_order, `files` are its 0, 1 and 2.

        Raises OSError when that cannot be started.
        """
        self.pid = 0
        self.exit_status: int | None = None
        self.failed_errno = 0
        self.still_running: list[tuple[int, str]] = []  # what outlived it: pid, command line
        self.gone = False  # nothing of the run is alive any more
        self._ending = False
        self._marker = order["marker"]
        self._buffer = b""
        root, descriptors = for_children(ROOT)
        self._order = {**order, "held": [*order["held"], *descriptors]}
        ours, theirs = socket.socketpair()
        self._control = ours
        try:
            self._supervisor = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
                [sys.executable, "-ISB", "-c", BOOT, root, str(theirs.fileno())],
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                env={**environment, MARKER: self._marker},
                cwd="/",
                pass_fds=[theirs.fileno(), *self._order["held"]],
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()

    def go(self) -> None:
        """Have the CLI itself started, as soon as its supervisor is ready. Raises OSError."""
        self._control.sendall(encode_order(self._order))
        self._control.setblocking(False)

    def wait(self, seconds: float) -> None:
        """Until something is heard of the process, at most so long."""
        if self.gone:
            return
        if not readable([self._control.fileno()], seconds):
            return
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._supervisor_ended()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._hear(*line.decode("utf-8", "replace").split(" ", 1))

    def _hear(self, word: str, value: str) -> None:
        if word == "pid":
            self.pid = int(value)
        elif word == "error":
            self.failed_errno = int(value)
        elif word == "exit":
            self.exit_status = int(value)
        elif word == "running":
            pid, _, command = value.partition(" ")
            self.still_running.append((int(pid), command))
        elif word == "left":
            self.gone = True

    @property
    def ended(self) -> bool:
        """Whether the CLI itself has ended."""
        return self.exit_status is not None or self.gone

    def end(self) -> None:
        """Have the whole run ended; returns at once."""
        if not self._ending:
            self._ending = True
            try:
                self._control.send(b"end\n")
            except OSError:
                return  # it has ended, and wait() will see it

    def kill(self) -> None:
        """End the run without the supervisor's help; for one that does not answer."""
        if not self.gone:
            self._supervisor.kill()
            self._supervisor_ended()

    def close(self) -> None:
        """Dismiss the supervisor: the run's files are removed. If the run goes on, it is ended."""
        with contextlib.suppress(OSError):
            self._control.send(DISMISSED)
        self._control.close()
        self._reap()

    def _supervisor_ended(self) -> None:
        """It has closed its socket before it was dismissed: it was killed, so the run is not ended yet."""
        self.gone = True
        self._reap()
        Family(self._supervisor.pid, self._marker).end(0.2, HARD_LIMIT_S, lambda: None)
        if self.exit_status is None:
            self.exit_status = -9

    def _reap(self) -> None:
        try:
            self._supervisor.wait(HARD_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
