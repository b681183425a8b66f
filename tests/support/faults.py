"""Faults of the system, made on purpose: a system call that fails or kills at an exact step, a full disk, few rights.

A step is one system call of a command that touches the test's own directory. They are found by
running the command once under strace; then it is run again for each of them with that one
call failing, or with a signal at that moment. So every point of failure is met, the same each time.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from .processes import running
from .waiting import PATIENCE_S, until

NOBODY = 65534
# `mkdtemp` and `openat` make files, the others fill, move and remove them.
CALLS = (
    "open,openat,mkdir,mkdirat,write,pwrite64,fsync,fdatasync,fchmod,chmod,rename,renameat,renameat2,unlink,unlinkat"
)
RENAMES = ("rename", "renameat", "renameat2")
# Only the calls that count stop a process; this needs its children followed, too.
_QUICKLY = ("-f", "--seccomp-bpf")
_LINE = re.compile(r"^(?P<pid>\d+)\s+(?P<call>\w+)\((?P<rest>.*)$")


class Marked:
    """An environment that tells all processes that a test started, however far they have run from it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._entry = f"FAULTS_TEST={uuid.uuid4()}"
        name, _, value = self._entry.partition("=")
        self.env = {**env, name: value}

    def alive(self) -> dict[int, str]:
        """The command line of each that runs, by its number; zombies do not count."""
        wanted = self._entry.encode()
        return {pid: command_line(pid) for pid in running() if wanted in environment(pid)}

    def assert_gone(self, *but: int) -> None:
        """Fail unless all of them end, apart from some."""
        until(lambda: not set(self.alive()) - set(but), lambda: f"these outlive it: {self.alive()}")

    def end(self) -> None:
        """Kill what is left, for the clean-up of a test that failed."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def completed(argv: list, env: dict[str, str], **options) -> subprocess.CompletedProcess:
    """A command run to its end, with nothing to read; whatever befell it, it never shows a traceback."""
    done = subprocess.run(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        **options,
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    return done


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ").strip()
    except OSError:
        return ""


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: the bytes of files, None for all else."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


# --- one system call -----------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _why_no_strace() -> str:
    tool = shutil.which("strace")
    if tool is None:
        return "strace is not installed (tests/counterparts/apt-faults.txt)"
    done = subprocess.run(
        [tool, *_QUICKLY, "-qq", "-o", os.devnull, "true"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"strace may not trace here: {done.stderr.strip()[:200]}"


def need_strace() -> None:
    """Skip the test where strace does not work."""
    if _why_no_strace():
        pytest.skip(_why_no_strace())


# How subprocess starts a program.
STARTS = "vfork" if sys.version_info >= (3, 10) else "clone"


class Step:
    """One system call of a process: the `ordinal`-th of its name in that process (1: the first)."""

    def __init__(self, call: str, ordinal: int, text: str) -> None:
        self.call = call
        self.ordinal = ordinal
        self.text = text  # how strace shows it

    def __repr__(self) -> str:
        return f"{self.call} {self.ordinal}: {self.text[:120]}"


def steps(argv: list, folder: Path, log: Path, *, calls: str = CALLS, also: tuple = (), **options) -> list[Step]:
    """The calls of argv's first process that touch `folder`, and each of those in `also`, in their order.

    argv is run once, to its end; `options` are those of subprocess.run.
    """
    need_strace()
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": PATIENCE_S, **options}
    tracing = ["strace", *_QUICKLY, "-qq", "-y", "-s", "0", "-o", str(log), "-e", f"trace={calls}"]
    subprocess.run([*tracing, *map(str, argv)], check=False, **options)
    counts: dict[str, int] = {}
    found: list[Step] = []
    first = None
    for line in log.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        first = first or match["pid"]
        if match["pid"] == first:
            counts[match["call"]] = counts.get(match["call"], 0) + 1
            if str(folder) in match["rest"] or match["call"] in also:
                found.append(Step(match["call"], counts[match["call"]], match["rest"]))
    assert found, "the command touches nothing of the test's"
    return found


def failing(step: Step, error: str, *, ever_after: bool = False) -> list[str]:
    """The words before an argv that make this call of a process fail, and all later ones if `ever_after`.

    Its children count their calls for themselves.
    """
    need_strace()
    when = f"{step.ordinal}{'+' if ever_after else ''}"
    return ["strace", *_QUICKLY, *_injecting(step.call, f"error={error}:when={when}")]


def dying(step: Step, number: int = signal.SIGKILL) -> list[str]:
    """The words before an argv that send a process a signal when it makes this call."""
    need_strace()
    # What makes strace quick loses signals.
    return ["strace", *_injecting(step.call, f"signal={signal.Signals(number).name}:when={step.ordinal}")]


def _injecting(call: str, what: str) -> list[str]:
    return ["-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{what}"]


# --- the disk ------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int):
    """`folder` as a file system of its own that is full after size_bytes; skips where none can be mounted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()[:200]}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that is left; remove the returned file to free it."""
    path = folder / "filled"
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return path


# --- rights --------------------------------------------------------------------------------


def need_nobody() -> list[str]:
    """The words before an argv that run it as a user without rights; skips where we are not root."""
    tool = shutil.which("setpriv")
    if os.getuid() != 0 or tool is None:
        pytest.skip("only root can become another user, with setpriv")
    return [tool, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]


@contextlib.contextmanager
def without_descriptors(pid: int, *, but: int = 0):
    """A process that can open nothing any more, or only so much, for a while."""
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = [number for number in range(len(taken) + but + 1) if number not in taken]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[but], before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


# --- the clock -----------------------------------------------------------------------------


_JUMPING = """
import itertools, sys, time
sys.path.insert(0, sys.argv[1])
del sys.argv[0]
real, looks, days_s = time.time, itertools.count(), 10 * 86400
time.time = lambda: real() + days_s * (-1) ** next(looks)
from termsprawlctl.cli.parser import main
sys.exit(main())
"""


def with_jumping_clock(ctl: str) -> list[str]:
    """The words that run the built file with a wall clock that is set days forward or back before each look at it."""
    return [sys.executable, "-ISBXutf8", "-c", _JUMPING, ctl]
