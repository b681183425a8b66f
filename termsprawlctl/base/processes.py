"""Child processes: always with a closed stdin and a deadline, or fully on their own."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from .errors import CtlError
from .processtable import kill_group
from .waiting import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

_LOOK_S = 0.02  # how often a child is asked whether it has ended
_READ_BYTES = 64 << 10  # what a pipe holds
_CANNOT_RUN = "Check the program and the limits (ulimit -a)."


class Completed:
    """What a child left: status (negative: the signal that killed it) and both outputs as bytes."""

    __slots__ = ("status", "stderr", "stdout")

    def __init__(self, status: int, stdout: bytes, stderr: bytes) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of an executable: `name` itself where it has a slash, else by `path` (default: PATH).

    Only absolute folders on a PATH count. An empty one, "." and the like mean another
    program in every folder, one of a project that somebody else made for example.
    """
    path = os.environ.get("PATH", os.defpath) if path is None else path
    for folder in [""] if os.sep in name else filter(os.path.isabs, path.split(os.pathsep)):
        candidate = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def run(
    argv: list[str],
    *,
    stdin: bytes = b"",
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
    with_its_own: bool = False,
    when_late: str = "",
    inherited: tuple[int, ...] = (),
) -> Completed:
    """Run a child to its end; `stdin` is all that it can read. argv[0] is found by find_program().

    `with_its_own`: whatever ends this, nothing of the child's process group goes on.
    `when_late`: what to do when it does not end in time. `inherited`: descriptors that it gets.
    Raises CtlError when it cannot be started or takes longer than timeout_s (it is then
    killed).
    """
    pipe = subprocess.PIPE
    program = argv[0]
    if os.sep not in program:
        found = find_program(program, (os.environ if environment is None else environment).get("PATH"))
        if found is None:
            raise CtlError(f"cannot run {argv[0]}: it is not installed, or not on PATH.", "Install it.")
        program = found
    try:
        child = start(
            [program, *argv[1:]],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd=cwd,
            start_new_session=with_its_own,
            pass_fds=inherited,
        )
    except OSError as error:
        raise CtlError(f"cannot run {argv[0]}: {error.strerror}.", _CANNOT_RUN) from None
    with child:
        try:
            raise_if_signalled()
            out, err = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            raise CtlError(f"{argv[0]} did not finish within {timeout_s:g} s.", when_late) from None
        except BaseException:
            child.kill()
            raise
        finally:
            if with_its_own:
                kill_group(child.pid)
    return Completed(child.returncode, out, err)


def start(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a child; what ends an Interruptible block waits until raise_if_signalled().

    That is to be called first by the code that would end the child. Raises OSError.
    """
    guard = Interruptible.in_force
    if guard is None:
        return subprocess.Popen(argv, **options)  # noqa: S603 - an argv list, never a shell
    guard.is_starting = True
    try:
        return subprocess.Popen(argv, **options)  # noqa: S603 - an argv list, never a shell
    except BaseException:
        guard.is_starting = False
        raise


def raise_if_signalled() -> None:
    """Raise KeyboardInterrupt where a signal came while a child was being started."""
    guard = Interruptible.in_force
    if guard is not None:
        guard.is_starting = False
        if guard.received:
            raise KeyboardInterrupt


class Interruptible:
    """A `with` block that SIGTERM and SIGHUP end as Ctrl-C does, so that it ends its children first.

    Then the process ends by that signal. Only for the main thread.
    """

    in_force: Interruptible | None = None  # signals belong to the process

    def __init__(self) -> None:
        self.received = 0  # the signal
        self.is_starting = False  # a child, which nobody could end yet
        self._before: dict[int, Any] = {}
        self._outer: Interruptible | None = None

    def __enter__(self) -> None:
        self._outer, Interruptible.in_force = Interruptible.in_force, self
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        for number, handler in self._before.items():
            if handler is not signal.SIG_IGN:  # a caller that ignores one (nohup) means it
                signal.signal(number, self._end)

    def _end(self, number: int, _frame: object) -> None:
        self.received = number
        if not self.is_starting:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        Interruptible.in_force = self._outer
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.received:
            os.kill(os.getpid(), self.received)


def output_of(argv: list[str], *, timeout_s: float, max_bytes: int) -> bytes:
    """What a child prints on both outputs until it ends or the time is up, at most some max_bytes.

    Nothing of it goes on: it has a process group of its own, which is killed then. What
    it leaves running in the background is not waited for. Raises CtlError when it
    cannot be started.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise CtlError(f"cannot run {argv[0]}: {error.strerror}.", _CANNOT_RUN) from None
    output = bytearray()
    end_s = time.monotonic() + timeout_s
    pipe = child.stdout
    assert pipe is not None  # noqa: S101 - asked for above
    with child:
        try:
            os.set_blocking(pipe.fileno(), False)
            has_ended = False
            while not has_ended and len(output) < max_bytes:
                # Asked before reading, so that its last words are read; a process in the
                # background may keep the pipe open.
                has_ended = child.poll() is not None
                is_closed = _read_available(pipe, output, max_bytes)
                left_s = end_s - time.monotonic()
                if is_closed or left_s <= 0:
                    break
                if not has_ended:
                    readable([pipe.fileno()], min(left_s, _LOOK_S))
        finally:
            kill_group(child.pid)
    return bytes(output)


def _read_available(pipe: IO[bytes], data: bytearray, max_bytes: int) -> bool:
    """Add what there is to read; whether the pipe has ended."""
    while len(data) < max_bytes:
        chunk = pipe.read(_READ_BYTES)
        if chunk is None:
            return False
        if not chunk:
            return True
        data += chunk
    return False


def spawn_detached(
    argv: list[str], *, environment: Mapping[str, str] | None = None, cwd: str | None = None, **streams: Any
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own that outlives this one.

    stdin, stdout and stderr are /dev/null unless `streams` says otherwise. In an Interruptible block as start().
    Raises OSError when it cannot be started.
    """
    wiring = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **streams}
    return start(argv, env=environment, cwd=cwd, start_new_session=True, close_fds=True, **wiring)


def is_word(value: object) -> bool:
    """Whether a value can be a word of a command line: a text without NUL and lone surrogates."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= one <= "\udfff" for one in value)


def environment_without(*prefixes: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """A copy of the environment without the variables whose names start with one of the prefixes."""
    source = os.environ if base is None else base
    return {name: value for name, value in source.items() if not name.startswith(prefixes)}
