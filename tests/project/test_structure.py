"""The house as docs/architecture.md draws it: which rooms there are, who may import whom, how long things may grow."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "termsprawlctl"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# From the ground up: a room imports from the floors below it, and from itself.
FLOORS = (
    ("base",),
    ("mcp", "operations"),
    ("app",),
    ("agents", "install", "share", "windows"),
    ("host", "reach"),
    ("doctor", "view"),
    ("cli",),
)
# The same inside the rooms that have rooms of their own.
INNER_FLOORS = {
    "agents": (("model",), ("clis",), ("runs",), ("server",), ("asking",), ("shell", "listing")),
    "host": (
        ("canvas", "registry"),
        ("launch", "messaging"),
        ("terminals",),
        ("operations",),
        ("http",),
        ("daemon",),
    ),
}
# The entry starts everything; the package itself holds the version alone.
ENTRY, VERSION = "termsprawlctl.__main__", "termsprawlctl"
MAX_ROW = 16
# One small file a command: that row may be as long as the list of commands.
ANY_LENGTH = {"cli/commands"}
# Still to be cut; a line that nothing needs any more fails.
TOO_LONG: set[str] = set()
STILL_UP: set[tuple[str, str]] = set()
MAX_FUNCTION_LINES = 60
MAX_CLASS_LINES = 300


def floors_of(place: tuple[str, ...]) -> dict[str, int]:
    """The floor of each room in a list of floors."""
    return {room: number for number, rooms in enumerate(place) for room in rooms}


def imports(module: str, *, everywhere: bool) -> set[str]:
    """The package's own modules that a module imports; at its start only, unless everywhere."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if everywhere else tree.body
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
            source = f"{base}.{node.module}" if node.module else base
            for name in node.names:
                full = f"{source}.{name.name}"
                found.add(full if full in MODULES else source)
    return found & set(MODULES)


def goes_down(module: str, other: str) -> bool:
    """Whether one module may import the other."""
    ours, theirs = module.split(".")[1:], other.split(".")[1:]
    if ours[0] != theirs[0]:
        return floors_of(FLOORS)[theirs[0]] < floors_of(FLOORS)[ours[0]]
    inner = floors_of(INNER_FLOORS.get(ours[0], ()))
    if not inner or len(ours) == 1 or len(theirs) == 1 or ours[1] == theirs[1]:
        return True
    return inner[theirs[1]] < inner[ours[1]]


def test_every_room_has_its_floor():
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in MODULES.values()} - {"."}
    assert {folder for folder in folders if "/" not in folder} == set(floors_of(FLOORS))
    for room, floors in INNER_FLOORS.items():
        inner = {folder.split("/")[1] for folder in folders if folder.startswith(f"{room}/")}
        assert inner <= set(floors_of(floors)), room


@pytest.mark.parametrize("module", sorted(set(MODULES) - {ENTRY, VERSION}))
def test_a_module_imports_nothing_from_above(module):
    above = {other for other in imports(module, everywhere=True) - {VERSION} if not goes_down(module, other)}
    assert above == {other for importer, other in STILL_UP if importer == module}


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: imports(module, everywhere=False) - {module} for module in MODULES}
    # A package's own modules are imported after it has started, so that edge is no circle.
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for other in graph[module]:
                if not module.startswith(other + "."):
                    visit(other, (*trail, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def test_a_row_of_modules_is_taken_in_at_one_look():
    rows = Counter(
        path.parent.relative_to(PACKAGE).as_posix() for path in MODULES.values() if path.name != "__init__.py"
    )
    assert {row: count for row, count in rows.items() if count > MAX_ROW and row not in ANY_LENGTH} == {}


def definitions(kind: type | tuple[type, ...]) -> dict[str, int]:
    """`room/module.py:name` to its number of lines."""
    return {
        f"{path.relative_to(PACKAGE).as_posix()}:{node.name}": node.end_lineno - node.lineno + 1
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kind)
    }


def test_a_function_is_read_at_once():
    lines = definitions((ast.FunctionDef, ast.AsyncFunctionDef))
    assert {name for name, count in lines.items() if count > MAX_FUNCTION_LINES} == TOO_LONG


def test_a_class_is_read_in_one_sitting():
    assert {name: count for name, count in definitions(ast.ClassDef).items() if count > MAX_CLASS_LINES} == {}


def test_only_one_module_starts_tmux_by_its_name():
    users = {module for module, path in MODULES.items() if re.search(r"\[\s*[\"']tmux[\"']", path.read_text())}
    assert users <= {"termsprawlctl.base.tmux"}
