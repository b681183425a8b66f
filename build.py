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
import marshal
import os
import pwd
import re
import subprocess
import sys
import tempfile
import tokenize
import zipfile
import zlib
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shiv.builder import write_file_prefix, write_to_zipapp

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent
PACKAGE = "termsprawlctl"
OLDEST = (3, 9)
# A variable that names the Pythons to make bytecode with, where they are not to be looked for.
CHOSEN = "BUILD_PYTHONS"
FIRST_LINE = b"#!/bin/sh\n"
# The earliest time that a zip entry can carry.
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
# What follows shiv's first line; the shell reads no further than its last line.
# Python isolated (-I: no PYTHON* variable, no user site, no current directory), without
# site hooks (-S, most of a bare start), writing no bytecode (-B), and with UTF-8 for
# arguments and paths in every locale (-Xutf8). A Ctrl-C that finds Python starting up gets
# a traceback out of it: at a terminal it is ignored for that moment, and -Xsigint tells
# the program to listen again.
# With -c and not as an archive: to run one, Python loads runpy with all that this needs and the archive's directory,
# as much as a whole bare start (3.11), or two and a half of them (3.9).
LAUNCHER = """\
command -v python3 >/dev/null 2>&1 || {{ echo "$0: needs python3, 3.9 or newer" >&2; exit 127; }}
[ -t 0 ] && trap "" INT && exec python3 -ISBXutf8 -Xsigint -c '{boot}' "$0" "$@"
exec python3 -ISBXutf8 -c '{boot}' "$0" "$@"
"""
BOOT = 'import sys; del sys.argv[0]; file = open(sys.argv[0], "rb"); file.seek({at:6}); exec(file.read({size:6}))'
# Loaded before Python is isolated where somebody starts it as `python3 termsprawlctl`:
# stored as they are, because unpacking would import zlib from wherever PYTHONPATH says.
STORED = ("__main__.py", f"{PACKAGE}/__init__.py", f"{PACKAGE}/__main__.py")
# For whoever starts it as `python3 termsprawlctl`.
MAIN = BOOT.replace("del sys.argv[0]; ", "").replace("; ", "\n") + "\n"
START = ROOT / "tools" / "archive_main.py"
# What a quick start loads is there as bytecode, too, for each Python that is found at build.
# By groups, between the file's first lines and the archive: zipimport would find, check and unpack each module by
# itself, after reading the archive's whole directory, which `doctor` need not read at all now. Elsewhere compiling
# costs less than the command's own work.
GROUPS = {
    # before the first line of `doctor` and `call`
    "start": """
        __init__ __main__
        base base.console base.errors base.files base.jsontext base.waiting
        cli cli.fields cli.parser cli.results cli.commands cli.commands.call cli.commands.doctor
        app app.discovery app.http1 app.peer app.transport
    """,
    # on top of it, before the first answer of `mcp`; what `mcp agent` adds would take the file over 1 MiB
    "more": """
        app.bridge base.layout base.log base.program base.text base.threads cli.commands.mcp
        mcp mcp.calls mcp.dispatch mcp.options mcp.protocol mcp.provider mcp.server mcp.stdio mcp.work mcp.workers
        operations operations.arguments operations.guides operations.schema operations.table
    """,
}
# The versions that a release has to carry.
RELEASED_FOR = tuple((3, minor) for minor in range(9, 16))
# Run with a fixed hash seed in a fresh interpreter: the order of constants in a compiled module depends on both.
# Reads the sources of the groups from stdin; writes its version, its magic number, and each group's code by module.
# Without column positions (Python 3.11 and newer), which only tracebacks show, without docstrings, and without what
# only mypy reads: annotations and `if TYPE_CHECKING`. None of these modules looks at annotations.
COMPILER = """
import ast, importlib.util, marshal, sys
if sys.implementation.name != "cpython":
    sys.exit("no CPython")
class Untyped(ast.NodeTransformer):
    def visit_arg(self, node):
        node.annotation = None
        return node
    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)
    def visit_AnnAssign(self, node):
        new = ast.Assign([node.target], node.value) if node.value else ast.Pass()
        return ast.copy_location(new, node)
    def visit_ImportFrom(self, node):
        return ast.copy_location(ast.Pass(), node) if node.module == "__future__" else node
    def visit_If(self, node):
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)
made = []
for sources in marshal.load(sys.stdin.buffer):
    modules = {}
    for path, source in sources:
        tree = Untyped().visit(ast.parse(source, path))
        code = compile(tree, path, "exec", dont_inherit=True, optimize=2)
        name = path[:-3].replace("/", ".")
        modules[name[:-9] if name.endswith(".__init__") else name] = (path, marshal.dumps(code))
    made.append(marshal.dumps(modules, 2))
magic = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
sys.stdout.buffer.write(marshal.dumps((tuple(sys.version_info[:2]), magic, made)))
"""


