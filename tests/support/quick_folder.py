"""A folder for tests that write very many small files and sync each."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

IN_MEMORY = "/dev/shm"


@contextlib.contextmanager
def quick_folder(prefix: str):
    """An empty folder, in memory where the system has such a place; gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
