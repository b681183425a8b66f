"""Find and end all processes of a run, wherever they have put themselves.

Agents start their commands in sessions and groups of their own, so a signal to the
CLI's group does not reach them; and a command that outlives its parent belongs to
nobody. They are found as descendants, by the marker variable in their environment, and
by having been seen as either before.
"""

from __future__ import annotations

import os
import signal
import sys
import time

MARKER = "TERMSPRAWLCTL_AGENT_RUN"
LOOK_S = 0.02
PS_TIMEOUT_S = 5.0


class Process:
    """One row of the process table. `born` tells it from a later process of the same number."""

    __slots__ = ("born", "parent", "pid", "zombie")

    def __init__(self, pid: int, parent: int, born: str, *, zombie: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.born = born
        self.zombie = zombie


def table() -> dict[int, Process]:
    """All processes of the machine, by number."""
    return _table_of_proc() if os.path.isdir("/proc/self") else _table_of_ps()


def _table_of_proc() -> dict[int, Process]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue  # it has ended
            # The name in parentheses may hold anything, closing parentheses too.
            fields = stat[stat.rindex(b")") + 2 :].split()
            pid = int(name)
            found[pid] = Process(pid, int(fields[1]), fields[19].decode(), zombie=fields[0] in (b"Z", b"X"))
    return found


def _table_of_ps() -> dict[int, Process]:
    found = {}
    for line in _ps("-axo", "pid=,ppid=,stat=,lstart=").splitlines():
        words = line.split(None, 3)
        if len(words) == 4:
            pid = int(words[0])
            found[pid] = Process(pid, int(words[1]), words[3], zombie=words[2].startswith("Z"))
    return found


def _ps(*arguments: str) -> str:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            ["/bin/ps", *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=PS_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def descendants(processes: dict[int, Process], roots) -> set[int]:
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
    """The processes that were started with MARKER=marker in their environment."""
    wanted = f"{MARKER}={marker}"
    if os.path.isdir("/proc/self"):
        entry = wanted.encode()
        return {pid for pid in processes if entry in environment_of(pid)}
    lines = (line.split(None, 1) for line in _ps("-axEww", "-o", "pid=,command=").splitlines())
    return {int(words[0]) for words in lines if len(words) == 2 and wanted in words[1].split()}


def environment_of(pid: int) -> list[bytes]:
    """The environment that a process was started with (Linux); [] where it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def inside_a_run() -> bool:
    """Whether this process was started by a run, directly or through other programs.

    A client may start its servers with a clean environment, so the ancestors count, too.
    """
    if MARKER in os.environ:
        return True
    processes = table()
    pid, ancestors = os.getppid(), []
    while pid > 1 and pid in processes and pid not in ancestors:
        ancestors.append(pid)
        pid = processes[pid].parent
    if os.path.isdir("/proc/self"):
        start = f"{MARKER}=".encode()
        return any(entry.startswith(start) for pid in ancestors for entry in environment_of(pid))
    lines = _ps("-Eww", "-o", "command=", "-p", ",".join(map(str, ancestors))) if ancestors else ""
    return f" {MARKER}=" in lines


class Family:
    """The processes of one run.

    `root` is the process whose descendants they are; they are never the root itself.
    """

    def __init__(self, root: int, marker: str) -> None:
        self._root = root
        self._marker = marker
        self._seen: dict[int, str] = {}

    def look(self) -> list[int]:
        """All that are alive now. What has been seen once is remembered.

        Raises OSError when the table cannot be read, for want of descriptors.
        """
        processes = table()
        found = descendants(processes, [self._root]) | marked(processes, self._marker)
        known = {pid for pid, born in self._seen.items() if pid in processes and processes[pid].born == born}
        found |= known | descendants(processes, known)
        found -= {self._root, os.getpid()}
        alive = [processes[pid] for pid in found if pid in processes and not processes[pid].zombie]
        self._seen = {process.pid: process.born for process in alive}
        return list(self._seen)

    def end(self, grace_s: float, limit_s: float, reap) -> int:
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


def adopt_orphans() -> bool:
    """Become the parent of every orphaned descendant (Linux); whether that worked.

    Then nothing that is started below this process can leave the tree below it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER
        return ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError):
        return False
