"""The Pythons on this machine, to run the built file with."""

from __future__ import annotations

import functools
import glob
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

from support.counterparts import INSTALLED, why

_ASK = """
import sys
name = getattr(getattr(sys, "implementation", None), "name", "cpython")
sys.stdout.write("%d.%d %s" % (sys.version_info[0], sys.version_info[1], name))
"""
OLDEST = (3, 9)
# What every_kind() has on a machine that has everything; a newer version is taken as well.
WANTED = (*(f"3.{minor}" for minor in range(9, 16)), "pypy3", "3-musl")


@functools.cache
def installed() -> dict[tuple[int, int], str]:
    """(major, minor) to the path of one such CPython: the running one, PATH, version managers, the counterparts."""
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME is the tests' own
    roots = [os.environ.get("PYENV_ROOT", os.path.join(home, ".pyenv")), os.path.join(home, ".local/share/uv/python")]
    candidates = [os.path.join(sys.base_prefix, "bin", "python3")]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidates += sorted(glob.glob(os.path.join(folder, "python[23]*")))
    for root in roots:
        candidates += sorted(glob.glob(os.path.join(root, "versions", "*", "bin", "python")))
        candidates += sorted(glob.glob(os.path.join(root, "*", "bin", "python3")))
    candidates += sorted(glob.glob(os.path.join(INSTALLED, "programs", "python[23].*")))
    found: dict[tuple[int, int], str] = {}
    for path in candidates:
        if "shims" not in path and re.fullmatch(r"python[\d.]*", os.path.basename(os.path.realpath(path))):
            version, name = _identity(os.path.realpath(path))
            if version and name == "cpython":
                found.setdefault(version, os.path.realpath(path))
    return dict(sorted(found.items()))


def every_kind() -> dict[str, str]:
    """A name ("3.9", "pypy3", "3-musl") to the path of one such Python that is new enough, of every implementation."""
    kinds = {f"{major}.{minor}": path for (major, minor), path in installed().items() if (major, minor) >= OLDEST}
    for name, pattern in (("pypy3", "pypy3-*"), ("3-musl", "python3-musl")):
        for path in sorted(glob.glob(os.path.join(INSTALLED, "programs", pattern))):
            kinds[name] = os.path.realpath(path)
    return kinds


def why_missing(kind: str) -> str:
    """Why a kind of WANTED is not among every_kind()."""
    if kind in ("3.10", "3.12"):
        return "no suite of Debian has it, so that it is tried where a version manager put it"
    return why(f"python{kind}" if kind == "3-musl" else "debian-sid", "debian")


@functools.cache
def _identity(path: str) -> tuple[tuple[int, int] | None, str]:
    """The version and the name of the implementation; (None, "") for what is no Python that works."""
    try:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, timeout=30, check=True)
        version, _, name = done.stdout.decode("ascii").partition(" ")
        major, _, minor = version.partition(".")
        return (int(major), int(minor)), name
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, ""


def new_enough() -> list[tuple[int, int]]:
    return [version for version in installed() if version >= OLDEST]


def too_old() -> list[tuple[int, int]]:
    return [version for version in installed() if version < OLDEST]


def on_path(folder: Path, python: str) -> str:
    """Make a folder in which `python3` is that Python, to be put first on a PATH; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "python3"
    if not link.is_symlink():
        link.symlink_to(python)
    return str(folder)
