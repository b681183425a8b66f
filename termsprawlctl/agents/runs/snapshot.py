"""What changed in the folder of a run: `git status` before and after, or a look at each file where there is no git."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

from ...base import threads
from ...base.processes import find_program
from ...base.processtable import send_to_group
from ...base.waiting import readable
from ..model.text import relative

# A repository with more changes than this is not compared.
MAX_STATUS_BYTES = 2 << 20
TIMEOUT_S = 10.0
# Of a folder without git.
MAX_ENTRIES = 20_000
LOOK_S = 1.0
# Nothing that the repository configures is run, whoever has put it there, and no index is written:
# no hook, no monitor, no filter of contents (_without_filters), no transport for missing objects.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotepath=false")
ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


class State:
    """A repository at one moment: its commit, and each changed path with what says how."""

    __slots__ = ("changed", "commit", "root")

    def __init__(self, root: str, commit: str, changed: dict[str, tuple[str, int | None, int | None]]) -> None:
        self.root = root
        self.commit = commit
        self.changed = changed


class Watched:
    """The folder of a run: what git said of it before is compared with what it says after.

    Without git each file's size and time are compared. The look before goes on while the CLI
    starts, which takes it longer. `partial`, after changes(): not all of it could be compared.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._root = root_of(cwd)
        self._before: State | None = None
        self._files_before: FileTable | None = None
        self.partial = False
        self._looking: threads.Running | None = None
        with contextlib.suppress(RuntimeError):  # this process can have no more threads
            self._looking = threads.start(self._look)

    def changes(self, told: dict[str, str]) -> dict[str, str]:
        """Path (relative to cwd where it lies in it) -> change: as the events told, corrected by what is there."""
        changes = {}
        for path, change in told.items():
            exists = os.path.lexists(os.path.join(self._cwd, path))
            if exists == (change != "deleted"):
                changes[path] = change
            elif change != "added":  # else it was made and is gone again
                changes[path] = "modified" if exists else "deleted"
        if self._looking is not None:
            self._looking.join()
        before = self._before
        after = look(self._root) if before else None
        if before and after:
            for path, change in compare(before, after).items():
                changes[relative(os.path.join(self._root, path), self._cwd)] = change
        elif self._files_before is not None:
            files_after = look_at_files(self._cwd)
            self.partial = self._files_before.partial or files_after.partial
            changes.update(compare_files(self._files_before, files_after))
        else:
            self.partial = True
        return changes

    def _look(self) -> None:
        if self._root:
            self._before = look(self._root)
        else:
            self._files_before = look_at_files(self._cwd)


class FileTable:
    """The files below a folder: relative path -> (size, time of the last change). `partial`: not all of them."""

    __slots__ = ("files", "partial")

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, int]] = {}
        self.partial = False


