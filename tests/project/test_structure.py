"""The house as README.md draws it: who may import whom, and how large a module may grow."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "termsprawlctl"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# From the ground up: a room may use those on the floors below it, and itself.
FLOORS = [
    {""},  # the modules that stand in no package
    {"mcp"},
    {"session"},
    {"agents", "canvasmap", "completion", "explain", "host", "install", "tui"},
    {"commands"},
]
ABOVE_ALL = {"termsprawlctl.cli.parser", "termsprawlctl.__main__", "termsprawlctl"}
# Rooms beside each other that build on one another.
NEIGHBOURS = {("canvasmap", "host"), ("completion", "host"), ("explain", "host"), ("install", "host")}
MAX_LINES = 320


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or (PACKAGE / parts[-1]).is_dir() else ""


def floor(module: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room(module) in rooms)


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


@pytest.mark.parametrize("module", sorted(set(MODULES) - ABOVE_ALL))
def test_a_module_imports_only_from_its_own_floor_or_below(module):
    for other in imports(module, everywhere=True):
        if other == "termsprawlctl" or (room(module), room(other)) in NEIGHBOURS:
            continue
        if room(other) == "" and other in ABOVE_ALL:
            # The completion and the commands look at the tree of commands that they are part of.
            assert room(module) in ("commands", "completion"), f"{module} imports {other}"
            continue
        assert floor(other) < floor(module) or room(other) == room(module), f"{module} imports {other}"


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


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_stays_small_enough_to_read_at_once(module):
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_only_one_module_starts_tmux_by_its_name():
    users = {module for module, path in MODULES.items() if re.search(r"\[\s*[\"']tmux[\"']", path.read_text())}
    assert users <= {"termsprawlctl.base.tmux"}


def test_nothing_evaluates_text_or_goes_through_a_shell():
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                assert name not in ("eval", "exec", "system", "popen"), f"{module}:{node.lineno}"
                assert not any(word.arg == "shell" for word in node.keywords), f"{module}:{node.lineno}"
