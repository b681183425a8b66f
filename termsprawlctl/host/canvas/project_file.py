"""The project file `<folder>/.termsprawl/project.json`: read whole, changed safely.

A change edits what stands in the file and replaces the file in one step, so a
reader, or a crash at any moment, sees the old or the new document and never a part of one.
Hosts that serve the same folder take turns through a lock on the directory. The app knows
nothing of that lock; what it wrote is found out by comparing the file once more right
before the step, and the edit is then made again on what stands there now.

What was read last is kept, parsed, for as long as the file's stamp (device, inode, size and
times) is the same. Times move in ticks, so the stamp of a file that is younger than a tick
proves nothing, unless it is a new file that this process has just put there: what was read
of others' is then read again and compared byte by byte.

There is no journal: the app would not read one, and two files that are one document can
come apart. Each change is in project.json before it is acknowledged, so no end of this
process, SIGKILL included, loses one. A power cut is another matter: `is_synced=False` leaves
the wait for the disk to a thread that comes within SYNC_AFTER_S, and that second of moves is what
a power cut can take.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

from ...base import threads
from ...base.errors import CtlError
from ...base.files import DIRECTORY_MODE, FILE_MODE, is_inside, lock, read_small, remove_quietly, write_atomically
from . import numbers
from .snapshot import Snapshot

VERSION = 1
MAX_PROJECT_BYTES = 32 << 20
# A write takes milliseconds; whoever waits this long waits for a stopped process.
LOCK_WAIT_S = 5.0
# Each try loses only against a write within the same few milliseconds.
MAX_TRIES = 20
MAX_SHOWN_CHARS = 40  # of something in the file that is not what it should be
NOTHING_CHANGED = "Nothing was changed."
# Files whose content is kept in memory, of at most this size: parsed, it takes ten times as much.
MAX_KEPT_FILES, MAX_KEPT_BYTES = 4, 4 << 20
# No clock of a file system ticks slower, but for those that know whole seconds alone.
FRESH_NS = 100_000_000
_SECOND_NS = 1_000_000_000
SYNC_AFTER_S = 1.0
# What a writer that was killed leaves behind: write_atomically()'s temporary file.
_LEFTOVER = re.compile(r"\.project\.json\.[0-9a-f]{16}")


class _ChangedMeanwhile(Exception):
    """The file is no longer the one that the edit was made on."""


def path_of(folder: str) -> str:
    """The path of a folder's project file."""
    return os.path.join(folder, ".termsprawl", "project.json")


class _Seen:
    """A file's bytes, what they are, and its stamp at that time; None where that proves nothing."""

    __slots__ = ("data", "snapshot", "stamp")

    def __init__(self, data: bytes | None, snapshot: Snapshot, stamp: _Stamp = None) -> None:
        self.data = data
        self.snapshot = snapshot
        self.stamp = stamp

    def is_at(self, stamp: _Stamp) -> bool:
        return stamp is not None and stamp == self.stamp


_Stamp = Optional[tuple[int, ...]]
_kept: dict[str, _Seen] = {}
_kept_lock = threading.Lock()
_to_sync: set[str] = set()


def load(folder: str) -> dict[str, Any]:
    """The project's document, which others hold, too: only to look at. An empty one where there is no file yet.

    Raises CtlError when the file cannot be read or is not a project.
    """
    return snapshot(folder).document


def snapshot(folder: str) -> Snapshot:
    """What the project's file holds now. Raises CtlError as load()."""
    return _look(_target(folder)).snapshot


def change(folder: str, edit: Callable[[dict[str, Any]], Any], *, is_synced: bool = True) -> Any:
    """Edit the project's document and write it with `rev` one higher; returns what edit returned.

    `edit(document)` changes the document in place, but replaces nodes instead of changing
    them. It is called again, on the newer document, when somebody else wrote the file
    meanwhile, so it must do nothing else. A document that it leaves as it was is not
    written. Raises CtlError, its own included; the file is then as it was.
    """
    path = _target(folder)
    try:
        os.makedirs(os.path.dirname(path), mode=DIRECTORY_MODE, exist_ok=True)
        with _alone(os.path.dirname(path)):
            for _ in range(MAX_TRIES):
                with contextlib.suppress(_ChangedMeanwhile):
                    return _try(path, edit, is_synced=is_synced)
    except OSError as error:
        raise CtlError(f"Cannot write {path}: {error.strerror}.", NOTHING_CHANGED) from None
    raise CtlError(f"{path} keeps changing.", f"{NOTHING_CHANGED} Try again.")


def _try(path: str, edit: Callable[[dict[str, Any]], Any], *, is_synced: bool) -> Any:
    seen = _look(path)
    document = seen.snapshot.editable()
    value = edit(document)
    changed = seen.snapshot.after(document)
    if changed is seen.snapshot:
        return value
    changed.set_rev(int(numbers.number_of(document.get("rev")) or 0) + 1)
    data = changed.encoded()
    if len(data) > MAX_PROJECT_BYTES:
        raise CtlError(f"The project file {path} would be larger than {MAX_PROJECT_BYTES} bytes.", NOTHING_CHANGED)

    def refuse_if_changed() -> None:
        if not seen.is_at(_stamp(path)) and _read(path) != seen.data:
            raise _ChangedMeanwhile

    mode, owner = _mode_and_owner(path)
    status = write_atomically(path, data, mode, refuse_if_changed, owner, is_synced=is_synced)
    _keep(path, _Seen(data, changed, _stamp_of(status) if status.st_size == len(data) else None))
    if not is_synced:
        _sync_later(path)
    return value


