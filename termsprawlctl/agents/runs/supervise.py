"""The process between us and a CLI: it alone starts it, and stays until nothing of it lives.

It is a process of its own because ours may be killed at any time: one MCP client sends
SIGKILL ten milliseconds after SIGTERM. It speaks over a socket:
    in   the order (see encode_order); after it, any byte and the end of the input both
         mean: end the run. Bytes that end in DISMISSED: its files are removed, go
    out  one line each: `pid N`, `error ERRNO` if it cannot be started, `exit STATUS`
         (negative: the signal), `running PID COMMAND` for each process that outlived a CLI which
         ended by itself, `left N` processes that could not be ended
Descriptors 0, 1 and 2 and the environment are the CLI's own. The CLI starts only when this
has started, so it imports little: no json, no socket, no subprocess.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
import time

from ...base.processtable import Family, adopt_orphans, command_line_of, send_to_group
from ...base.waiting import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json


# Commands of the agent that outlive it get this long after SIGTERM.
OUTLIVED_GRACE_S = 0.5
OUTLIVED_LIMIT_S = 5.0
HELPERS_S = 0.25
MAX_NAMED, MAX_COMMAND = 20, 400
READ_BYTES = 65536
DISMISSED = b"."
SIZE_BYTES = 4  # before an order, big-endian
# Python ignores the first two for itself.
DEFAULT_AGAIN = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


def encode_order(order: Json) -> bytes:
    """The order as it goes over the socket. Both ends are the same Python, so marshal does.

    argv (its first an absolute path), cwd, marker, stop_signals ([(signal name, seconds)]), keep (whether
    processes that outlive the CLI may go on),
    remove (trees to delete) and empty (directories to delete if empty) when nobody is
    left to do it, and held: descriptors to keep open until then, and from the CLI.
    """
    data = marshal.dumps(order)
    return len(data).to_bytes(SIZE_BYTES, "big") + data


class Supervisor:
    """One run."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._pid = 0
        self._status: int | None = None
        self._is_ending = False
        self._alone = False  # whoever ordered the run is gone

    def run(self) -> None:
        """The whole life of a run."""
        self._listen_to_signals()
        order = self._read_order()
        if order is None:
            return
        for descriptor in order["held"]:
            os.set_inheritable(descriptor, False)
        adopt_orphans()
        self._pid = self._start(order)
        self._say(f"pid {self._pid}")
        family = Family(os.getpid(), order["marker"])
        self._wait(None)
        if self._status is None:
            _look_at(family)
            self._ask(order["stop_signals"])
        self._say(f"exit {-signal.SIGKILL if self._status is None else self._status}")
        if not self._is_ending:
            self._name_running(family)
        keep = order["keep"] and not self._is_ending
        left = 0 if keep else family.end(OUTLIVED_GRACE_S, OUTLIVED_LIMIT_S, self._reap)
        self._say(f"left {left}")
        # Whoever ordered the run removes its files, and may be killed before that is done.
        if not self._is_dismissed():
            _clean(order)

    def _name_running(self, family: Family) -> None:
        """Tell of what outlived the CLI, whose own helpers take a moment to follow it."""
        deadline = time.monotonic() + HELPERS_S
        running = _look_at(family)
        while running and time.monotonic() < deadline:
            time.sleep(HELPERS_S / 5)
            self._reap()
            running = _look_at(family)
        for pid in sorted(running)[:MAX_NAMED]:
            try:
                words = " ".join(command_line_of(pid)).replace("\n", " ")
            except OSError:
                words = "(its command cannot be read)"
            if words:
                self._say(f"running {pid} {words[:MAX_COMMAND]}")

    def _listen_to_signals(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that it wakes the wait

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._is_ending = True

    def _read_order(self) -> Json | None:
        size = self._read_exactly(SIZE_BYTES)
        data = size and self._read_exactly(int.from_bytes(size, "big"))
        return marshal.loads(data) if data else None  # noqa: S302 - from the process that started this one

    def _read_exactly(self, size: int) -> bytes:
        """So many bytes, and none of what follows: it may be the word to end. b"" where the input ends before."""
        data = b""
        while len(data) < size:
            piece = self._read(size - len(data))
            if not piece:
                return b""
            data += piece
        return data

    def _start(self, order: Json) -> int:
        """Start the CLI in a session of its own; returns its process."""
        try:
            started, starting = os.pipe()
            pid = os.fork()
        except OSError as error:
            self._say(f"error {error.errno}")
            self._status = 127
            return 0
        if pid == 0:
            try:
                os.close(started)
                os.setsid()
                for number in DEFAULT_AGAIN:
                    signal.signal(number, signal.SIG_DFL)
                os.chdir(order["cwd"])
                os.execv(order["argv"][0], order["argv"])  # noqa: S606 - an argv list, never a shell
            except OSError as error:
                self._say(f"error {error.errno}")
            finally:
                os._exit(127)
        # The child says itself why it could not start; the socket closes when it does. Its end of the pipe
        # does when it runs the CLI: before, it has no group to be signalled, or takes signals for its own.
        os.close(starting)
        os.read(started, 1)
        os.close(started)
        return pid

    def _wait(self, seconds: float | None) -> None:
        """Until the CLI has ended, or is to be ended; at most so many seconds where given."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            self._reap()
            if self._status is not None or (deadline is None and self._is_ending):
                return
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            watched = [self._wake_read] if self._is_ending else [self._wake_read, self._control]
            ready = readable(watched, left)
            if self._wake_read in ready:
                self._swallow()
            if self._control in ready:
                self._alone = not self._read()
                self._is_ending = True

    def _ask(self, stop_signals: list[tuple[str, float]]) -> None:
        """Ask the CLI's group to end, as it likes it, then make it."""
        for name, seconds in [*stop_signals, ("SIGKILL", OUTLIVED_LIMIT_S)]:
            if self._status is None:
                send_to_group(self._pid, getattr(signal, name))
                send_to_group(self._pid, signal.SIGCONT)
                self._wait(seconds)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _swallow(self) -> None:
        try:
            os.read(self._wake_read, READ_BYTES)
        except BlockingIOError:
            return

    def _read(self, size: int = READ_BYTES) -> bytes:
        try:
            return os.read(self._control, size)
        except ConnectionError:
            return b""

    def _say(self, message: str) -> None:
        try:
            os.write(self._control, message.encode() + b"\n")
        except (BrokenPipeError, ConnectionError):
            self._alone = True

    def _is_dismissed(self) -> bool:
        """Wait until the one who ordered the run has removed its files, or is gone."""
        heard = b""
        while not (self._alone or heard.endswith(DISMISSED)):
            piece = self._read()
            heard += piece
            self._alone = not piece
        return not self._alone


def _look_at(family: Family) -> list[int]:
    try:
        return family.look()
    except OSError:
        return []  # for want of descriptors; end() looks again


def _clean(order: Json) -> None:
    """Remove what the one who ordered the run can no longer remove."""
    for path in order["remove"]:
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    for path in order["empty"]:
        try:
            os.rmdir(path)
        except OSError:
            continue  # it holds the agent's work


def main() -> None:
    """`python -c … DESCRIPTOR`: serve the order that comes over this socket."""
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    Supervisor(control).run()
