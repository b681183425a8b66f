"""Child processes: always with a closed stdin and a deadline, or fully on their own."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time

from .errors import CtlError

_LOOK_S = 0.02  # how often a child is asked whether it has ended
_READ_BYTES = 64 << 10  # what a pipe holds
_PS_TIMEOUT_S = 5.0  # it only reads the process table


class Completed:
    """What a child left: status (negative: the signal that killed it) and both outputs as bytes."""

    __slots__ = ("status", "stderr", "stdout")

    def __init__(self, status: int, stdout: bytes, stderr: bytes) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


def run(
    argv: list[str], *, stdin: bytes = b"", timeout_s: float, environment=None, cwd: str | None = None
) -> Completed:
    """Run a child to its end; `stdin` is all that it can read.

    Raises CtlError when it cannot be started or takes longer than timeout_s
    (it is then killed).
    """
    try:
        done = subprocess.run(  # noqa: S603 - an argv list, never a shell
            argv, input=stdin, capture_output=True, timeout=timeout_s, env=environment, cwd=cwd, check=False
        )
    except subprocess.TimeoutExpired:
        raise CtlError(f"{argv[0]} did not finish within {timeout_s:g} s.") from None
    except OSError as error:
        raise CtlError(f"cannot run {argv[0]}: {error.strerror}.") from None
    return Completed(done.returncode, done.stdout, done.stderr)


def said_by(argv: list[str], *, timeout_s: float, max_bytes: int) -> bytes:
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
        raise CtlError(f"cannot run {argv[0]}: {error.strerror}.") from None
    said = bytearray()
    end_s = time.monotonic() + timeout_s
    with child:
        try:
            os.set_blocking(child.stdout.fileno(), False)
            has_ended = False
            while not has_ended and len(said) < max_bytes:
                # Asked before reading, so that its last words are read; a process in the
                # background may keep the pipe open.
                has_ended = child.poll() is not None
                is_closed = _read_available(child.stdout, said, max_bytes)
                left_s = end_s - time.monotonic()
                if is_closed or left_s <= 0:
                    break
                if not has_ended:
                    select.select([child.stdout], [], [], min(left_s, _LOOK_S))
        finally:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
    return bytes(said)


def _read_available(pipe, data: bytearray, max_bytes: int) -> bool:
    """Add what there is to read; whether the pipe has ended."""
    while len(data) < max_bytes:
        chunk = pipe.read(_READ_BYTES)
        if chunk is None:
            return False
        if not chunk:
            return True
        data += chunk
    return False


def spawn_detached(argv: list[str], *, environment=None, cwd: str | None = None, **streams) -> subprocess.Popen:
    """Start a process in a session of its own that outlives this one.

    stdin, stdout and stderr are /dev/null unless `streams` says otherwise.
    Raises OSError when it cannot be started.
    """
    wiring = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **streams}
    return subprocess.Popen(  # noqa: S603 - an argv list, never a shell
        argv, env=environment, cwd=cwd, start_new_session=True, close_fds=True, **wiring
    )


def command_line_of(pid: int) -> list[str]:
    """The words that a process was started with; [] when there is no such process, or it hides them."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        if os.path.isdir("/proc/self"):
            return []
    try:  # macOS and the BSDs
        answer = run(["ps", "-o", "args=", "-p", str(pid)], timeout_s=_PS_TIMEOUT_S).stdout
    except CtlError:
        return []
    return answer.decode("utf-8", "replace").split()


def environment_without(*prefixes: str, base=None) -> dict[str, str]:
    """A copy of the environment without the variables whose names start with one of the prefixes."""
    source = os.environ if base is None else base
    return {name: value for name, value in source.items() if not name.startswith(prefixes)}