def entries() -> dict[str, bytes]:
    """Archive name to content, for everything that the running program reads."""
    found = {}
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


def group_of(path: str) -> str | None:
    """The group of bytecode that an archive entry belongs to."""
    module = path.removeprefix(f"{PACKAGE}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return next((group for group, modules in GROUPS.items() if module in modules.split()), None)


def pythons() -> list[str]:
    """The CPythons of this machine, this one first: on PATH, of a version manager, the tests' counterparts."""
    if os.environ.get(CHOSEN):
        return os.environ[CHOSEN].split(os.pathsep)
    home = os.environ.get("PYENV_ROOT", os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".pyenv"))
    found = [sys.executable]
    for pattern in (
        *(os.path.join(folder, "python3.*") for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)),
        os.path.join(home, "versions", "*", "bin", "python"),
        str(ROOT / ".counterparts" / "programs" / "python3.*"),
    ):
        found += [path for path in sorted(glob(pattern)) if re.fullmatch(r"python(3\.\d+(-\w+)?)?", Path(path).name)]
    return [path for path in found if "shims" not in path and os.access(path, os.X_OK)]


class Bytecode(NamedTuple):
    """What one Python made of the groups, each packed."""

    version: tuple[int, int]
    magic: int
    groups: list[bytes]


def compiled(sources: dict[str, bytes]) -> list[Bytecode]:
    """Bytecode of the groups for each Python that is found, oldest first; others run from the sources."""
    groups = [[(name, sources[name]) for name in sorted(sources) if group_of(name) == group] for group in GROUPS]
    given = marshal.dumps(groups, 2)
    environment = {"PYTHONHASHSEED": "0", "PATH": os.environ.get("PATH", os.defpath)}
    found: dict[tuple[int, int], Bytecode] = {}
    for python in pythons():
        # Not -I: that ignores the hash seed.
        command = [python, "-s", "-S", "-X", "no_debug_ranges", "-c", COMPILER]
        done = subprocess.run(command, env=environment, input=given, capture_output=True, check=False)
        if done.returncode == 0:
            version, magic, made = marshal.loads(done.stdout)  # noqa: S302 - of the program above
            if version >= OLDEST and version not in found:
                found[version] = Bytecode(version, magic, [zlib.compress(group, 9) for group in made])
    return [found[version] for version in sorted(found)]


def start(bytecode: list[Bytecode]) -> tuple[bytes, bytes]:
    """(everything before the archive but the first line, the archive's __main__.py)."""
    rows = [(in_words([one.version]), one.magic, tuple(map(len, one.groups))) for one in bytecode]
    text = re.sub(rb"\n\s*\n", b"\n", without_comments(START.read_bytes())).replace(
        b"VERSIONS = ()", f"VERSIONS = {tuple(rows)}".encode()
    )
    boot = BOOT.format(at=0, size=0)
    at = len(FIRST_LINE) + len(LAUNCHER.format(boot=boot))
    launcher = LAUNCHER.format(boot=BOOT.format(at=at, size=len(text)))
    blobs = b"".join(group for one in bytecode for group in one.groups)
    return launcher.encode() + text + blobs, MAIN.format(at=at, size=len(text)).encode()


def build(target: Path, required: tuple[tuple[int, int], ...] = ()) -> list[tuple[int, int]]:
    """Write the archive; the file at target is replaced only when the new one is whole.

    Returns the versions of Python that it carries bytecode for. Raises SystemExit where a required one is missing.
    """
    sources = entries()
    bytecode = compiled(sources)
    versions = [one.version for one in bytecode]
    missing = [version for version in required if version not in versions]
    if missing:
        raise SystemExit(f"no bytecode without its Python: {in_words(missing)} not found on this machine")
    head, main = start(bytecode)
    contents = {**sources, "__main__.py": main}
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write_file_prefix(stream, "/bin/sh")
            stream.write(head)
            with zipfile.ZipFile(stream, "w", compresslevel=9) as archive:
                for name in sorted(contents):
                    packing = zipfile.ZIP_STORED if name in STORED else zipfile.ZIP_DEFLATED
                    write_to_zipapp(archive, name, contents[name], ENTRY_TIME, packing)
        os.chmod(scratch, 0o755)  # noqa: S103 - a program for everybody to run
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise

    return versions


def in_words(versions: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in versions)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the single executable file.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist" / PACKAGE)
    parser.add_argument("--release", action="store_true", help=f"fail unless all are there: {in_words(RELEASED_FOR)}")
    options = parser.parse_args()
    versions = build(options.output, RELEASED_FOR if options.release else ())
    size = options.output.stat().st_size / 1024
    print(f"built {options.output} ({size:.1f} KiB, with bytecode for Python {in_words(versions)})")


if __name__ == "__main__":
    main()
