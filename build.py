#!/usr/bin/env python3
"""Build dist/termsprawlctl: one executable zipapp that runs from where it lies.

Written with shiv's builder functions, but without shiv's bootstrap: that one unpacks
the archive into HOME at the first start, and ours has to run where HOME is read-only.

The same sources and the same Python give the same bytes, wherever the checkout lies:
entries are sorted, carry one fixed time and mode, and the compiled modules name
themselves by their path inside the archive.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import subprocess
import sys
import tempfile
import tokenize
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

from shiv.builder import write_file_prefix, write_to_zipapp

ROOT = Path(__file__).resolve().parent
PACKAGE = "termsprawlctl"
# The earliest time that a zip entry can carry.
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
# What follows shiv's first line, and comes before the archive, which the shell never reads.
# Python isolated (-I: no PYTHON* variable, no user site, no current directory), without
# site hooks (-S, most of a bare start), writing no bytecode (-B), and with UTF-8 for
# arguments and paths in every locale (-Xutf8). A Ctrl-C that finds Python starting up gets
# a traceback out of it: at a terminal it is ignored for that moment, and -Xsigint tells
# the program to listen again.
LAUNCHER = b"""\
command -v python3 >/dev/null 2>&1 || { echo "$0: needs python3, 3.9 or newer" >&2; exit 127; }
[ -t 0 ] && trap "" INT && exec python3 -ISBXutf8 -Xsigint "$0" "$@"
exec python3 -ISBXutf8 "$0" "$@"
"""
# Loaded before Python is isolated where somebody starts it as `python3 termsprawlctl`:
# stored as they are, because unpacking would import zlib from wherever PYTHONPATH says.
STORED = ("__main__.py", f"{PACKAGE}/__init__.py", f"{PACKAGE}/__main__.py")
MAIN = f"from {PACKAGE}.__main__ import main\nmain()\n"
# What `doctor`, `call` and the MCP modes load before their first answer is precompiled:
# start-up time is a feature there. Elsewhere compiling costs less than the command's own
# work, and bytecode is larger than its source.
PRECOMPILED = (
    "__main__.py",
    f"{PACKAGE}/*.py",
    f"{PACKAGE}/base/*.py",
    f"{PACKAGE}/cli/*.py",
    f"{PACKAGE}/cli/commands/__init__.py",
    f"{PACKAGE}/cli/commands/doctor.py",
    f"{PACKAGE}/cli/commands/call.py",
    f"{PACKAGE}/cli/commands/mcp*.py",
    f"{PACKAGE}/cli/commands/agent.py",
    f"{PACKAGE}/agents/*.py",
    f"{PACKAGE}/agents/*/*.py",
    f"{PACKAGE}/app/*.py",
    f"{PACKAGE}/mcp/*.py",
    f"{PACKAGE}/operations/*.py",
)
NOT_PRECOMPILED = (f"{PACKAGE}/base/layout.py", f"{PACKAGE}/base/processes.py", f"{PACKAGE}/base/tmux.py")
# Run with a fixed hash seed in a fresh interpreter: the order of constants in a compiled
# module depends on both. Unchecked: the archive's entries all carry the same time anyway.
COMPILER = """
import importlib._bootstrap_external as machinery, importlib.util, marshal, os, sys
source, name, target = sys.argv[1:]
data = open(source, "rb").read()
code = compile(data, name, "exec", dont_inherit=True, optimize=2)
pyc = machinery._code_to_hash_pyc(code, importlib.util.source_hash(data), checked=False)
open(target, "wb").write(pyc)
"""


def entries() -> dict[str, bytes]:
    """Archive name to content, for everything that the running program reads."""
    found = {"__main__.py": MAIN.encode()}
    for path in sorted((ROOT / PACKAGE).rglob("*")):
        if path.suffix in (".py", ".md") and "__pycache__" not in path.parts:
            data = path.read_bytes()
            found[path.relative_to(ROOT).as_posix()] = without_comments(data) if path.suffix == ".py" else data
    return found


def without_comments(source: bytes) -> bytes:
    """The same program on the same lines, without comments and docstrings: a fifth of the file's size."""
    text = source.decode()
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            docstring = node.body[0]
            # Something has to stay: the docstring may be all that there is.
            lines[docstring.lineno - 1] = " " * docstring.col_offset + '""\n'
            for row in range(docstring.lineno, docstring.end_lineno):
                lines[row] = "\n"
    return "".join(lines).encode()


def is_precompiled(name: str) -> bool:
    """Whether an archive entry gets bytecode beside its source."""
    return name not in NOT_PRECOMPILED and any(
        fnmatchcase(name, pattern) and name.count("/") == pattern.count("/") for pattern in PRECOMPILED
    )


def compiled(sources: dict[str, bytes]) -> dict[str, bytes]:
    """Bytecode for this Python beside the sources, which other Pythons fall back to."""
    results = {}
    environment = {"PYTHONHASHSEED": "0", "PATH": os.environ.get("PATH", os.defpath)}
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch, "module.py"), Path(scratch, "module.pyc")
        for name, data in sources.items():
            if is_precompiled(name):
                source.write_bytes(data)
                # Without column positions (Python 3.11 and newer), which only tracebacks show.
                command = [
                    sys.executable,
                    "-s",
                    "-S",
                    "-X",
                    "no_debug_ranges",
                    "-c",
                    COMPILER,
                    str(source),
                    name,
                    str(target),
                ]
                subprocess.run(command, env=environment, check=True)
                results[name + "c"] = target.read_bytes()
    return results


def build(target: Path) -> None:
    """Write the archive; the file at target is replaced only when the new one is whole."""
    sources = entries()
    contents = {**sources, **compiled(sources)}
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write_file_prefix(stream, "/bin/sh")
            stream.write(LAUNCHER)
            with zipfile.ZipFile(stream, "w", compresslevel=9) as archive:
                for name in sorted(contents):
                    packing = zipfile.ZIP_STORED if name.rstrip("c") in STORED else zipfile.ZIP_DEFLATED
                    write_to_zipapp(archive, name, contents[name], ENTRY_TIME, packing)
        os.chmod(scratch, 0o755)  # noqa: S103 - a program for everybody to run
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the single executable file.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist" / PACKAGE)
    target = parser.parse_args().output
    build(target)
    print(f"built {target} ({target.stat().st_size / 1024:.1f} KiB)")


if __name__ == "__main__":
    main()
