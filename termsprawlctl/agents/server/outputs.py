"""Full outputs of runs whose result had to be shortened: private files that stay for a while."""

from __future__ import annotations

import contextlib
import os
import re
import time

from ...base.files import private_directory, remove_quietly
from ...base.jsontext import encode
from ...base.layout import state_directory
from ...base.ownership import is_ours
from ...base.tempfiles import HeldDirectory, hold, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# Older ones are removed when a new one is written.
KEPT_FILES = 50
KEPT_BYTES = 256 << 20
SUFFIX = ".txt"
_PART = ".part"
_UNFINISHED = re.compile(r"run-[0-9a-f]{16}\.txt\.part")


def directory() -> str:
    """The directory of the files, made if it is missing. Raises OSError."""
    state = state_directory(os.environ)
    if state is not None:
        with contextlib.suppress(OSError):
            return private_directory(os.path.join(state, "agent-outputs"))
    return _temporary_directory()


_temporary: list[HeldDirectory] = []  # the one of this process, where there is no other place


def _temporary_directory() -> str:
    # Under a name of its own each time: anybody could have taken one that is known before.
    # Those of processes that have ended are removed.
    if not (_temporary and is_ours(_temporary[0].path)):
        import shutil

        _temporary[:] = [HeldDirectory("termsprawlctl-outputs-", lambda path: shutil.rmtree(path, ignore_errors=True))]
    path: str = _temporary[0].path
    return path


def save(pieces: Iterable[str]) -> str:
    """Write the text that `pieces` yields to a new private file; returns its path. Raises OSError."""
    folder = directory()
    _prune(folder)
    path = os.path.join(folder, f"run-{os.urandom(8).hex()}{SUFFIX}")
    part = path + _PART
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            hold(descriptor, part)
            for piece in pieces:
                file.write(encode(piece))
            file.flush()
            # Under its name it is whole. Taken for a leftover before it was held, it is not there any more.
            os.replace(part, path)
    except OSError:
        remove_quietly(part)
        raise
    return path


def _prune(folder: str) -> None:
    sweep(folder, _UNFINISHED, remove_quietly)
    entries = [entry for entry in os.scandir(folder) if entry.name.startswith("run-") and entry.name.endswith(SUFFIX)]
    found = []
    for entry in entries:
        with contextlib.suppress(OSError):  # another server removed it
            status = entry.stat()
            # A clock that was set back since: those from its future are older than the others.
            found.append((status.st_mtime <= time.time(), status.st_mtime, status.st_size, entry.path))
    kept, kept_bytes = 1, 0  # the new one
    for *_, size, path in sorted(found, reverse=True):
        kept += 1
        kept_bytes += size
        if kept > KEPT_FILES or kept_bytes > KEPT_BYTES:
            remove_quietly(path)
