"""The project file `<folder>/.termsprawl/project.json`: read whole, changed safely.

A change reads the file anew, edits what it read and replaces the file in one step, so a
reader, or a crash at any moment, sees the old or the new document and never a part of one.
Hosts that serve the same folder take turns through a lock on the directory. The app knows
nothing of that lock; what it wrote is found out by comparing the file once more right
before the step, and the edit is then made again on what stands there now.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable

from ...base import jsontext
from ...base.errors import CtlError
from ...base.files import DIRECTORY_MODE, FILE_MODE, is_inside, lock, read_small, remove_quietly, write_atomically
from . import numbers

VERSION = 1
MAX_PROJECT_BYTES = 32 << 20
# A write takes milliseconds; whoever waits this long waits for a stopped process.
LOCK_WAIT_S = 5.0
# Each try loses only against a write within the same few milliseconds.
MAX_TRIES = 20
MAX_SHOWN_CHARS = 40  # of something in the file that is not what it should be
NOTHING_CHANGED = "Nothing was changed."
# What a writer that was killed leaves behind: write_atomically()'s temporary file.
_LEFTOVER = re.compile(r"\.project\.json\.[0-9a-f]{16}")


class _ChangedMeanwhile(Exception):
    """The file is no longer the one that the edit was made on."""


def path_of(folder: str) -> str:
    """The path of a folder's project file."""
    return os.path.join(folder, ".termsprawl", "project.json")


def load(folder: str) -> dict:
    """The project's document; an empty one where there is no file yet.

    Raises CtlError when the file cannot be read or is not a project.
    """
    path = _target(folder)
    return _parse(path, _read(path), jsontext.loads)


def change(folder: str, edit):
    """Edit the project's document and write it with `rev` one higher; returns what edit returned.

    `edit(document)` changes the document in place. It is called again, on the newer
    document, when somebody else wrote the file meanwhile, so it must do nothing else. A
    document that it leaves as it was is not written. Raises CtlError, its own included; the
    file is then as it was.
    """
    path = _target(folder)
    try:
        os.makedirs(os.path.dirname(path), mode=DIRECTORY_MODE, exist_ok=True)
        with _alone(os.path.dirname(path)):
            for _ in range(MAX_TRIES):
                with contextlib.suppress(_ChangedMeanwhile):
                    return _try(path, edit)
    except OSError as error:
        raise CtlError(f"Cannot write {path}: {error.strerror}.", NOTHING_CHANGED) from None
    raise CtlError(f"{path} keeps changing.", f"{NOTHING_CHANGED} Try again.")


def _try(path: str, edit):
    before = _read(path)
    document = _parse(path, before, numbers.loads)
    untouched = _encode(document)
    value = edit(document)
    if _encode(document) == untouched:
        return value
    document["rev"] = int(numbers.number_of(document.get("rev")) or 0) + 1
    data = _encode(document)
    if len(data) > MAX_PROJECT_BYTES:
        raise CtlError(f"The project file {path} would be larger than {MAX_PROJECT_BYTES} bytes.", NOTHING_CHANGED)

    def refuse_if_changed() -> None:
        if _read(path) != before:
            raise _ChangedMeanwhile

    mode, owner = _mode_and_owner(path)
    write_atomically(path, data, mode, refuse_if_changed, owner)
    return value


def _target(folder: str) -> str:
    """The file itself where project.json is a link: what was read is what is written."""
    path = path_of(folder)
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


def _parse(path: str, data: bytes | None, loads: Callable[[bytes], object]) -> dict:
    if data is None:
        return {"version": VERSION, "rev": 0, "nodes": []}
    try:
        document = loads(data)
    except ValueError as error:
        raise CtlError(
            f"The project file {path} is not JSON ({error}).", "Fix it or move it away; nothing was changed."
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise CtlError(f"The project file {path} has no list of nodes.", "Fix it or move it away.")
    if numbers.number_of(document.get("version")) != VERSION:
        shown = numbers.dumps(document.get("version"))[:MAX_SHOWN_CHARS]
        raise CtlError(f"The project file {path} has version {shown}, not 1; nothing was changed.")
    return document


def _encode(document: dict) -> bytes:
    """As people and version control like to read it; a lone surrogate, which UTF-8 lacks, stays an escape."""
    try:
        return numbers.dumps(document).encode() + b"\n"
    except UnicodeEncodeError:
        return numbers.dumps(document, ascii_only=True).encode() + b"\n"


@contextlib.contextmanager
def _alone(directory: str):
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
