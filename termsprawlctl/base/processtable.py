"""The processes of this machine: the table, what one was started with, groups and whole trees and how they end.

All is read from /proc where there is one, from `ps` elsewhere (macOS, the BSDs). An agent's CLI
starts only when its supervisor has loaded this, so it imports little.

Agents start their commands in sessions and groups of their own, so a signal to the
CLI's group does not reach them; and a command that outlives its parent belongs to
nobody. A Family finds them as descendants, by the marker variable in their environment, and
by having been seen as either before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MARKER = "TERMSPRAWLCTL_AGENT_RUN"  # in the environment of all that an agent run starts
LOOK_S = 0.02
PS_TIMEOUT_S = 5.0  # it only reads the table
# Fields of /proc/PID/stat behind the name, see proc(5).
STATE, PARENT, FOREGROUND_GROUP, BORN, START_STACK = 0, 1, 5, 19, 25
_ENDED = ("Z", "X")


class Process:
    """One row of the process table. `born` tells it from a later process of the same number."""

    __slots__ = ("born", "parent", "pid", "zombie")

    def __init__(self, pid: int, parent: int, born: str, *, zombie: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.born = born
        self.zombie = zombie


def table() -> dict[int, Process]:
    """All processes of the machine, by number. Raises OSError when it cannot be read."""
    return _table_of_proc() if has_proc() else _table_of_ps()


def _table_of_proc() -> dict[int, Process]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_fields(int(name))
            if fields:  # else it has ended
                pid = int(name)
                found[pid] = Process(pid, int(fields[PARENT]), fields[BORN], zombie=fields[STATE] in _ENDED)
    return found


def _table_of_ps() -> dict[int, Process]:
    found = {}
    for line in ps("-axo", "pid=,ppid=,stat=,lstart=").splitlines():
        words = line.split(None, 3)
        if len(words) == 4:
            pid = int(words[0])
            found[pid] = Process(pid, int(words[1]), words[3], zombie=words[2].startswith("Z"))
    if not found:
        raise OSError(errno.EIO, "`ps` shows no process")
    return found


def has_proc() -> bool:
    """Whether the system has Linux's /proc."""
    return os.path.isdir("/proc/self/fd")


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name (STATE and so on); [] when there is no such process.

    Raises OSError when none can be read, for want of descriptors.
    """
    # The name in parentheses may hold anything, closing parentheses too.
    return read_proc(pid, "stat").decode("utf-8", "replace").rpartition(")")[2].split()


def read_proc(pid: int | str, name: str) -> bytes:
    """The file /proc/PID/NAME; b"" when there is no such process, or it hides that. Raises OSError as stat_fields()."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def ps(*arguments: str) -> str:
    """What `ps` prints; "" when no process fits. Raises OSError when it fails or does not end in time."""
    import subprocess

    program = next((path for path in ("/bin/ps", "/usr/bin/ps") if os.path.exists(path)), "/bin/ps")
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            # -ww: where it writes to no terminal, macOS cuts lines after 79 characters.
            [program, "-ww", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PS_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"`ps` did not end within {PS_TIMEOUT_S:g} s") from None
    # Where no process fits, its status is 1, and it says nothing.
    if done.returncode != 0 and (done.returncode != 1 or done.stderr):
        raise OSError(errno.EIO, f"`ps` failed with status {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def column(name: str, pid: int) -> str:
    """One column of `ps` for one process, for example "args"; "" when there is no such process. Raises as ps()."""
    return ps("-o", f"{name}=", "-p", str(pid)).strip()


def is_running(pid: int) -> bool:
    """Whether a process runs, as far as can be seen; one that has ended and was not waited for does not."""
    try:
        state = "".join(stat_fields(pid)[:1]) if has_proc() else column("stat", pid)[:1]
    except OSError:
        return True  # for want of descriptors or processes: nothing says that it has ended
    return state not in ("", *_ENDED)


def command_line_of(pid: int) -> list[str]:
    """The words that a process was started with; [] when there is no such process, or it hides them.

    Raises OSError when that cannot be seen.
    """
    if has_proc():
        words = read_proc(pid, "cmdline").decode("utf-8", "replace")
        return words.rstrip("\0").split("\0") if words else []
    return column("args", pid).split()


def free_descriptors(pid: int | str = "self", *, but_sockets: bool = False) -> int | None:
    """How many more files a process may open (Linux); None where that cannot be told.

    `but_sockets`: as if it had no sockets. Raises OSError where this process itself can open none.
    """
    limit = next((line for line in read_proc(pid, "limits").splitlines() if line.startswith(b"Max open files")), b"")
    word = limit[len(b"Max open files") :].split()[:1]
    folder = f"/proc/{pid}/fd"
    try:
        taken = [os.path.join(folder, name) for name in os.listdir(folder)]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    if but_sockets:
        taken = [path for path in taken if not _link_of(path).startswith("socket:")]
    return int(word[0]) - len(taken) if word and word[0].isdigit() else None


def _link_of(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # closed meanwhile


def on_terminal(tty: str) -> list[int]:
    """The numbers of the processes that belong to a terminal. Raises OSError when that cannot be seen."""
    return [int(word) for word in ps("-t", tty.removeprefix("/dev/"), "-o", "pid=").split() if word.isdigit()]


def descendants(processes: dict[int, Process], roots: Iterable[int]) -> set[int]:
    """The numbers of all children of the roots, and theirs, and so on; without the roots."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def marked(processes: dict[int, Process], marker: str) -> set[int]:
    """The processes that were started with MARKER=marker in their environment. Raises OSError as table()."""
    wanted = f"{MARKER}={marker}"
    if has_proc():
        entry = wanted.encode()
        return {pid for pid in processes if entry in environment_of(pid)}
    lines = (line.split(None, 1) for line in ps("-axE", "-o", "pid=,command=").splitlines())
    return {int(words[0]) for words in lines if len(words) == 2 and wanted in words[1].split()}


def environment_of(pid: int) -> list[bytes]:
    """The environment that a process was started with (Linux); [b""] where it hides that. Raises as read_proc()."""
    return read_proc(pid, "environ").split(b"\0")


def inside_a_run() -> bool:
    """Whether this process was started by a run, directly or through other programs, as far as can be seen.

    A client may start its servers with a clean environment, so the ancestors count, too.
    """
    try:
        return MARKER in os.environ or _has_marked_ancestor()
    except OSError:
        return False


def _has_marked_ancestor() -> bool:
    pid, ancestors = os.getppid(), []
    if has_proc():
        start = f"{MARKER}=".encode()
        while pid > 1 and pid not in ancestors:
            if any(entry.startswith(start) for entry in environment_of(pid)):
                return True
            ancestors.append(pid)
            pid = int((stat_fields(pid) or ["", "0"])[PARENT])
        return False
    processes = table()
    while pid > 1 and pid in processes and pid not in ancestors:
        ancestors.append(pid)
        pid = processes[pid].parent
    lines = ps("-E", "-o", "command=", "-p", ",".join(map(str, ancestors))) if ancestors else ""
    return f" {MARKER}=" in lines


class Family:
    """The processes of one run.

    `root` is the process whose descendants they are, None where it has ended; they are never the root itself.
    """

    def __init__(self, root: int | None, marker: str) -> None:
        self._roots = set() if root is None else {root}
        # No process of the run is older than its root: of the others, who may be many, nothing more has to be read.
        self._since = 0
        with contextlib.suppress(OSError, IndexError):
            self._since = int(stat_fields(root)[BORN]) if root is not None and has_proc() else 0
        self._marker = marker
        self._seen: dict[int, str] = {}

    def look(self) -> list[int]:
        """All that are alive now. What has been seen once is remembered.

        Raises OSError when the table cannot be read.
        """
        processes = table()
        younger = {pid: one for pid, one in processes.items() if not self._since or int(one.born) >= self._since}
        found = descendants(processes, self._roots) | marked(younger, self._marker)
        known = {pid for pid, born in self._seen.items() if pid in processes and processes[pid].born == born}
        found |= known | descendants(processes, known)
        found -= {*self._roots, os.getpid()}
        alive = [processes[pid] for pid in found if pid in processes and not processes[pid].zombie]
        self._seen = {process.pid: process.born for process in alive}
        return list(self._seen)

    def end(self, grace_s: float, limit_s: float, reap: Callable[[], object]) -> int:
        """End them all: SIGTERM, after grace_s seconds SIGKILL, until none is left or limit_s is over.

        `reap()` collects ended children between looks. Returns how many are left.
        """
        begun = time.monotonic()
        asked: set[int] = set()
        missed = False
        while True:
            reap()
            passed = time.monotonic() - begun
            try:
                left = self.look()
            except OSError:
                if passed > limit_s:
                    return len(self._seen)
                time.sleep(LOOK_S)
                continue
            if passed > limit_s or (not left and missed):
                return len(left)
            # A look at the table takes its time: a process that forks and exits meanwhile
            # can be missed, and its child, too. Not twice.
            missed = not left
            if missed:
                continue
            for pid in left:
                if passed >= grace_s:
                    send(pid, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    send(pid, signal.SIGTERM)
                    send(pid, signal.SIGCONT)  # a stopped process does not hear anything else
            time.sleep(LOOK_S)


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def send_to_group(group: int, number: int) -> None:
    """Signal a process group that may be gone."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_group(leader: int) -> None:
    """Kill what is left of a group of our own, whose leader has not been waited for or has just been."""
    send_to_group(leader, signal.SIGKILL)


def adopt_orphans() -> bool:
    """Become the parent of every orphaned descendant (Linux); whether that worked.

    Then nothing that is started below this process can leave the tree below it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER
        return bool(ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False