def look_at_files(folder: str) -> FileTable:
    """A look at a folder that has no git, at most MAX_ENTRIES entries and LOOK_S seconds long. Follows no link."""
    table, waiting, entries = FileTable(), [""], 0
    end = time.monotonic() + LOOK_S
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, inside)) as found:
                for entry in found:
                    entries += 1
                    if entries > MAX_ENTRIES or time.monotonic() > end:
                        table.partial = True
                        return table
                    path = os.path.join(inside, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    else:
                        status = entry.stat(follow_symlinks=False)
                        table.files[path] = (status.st_size, status.st_mtime_ns)
        except OSError:
            table.partial = True
    return table


def compare_files(before: FileTable, after: FileTable) -> dict[str, str]:
    """Path -> added, modified, deleted; of a partial table only what it shows for certain."""
    changes = {path: "modified" for path, then in before.files.items() if after.files.get(path, then) != then}
    if not before.partial:
        changes.update({path: "added" for path in after.files if path not in before.files})
    if not after.partial:
        changes.update({path: "deleted" for path in before.files if path not in after.files})
    return changes


def root_of(cwd: str) -> str:
    """The top folder of the repository that cwd is in; empty where there is none."""
    folder = os.path.realpath(cwd)
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def look(root: str) -> State | None:
    """The state of a repository; None where git cannot tell it in time."""
    options = _without_filters(root)
    if options is None:
        return None
    # Submodules are repositories of their own; looking into them may take long.
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty")
    output = _git(root, *options, *words)
    if output is None:
        return None
    commit, codes = parse_status(output)
    return State(root, commit, {path: (code, *_stamp(root, path)) for path, code in codes.items()})


def compare(before: State, after: State) -> dict[str, str]:
    """Path (relative to the root) -> added, modified, deleted."""
    committed: dict[str, str] = {}
    if before.commit != after.commit and before.commit and after.commit:
        output = _git(after.root, "diff", "--name-status", "--no-renames", "-z", before.commit, after.commit)
        committed = parse_name_status(output or b"")
    changes = {}
    for path in {*before.changed, *after.changed, *committed}:
        then, now = before.changed.get(path), after.changed.get(path)
        stamp = now[1:] if now else _stamp(after.root, path)
        change = change_of(then, now[0] if now else None, stamp, committed.get(path, ""))
        if change:
            changes[path] = change
    return changes


def change_of(
    then: tuple[str, int | None, int | None] | None,
    code: str | None,
    stamp: tuple[int | None, int | None],
    committed: str,
) -> str:
    """What happened to a path; empty for nothing.

    `then` is its entry (code, size, time) before, None if it was as committed; `code` its
    status after, None if it is as committed; `stamp` its (size, time) after; `committed`
    what the commits of the run say. A size of None: there is no such file.
    """
    if then is not None:
        existed = then[1] is not None
    elif committed:
        existed = committed != "added"
    else:
        existed = code is not None and code != "??" and not code.startswith("A")
    exists = stamp[0] is not None
    if existed != exists:
        return "added" if exists else "deleted"
    if not exists or (then is not None and then[1:] == stamp):
        return ""
    return "modified"


def parse_status(output: bytes) -> tuple[str, dict[str, str]]:
    """Commit, and path -> two-letter code, from `git status --porcelain=v2 --branch -z`."""
    commit, codes = "", {}
    entries = iter(output.decode("utf-8", "surrogateescape").split("\0"))
    for entry in entries:
        if entry.startswith("# branch.oid "):
            commit = entry[len("# branch.oid ") :].replace("(initial)", "")
        elif entry.startswith("? "):
            codes[entry[2:]] = "??"
        elif entry.startswith("1 "):
            code, path = _fields(entry, 8)
            codes[path] = code
        elif entry.startswith("2 "):
            code, path = _fields(entry, 9)
            codes[path] = code.replace("R", "A").replace("C", "A")
            origin = next(entries, "")
            if "R" in code:
                codes[origin] = "D."
        elif entry.startswith("u "):
            code, path = _fields(entry, 10)
            codes[path] = code
    codes.pop("", None)  # of what was no entry
    return commit, codes


def _fields(entry: str, before_path: int) -> tuple[str, str]:
    """(code, path) of an entry with so many fields before its path; empty where it has fewer."""
    fields = entry.split(" ", before_path)
    return (fields[1], fields[-1]) if len(fields) > before_path else ("", "")


def parse_name_status(output: bytes) -> dict[str, str]:
    """Path -> change, from `git diff --name-status --no-renames -z`."""
    words = output.decode("utf-8", "surrogateescape").split("\0")
    names = {"A": "added", "D": "deleted"}
    return {path: names.get(code[:1], "modified") for code, path in zip(words[::2], words[1::2]) if path}


def _stamp(root: str, path: str) -> tuple[int | None, int | None]:
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return (None, None)
    return (status.st_size, status.st_mtime_ns)


def _without_filters(root: str) -> list[str] | None:
    """Options that switch off all filters that the configuration names; None where that cannot be done.

    `git status` gives a changed file to the program that a filter names (`filter.NAME.clean`).
    """
    # 1: there is none.
    listing = _git(root, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", fine=(0, 1))
    if listing is None:
        return None
    drivers = {name.rpartition(".")[0] for name in listing.decode("utf-8", "surrogateescape").split("\0") if name}
    if any("=" in driver for driver in drivers):
        return None  # where its name ends and its value begins could not be told
    settings = [f"{driver}.{name}" for driver in sorted(drivers) for name in ("clean=", "process=", "required=false")]
    return [word for setting in settings for word in ("-c", setting)]


def _git(root: str, *arguments: str, fine: tuple[int, ...] = (0,)) -> bytes | None:
    """What git prints; None where it fails (its status is none of `fine`), takes too long or says too much."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(ENVIRONMENT)
    program = find_program(GIT[0])
    if program is None:
        return None
    try:
        process = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
            [program, *GIT[1:], "-C", root, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        output = _read(process)
        if output is None:
            send_to_group(process.pid, signal.SIGKILL)  # a git that is a script has children
            return None
        return output if process.wait() in fine else None


def _read(process: subprocess.Popen[bytes]) -> bytes | None:
    end = time.monotonic() + TIMEOUT_S
    assert process.stdout is not None  # noqa: S101 - a pipe
    chunks: list[bytes] = []
    size = 0
    while size <= MAX_STATUS_BYTES:
        if not readable([process.stdout.fileno()], end - time.monotonic()):
            return None
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    return None
