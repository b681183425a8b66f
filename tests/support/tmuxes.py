"""The tmuxes that can be had here, to run the host and the shares with."""

from __future__ import annotations

import re
import shutil
import subprocess

from support.counterparts import INSTALLED, why

WANTED = ("sid", "trixie", "bullseye")


def unpacked() -> dict[str, str]:
    """Debian's suite to the path of its tmux."""
    found = {suite: INSTALLED / "programs" / f"tmux-{suite}" for suite in WANTED}
    return {suite: str(path.resolve()) for suite, path in found.items() if path.exists()}


def version_of(path: str) -> str:
    """For example 3.5a."""
    answer = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=20, check=True).stdout
    return answer.split()[-1]


def every_one() -> dict[str, str]:
    """Version to path: that of PATH and those that were unpacked, new enough or not."""
    paths = [shutil.which("tmux"), *unpacked().values()]
    found: dict[str, str] = {}
    for path in paths:
        if path:
            found.setdefault(version_of(path), path)
    return found


def new_enough() -> dict[str, str]:
    return {version: path for version, path in every_one().items() if _numbers(version) >= (3, 2)}


def too_old() -> dict[str, str]:
    return {version: path for version, path in every_one().items() if _numbers(version) < (3, 2)}


def why_missing(suite: str) -> str:
    return why(f"debian-{suite}", "debian")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
