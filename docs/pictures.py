"""Make docs/canvas.svg and docs/session.svg out of the program itself: `make docs`.

A host in a temporary directory, real terminals in it, and this program's own picture of them.
Ids are replaced, so that a picture changes only when what it shows does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, LINE, MARGIN = 860, 19, 16
PATIENCE_S = 20.0


class Shell:
    """Runs the program as a person does, in a project of its own in a temporary home."""

    def __init__(self, program: Path, home: Path, project: str) -> None:
        self.project = home / project
        self.project.mkdir()
        self.environment = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "SHELL": "/bin/bash",
            "PS1": "$ ",
            "BASH_SILENCE_DEPRECATION_WARNING": "1",
        }

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["termsprawlctl", *words],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.rstrip()

    def call(self, operation: str, *fields: str, field: str = "value.nodeId") -> str:
        return self.run("call", operation, *fields, "--field", field)

    def wait_for(self, node: str, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self.call("terminal_read", f"nodeId={node}", field="value.output"):
            if time.monotonic() > end:
                sys.exit(f"{text!r} did not appear in the terminal {node}")
            time.sleep(0.1)


def canvas(shell: Shell) -> str:
    """A canvas with two terminals, a note and a link, drawn by `map`."""
    nodes = []
    for title, x, command, awaited in (
        ("build", 40, "for i in 1 2 3; do echo compiling part $i; done", "compiling part 3"),
        ("tests", 620, "echo 214 passed, 0 failed", "214 passed, 0"),
    ):
        node = shell.call("terminal_open", f"title={title}")
        shell.call("canvas_move", f"nodeId={node}", f"x:={x}", "y:=40")
        shell.call("canvas_resize", f"nodeId={node}", "width:=500", "height:=260")
        shell.call("terminal_submit", f"nodeId={node}", "command=PS1='$ '; clear")
        shell.call("terminal_submit", f"nodeId={node}", f"command={command}")
        shell.wait_for(node, f"\n{awaited}")
        nodes.append(node)
    note = shell.call("sticky_open", "text=The tests start when the build is done.")
    shell.call("canvas_move", f"nodeId={note}", "x:=340", "y:=340")
    shell.run("host", "link", *nodes)
    return without_ids(shell.run("map", "--svg", "-", "--screens"))


SESSION = (
    ("node=$(termsprawlctl call terminal_open title=build --field value.nodeId)", ()),
    (
        "termsprawlctl call terminal_run nodeId=$node command='cd / && pwd' --field value.output",
        ("call", "terminal_run", "command=cd / && pwd", "--field", "value.output"),
    ),
    (
        "termsprawlctl call terminal_run nodeId=$node command='test -e missing' --field value.exitStatus",
        ("call", "terminal_run", "command=test -e missing", "--field", "value.exitStatus"),
    ),
    ("termsprawlctl map", ("map",)),
)


def session(shell: Shell) -> str:
    """A short session at a shell, with what each command printed."""
    node = shell.call("terminal_open", "title=build")
    lines = ['$ eval "$(termsprawlctl host start)"']
    for shown, words in SESSION:
        lines.append(f"$ {shown}")
        if words:
            own = (f"nodeId={node}",) if words[0] == "call" else ()
            lines += shell.run(*words[:2], *own, *words[2:]).splitlines()
    return drawn(without_ids("\n".join(lines)).splitlines())


def drawn(lines: list[str]) -> str:
    """Lines of a terminal as SVG, commands brighter than what they print."""
    height = len(lines) * LINE + 2 * MARGIN
    font = 'font-family="monospace" font-size="14"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>',
        "<title>A session at a shell</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#1e293b"/>',
    ]
    for at, line in enumerate(lines):
        text = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        ink = "#f8fafc" if line.startswith("$") else "#86efac"
        y = MARGIN + LINE * at + 14
        parts.append(f'<text x="{MARGIN}" y="{y}" fill="{ink}" xml:space="preserve">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def without_ids(text: str) -> str:
    """Ids that are the same in every picture, and as long as real ones."""
    ids: dict[str, str] = {}
    return re.sub(
        r"\bn-[0-9a-f]{12}\b", lambda match: ids.setdefault(match[0], f"n-{len(ids) + 1}{'23456789abc'}"), text
    )


def main() -> None:
    program = HERE.parent / "dist" / "termsprawlctl"
    with tempfile.TemporaryDirectory() as home:
        shells = [Shell(program, Path(home), name) for name in ("canvas", "session")]
        try:
            for shell, make in zip(shells, (canvas, session)):
                shell.run("host", "start")
                (HERE / f"{shell.project.name}.svg").write_text(make(shell), encoding="utf-8")
        finally:
            shells[0].run("host", "stop", "--kill-sessions")


if __name__ == "__main__":
    main()
