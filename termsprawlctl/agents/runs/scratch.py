"""The private directory of one run, and what is left of a run whose two guards were killed at once.

The server and the supervisor each end a run when the other is killed. After a SIGKILL of both the CLI goes on; its
directory, which nobody holds any more, has the mark that its processes carry, and the next run ends those; so
does each command that is in no hurry.
"""

from __future__ import annotations

import contextlib
import os
import re

from ...base.files import read_small, write_atomically
from ...base.tempfiles import HeldDirectory, sweep_directories, temporary_root

PREFIX = "termsprawlctl-run-"
MARK = "mark"
_IS_MARK = re.compile(rb"[0-9a-f]{16}")
GRACE_S, LIMIT_S = 0.5, 5.0


def make() -> HeldDirectory:
    """A new one; ends and removes what killed processes left. Raises OSError."""
    return HeldDirectory(PREFIX, _end_and_remove)


def end_abandoned() -> None:
    """End and remove what killed processes left; one look at a directory where there is nothing. Never fails."""
    with contextlib.suppress(OSError):
        sweep_directories(PREFIX, _end_and_remove, temporary_root(os.environ))


def write_mark(path: str, mark: str) -> None:
    """Say which mark the processes of the run carry, in place of an earlier one. Raises OSError."""
    write_atomically(os.path.join(path, MARK), mark.encode(), is_synced=False)


def remove(path: str) -> None:
    """Remove the directory of a run that has ended."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _end_and_remove(path: str) -> None:
    try:
        mark = read_small(os.path.join(path, MARK))
    except OSError:
        mark = b""  # a run that had not begun, or that was to leave things running
    if _IS_MARK.fullmatch(mark):
        from ...base.processtable import Family

        Family(None, mark.decode()).end(GRACE_S, LIMIT_S, lambda: None)
    remove(path)
