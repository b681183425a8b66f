"""The file that this program runs from."""

from __future__ import annotations

import os
import sys

from .errors import CtlError


def program_file() -> str:
    """The absolute path of the built file, a symlink to it left as it is.

    Raises CtlError when the code runs from its sources: shells and services that are
    given a path need one file.
    """
    path = os.path.abspath(sys.argv[0])
    if path.endswith(".py") or not os.path.isfile(path):
        raise CtlError("this command needs the built file.", "Run `make build`, then use dist/termsprawlctl.")
    return path


def own_argv(*words: str) -> list[str]:
    """An argv that starts this same file with this same Python."""
    return [sys.executable, "-ISBXutf8", program_file(), *words]
