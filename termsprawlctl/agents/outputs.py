"""Full outputs of runs whose result had to be shortened: private files that stay for a while."""

from __future__ import annotations

import os
import secrets
import tempfile

from ..files import private_directory
from ..jsontext import encode

KEPT_FILES = 50  # older ones are removed when a new one is written
SUFFIX = ".txt"


def directory() -> str:
    """The directory of the files, made if it is missing. Raises OSError."""
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    try:
        return private_directory(os.path.join(home, "termsprawlctl", "agent-outputs"))
    except OSError:
        user = os.getuid() if hasattr(os, "getuid") else 0
        return private_directory(os.path.join(tempfile.gettempdir(), f"termsprawlctl-outputs-{user}"))


def save(pieces) -> str:
    """Write the text that `pieces` yields to a new private file; returns its path. Raises OSError."""
    folder = directory()
    _prune(folder)
    path = os.path.join(folder, f"run-{secrets.token_hex(8)}{SUFFIX}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(encode(piece))
    except OSError:
        os.unlink(path)
        raise
    return path


def _prune(folder: str) -> None:
    entries = [entry for entry in os.scandir(folder) if entry.name.startswith("run-") and entry.name.endswith(SUFFIX)]
    times = {}
    for entry in entries:
        try:
            times[entry.path] = entry.stat().st_mtime
        except OSError:
            continue  # another server removed it
    for path in sorted(times, key=times.get)[: max(0, len(times) - KEPT_FILES + 1)]:
        try:
            os.unlink(path)
        except OSError:
            continue
