"""Run the suites with another Python or tmux than this machine's own: CTL_PYTHON=path, CTL_TMUX=path.

Both mean the programs that the built file is run with; pytest itself stays on its own Python. CTL_PYTHON_OPTIONS are
put before those of the built file, `-X dev -W error` for example.
"""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

VARIABLES = {"python3": "CTL_PYTHON", "tmux": "CTL_TMUX"}


@functools.cache
def folders() -> tuple[str, ...]:
    """The folder in which `python3` and `tmux` are the chosen ones; none when nothing is chosen."""
    programs = {name: os.environ[variable] for name, variable in VARIABLES.items() if os.environ.get(variable)}
    if not programs:
        return ()
    folder = Path(tempfile.mkdtemp(prefix="chosen-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = os.environ.get("CTL_PYTHON_OPTIONS", "")
    for name, path in programs.items():
        if not os.access(path, os.X_OK):
            raise FileNotFoundError(f"{VARIABLES[name]}: {path} is no program")
        if name == "python3" and options:
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(path)} {options} "$@"\n')
            (folder / name).chmod(0o755)
        else:
            (folder / name).symlink_to(os.path.abspath(path))
    return (str(folder),)


def plain_path() -> str:
    """A PATH whose python3 is the chosen one, or else that which runs the tests: no version manager's shim."""
    return os.pathsep.join([*folders(), os.path.join(sys.base_prefix, "bin"), os.environ["PATH"]])


def put_first_on_path() -> None:
    """Let the tests' own calls of `tmux` find the chosen one, too: client and server have to be of one version."""
    os.environ["PATH"] = os.pathsep.join([*folders(), os.environ.get("PATH", os.defpath)])
