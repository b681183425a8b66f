"""The Pythons on this machine, to run the built file with."""

from __future__ import annotations

import functools
import glob
import os
import re
import subprocess
import sys

_ASK = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"


@functools.cache
def installed() -> dict[tuple[int, int], str]:
    """(major, minor) to the path of one such Python, from the running one, PATH, and version managers."""
    home = os.path.expanduser("~")
    roots = [os.environ.get("PYENV_ROOT", os.path.join(home, ".pyenv")), os.path.join(home, ".local/share/uv/python")]
    candidates = [os.path.join(sys.base_prefix, "bin", "python3")]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidates += sorted(glob.glob(os.path.join(folder, "python[23]*")))
    for root in roots:
        candidates += sorted(glob.glob(os.path.join(root, "versions", "*", "bin", "python")))
        candidates += sorted(glob.glob(os.path.join(root, "*", "bin", "python3")))
    found: dict[tuple[int, int], str] = {}
    for path in candidates:
        if "shims" not in path and re.fullmatch(r"python[\d.]*", os.path.basename(path)):
            version = _version(os.path.realpath(path))
            if version:
                found.setdefault(version, os.path.realpath(path))
    return dict(sorted(found.items()))


@functools.cache
def _version(path: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, timeout=30, check=True)
        major, _, minor = done.stdout.decode("ascii").partition(".")
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def new_enough() -> list[tuple[int, int]]:
    return [version for version in installed() if version >= (3, 9)]


def too_old() -> list[tuple[int, int]]:
    return [version for version in installed() if version < (3, 9)]
