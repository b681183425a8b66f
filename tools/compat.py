"""`make compat`: the suites once with every Python and once with every tmux that can be had here, and a table.

    tools/compat.py [--python KIND] [--tmux VERSION] [--warnings] [PYTEST ARGUMENTS]

KIND is one of support/pythons.py (3.9, pypy3, 3-musl, ...). --warnings runs each Python in its development mode
with every warning an error. Without pytest's arguments all suites run: with a Python those that start the built
file, with a tmux those that start a tmux. Exit status 1 when any run failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from support import pythons, tmuxes

ROOT = Path(__file__).resolve().parent.parent
TMUX_SUITES = ["tests/host", "tests/share", "tests/windows/test_external.py", "tests/project/test_recipes.py"]
DEVELOPMENT = "-X dev -W error"


def run_suites(name: str, variables: dict[str, str], selection: str, words: list[str]) -> str:
    """Run pytest; returns its last line."""
    print(f"== {name}", flush=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", selection, *words]
    last = ""
    with subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return re.sub(r"^=+ | =+$", "", last)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the suites with every Python and every tmux.")
    parser.add_argument("--python", choices=pythons.every_kind(), action="append")
    parser.add_argument("--tmux", choices=tmuxes.new_enough(), action="append")
    parser.add_argument("--warnings", action="store_true")
    args, words = parser.parse_known_args()
    every = not (args.python or args.tmux)
    rows = []
    for kind, path in pythons.every_kind().items():
        if every or kind in (args.python or ()):
            variables = {"CTL_PYTHON": path, "CTL_PYTHON_OPTIONS": DEVELOPMENT if args.warnings else ""}
            rows.append((f"Python {kind}", run_suites(kind, variables, "blackbox and not counterpart", words)))
    for version, path in tmuxes.new_enough().items():
        if every or version in (args.tmux or ()):
            name = f"tmux {version}"
            rows.append((name, run_suites(name, {"CTL_TMUX": path}, "not counterpart", words or TMUX_SUITES)))
    if every:
        missing = [kind for kind in pythons.WANTED if kind not in pythons.every_kind()]
        rows += [(f"Python {kind}", f"not tried: {pythons.why_missing(kind)}") for kind in missing]
        missing = [suite for suite in tmuxes.WANTED if suite not in tmuxes.unpacked()]
        rows += [(f"tmux of {suite}", f"not tried: {tmuxes.why_missing(suite)}") for suite in missing]
    print()
    for name, result in rows:
        print(f"{name:<16} {result}")
    return int(any(re.search(r"failed|error|no tests ran", result) for _, result in rows))


if __name__ == "__main__":
    sys.exit(main())