def _look(path: str) -> _Seen:
    """What the file holds now; read and parsed only where it may be something else than last time."""
    known, stamp = _kept.get(path), _stamp(path)
    if known is not None and known.is_at(stamp):
        return known
    proof = None if stamp is None or _is_fresh(stamp) else stamp
    data = _read(path)
    if known is not None and data == known.data:
        known.stamp = proof  # of before it was read: whoever wrote meanwhile changed it
        return known
    return _keep(path, _Seen(data, _parse(path, data), proof))


def _keep(path: str, seen: _Seen) -> _Seen:
    with _kept_lock:
        _kept.pop(path, None)
        if len(seen.data or b"") <= MAX_KEPT_BYTES:
            _kept[path] = seen
        while len(_kept) > MAX_KEPT_FILES:
            del _kept[next(iter(_kept))]
    return seen


def _stamp(path: str) -> _Stamp:
    """What is different once somebody has written the file; None where there is none."""
    try:
        return _stamp_of(os.stat(path))
    except OSError:
        return None


def _stamp_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_fresh(stamp: tuple[int, ...]) -> bool:
    """Whether the file can be written once more without a change of its times."""
    changed_ns = max(stamp[-2:])
    # Times without a fraction come from a file system that knows only whole seconds.
    tick_ns = FRESH_NS if changed_ns % _SECOND_NS else 2 * _SECOND_NS
    return time.time_ns() - changed_ns < tick_ns


def _sync_later(path: str) -> None:
    """Have the file on the disk within SYNC_AFTER_S; many changes until then cost one wait."""

    def sync() -> None:
        time.sleep(SYNC_AFTER_S)
        _to_sync.discard(path)
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    if path not in _to_sync:
        _to_sync.add(path)
        try:
            threads.start(sync)
        except RuntimeError:
            _to_sync.discard(path)


def _target(folder: str) -> str:
    """The file itself where project.json is a link: what was read is what is written."""
    path = path_of(folder)
    if not os.path.islink(path) and not os.path.islink(os.path.dirname(path)):
        return path  # it cannot lead anywhere else
    if os.path.islink(path) and not os.path.exists(path):
        raise CtlError(f"The project file {path} is a link to nothing.", "Fix it or remove it.")
    return inside(folder, path)


def inside(folder: str, path: str) -> str:
    """The real path of something in a project's folder.

    Raises CtlError where a link leads out of the folder: links come with a project that
    somebody else made, and would have files changed that have nothing to do with it.
    """
    real = os.path.realpath(path)
    if not is_inside(real, folder) or real == os.path.realpath(folder):
        raise CtlError(
            f"{path} leads out of the project, to {real}, and a link that may have come with it is not followed.",
            "Replace the link with what it leads to, or name the folder that has it as the project.",
        )
    return real


def _read(path: str) -> bytes | None:
    """The file's bytes; None where there is none. Raises CtlError."""
    try:
        return read_small(path, MAX_PROJECT_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CtlError(f"Cannot read {path}: {error.strerror}.", NOTHING_CHANGED) from None


def _mode_and_owner(path: str) -> tuple[int, tuple[int, int] | None]:
    """What to write with: those of the file that is there, which others may have to read.

    Root in a container works on a folder of somebody else, whose app has to open the file later.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return FILE_MODE, None
    return stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)


def _parse(path: str, data: bytes | None) -> Snapshot:
    if data is None:
        return Snapshot.empty(VERSION)
    try:
        found = Snapshot.parse(data)
    except ValueError as error:
        raise CtlError(
            f"The project file {path} is not JSON ({error}).", "Fix it or move it away; nothing was changed."
        ) from None
    except KeyError:
        raise CtlError(f"The project file {path} has no list of nodes.", "Fix it or move it away.") from None
    version = found.document.get("version")
    if numbers.number_of(version) != VERSION:
        shown = numbers.dumps(version)[:MAX_SHOWN_CHARS]
        raise CtlError(
            f"The project file {path} has version {shown}, not 1; nothing was changed.",
            "Use the release that wrote it.",
        )
    return found


@contextlib.contextmanager
def _alone(directory: str) -> Iterator[None]:
    """Keep other hosts from writing, and remove what a killed one left. Raises OSError, CtlError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        locked = lock(descriptor, LOCK_WAIT_S)
        if locked is False:
            text = f"Another process has been writing to {directory} for {LOCK_WAIT_S:g} s."
            raise CtlError(text, NOTHING_CHANGED)
        if locked:
            for name in os.listdir(directory):
                if _LEFTOVER.fullmatch(name):
                    remove_quietly(os.path.join(directory, name))
        yield
    finally:
        os.close(descriptor)
