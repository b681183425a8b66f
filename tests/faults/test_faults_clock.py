"""The wall clock can be set at any time: nobody waits, or gives up, by it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent.parent / "termsprawlctl"
# All that may look at it: each compares it with a time that came from outside, or writes it down.
USERS = {
    "agents/server/outputs.py": "which of the kept files is the oldest",
    "host/daemon/audit.py": "when something happened, for people",
    "host/terminals/shells/commands.py": "scripts of commands that were killed long ago",
    "host/daemon/lock.py": "the age of another program's file",
    "host/terminals/panes.py": "when a person typed, as tmux noted it",
    "host/canvas/project_file.py": "whether a file changed within the grain of its file system's times",
    "host/registry/sessions.py": "whether a directory changed within the grain of its file system's times",
    "host/messaging/links.py": "when a link was made, for other programs that read the project file",
    "host/messaging/tasks.py": "when a task was made, which outlives this process",
    "windows/spawn.py": "launchers that were left long ago",
    "share/shell.py": "how long a share has run, and how long it will",
    "share/sharing/process.py": "when a share began and ends, for other commands",
    "share/sharing/view.py": "when a person typed, as tmux noted it",
}
CLOCKS = {("time", "time"), ("time", "time_ns"), ("time", "localtime"), ("datetime", "now"), ("datetime", "utcnow")}


def looks_at_the_clock(path: Path) -> bool:
    names = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)]
    return any(isinstance(node.value, ast.Name) and (node.value.id, node.attr) in CLOCKS for node in names)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_what_has_to_looks_at_the_wall_clock(path):
    assert looks_at_the_clock(path) == (str(path.relative_to(PACKAGE)) in USERS), "wait and give up by time.monotonic()"
