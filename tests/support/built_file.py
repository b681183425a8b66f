"""The file under test: never an old build."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "dist" / "termsprawlctl"
BUILDER = ROOT / "build.py"


def copy_into(folder: Path) -> Path:
    """A copy of it, for everybody to run. CTL_FILE names another file, and CTL_SHA256 the bytes that it has to be."""
    path = Path(os.environ.get("CTL_FILE", BUILT))
    if "CTL_FILE" not in os.environ:
        _rebuild_if_old()
    if not path.is_file():
        pytest.fail(f"CTL_FILE: {path} is missing", pytrace=False)
    copy = folder / "termsprawlctl"
    shutil.copyfile(path, copy)
    copy.chmod(0o755)
    folder.chmod(0o711)  # other users run it in some tests
    expected = os.environ.get("CTL_SHA256")
    if expected and hashlib.sha256(copy.read_bytes()).hexdigest() != expected:
        pytest.fail(f"{path} is not the file with the SHA-256 {expected}", pytrace=False)
    return copy


def is_old() -> bool:
    """Whether something that it is built from is younger than it, or it is not there."""
    try:
        built_s = BUILT.stat().st_mtime
    except FileNotFoundError:
        return True
    sources = [
        BUILDER,
        ROOT / "tools" / "archive_main.py",
        *(path for path in (ROOT / "termsprawlctl").rglob("*") if path.suffix in (".py", ".md")),
    ]
    return any(path.stat().st_mtime > built_s for path in sources)


def _rebuild_if_old() -> None:
    """Once, whoever of several workers comes first."""
    BUILT.parent.mkdir(exist_ok=True)
    folder = os.open(BUILT.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not is_old():
            return
        done = subprocess.run([sys.executable, BUILDER], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"{BUILT} is older than the package, and building it fails:\n{done.stderr}", pytrace=False)
    finally:
        os.close(folder)
