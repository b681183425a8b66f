"""Measure the built file: `python bench/bench.py dist/termsprawlctl [--json | --markdown] [--short]`, or `make bench`.

Everything is measured side by side: one run of each program after the other, many rounds, medians. Only the ratios
mean something on another machine. `--markdown` prints the tables of figures in docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time

import bench_agents
import bench_host
import bench_mcp
import bench_pythons
import bench_start
from support.figures import Row, table
from support.machine import described

# Rounds of each part: (in full, in the short form).
ROUNDS = {"pythons": (25, 1), "start": (25, 2), "mcp": (15, 1), "host": (25, 2), "agents": (7, 1)}
TITLES = {
    "start": "one command, from its start to its end",
    "mcp": "the MCP bridge",
    "host": "the embedded host",
    "agents": "a coding agent behind a tool",
}
# Every row that there is, so that none gets lost unnoticed.
KEYS = [
    *(
        f"doctor {what}/{other}"
        for what in ("wall", "cpu", "memory")
        for other in ("bare", "plain", "module", "shiv", "node")
    ),
    *(f"{what}/{other}" for what in ("list", "list memory") for other in ("bare", "python", "typescript")),
    *(f"call/{other}" for other in ("direct", "python", "typescript")),
    *(f"{what}/{other}" for what in ("call added", "rate", "call memory") for other in ("python", "typescript")),
    *bench_host.KEYS,
    *("run mcp/bare", "run shell/bare", "run end", "flood/small", "stubborn end"),
]


class Figures:
    """The rows by key, and their values in the words of docs/performance.md."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = {row.key: row for row in rows}

    def times(self, key: str) -> str:
        """A ratio."""
        ratio = self._row(key).ratio
        if ratio is None:
            raise Unmeasured(self._row(key).absent)
        return f"{ratio:.1f} times" if ratio >= 1.995 else f"{ratio:.2f} times"

    def ours(self, key: str) -> str:
        """Our own value with its unit."""
        row = self._row(key)
        if row.ours is None:
            raise Unmeasured(row.absent)
        return f"{row.ours:,.0f} {row.unit}" if row.ours >= 100 else f"{row.ours:.1f} {row.unit}"

    def _row(self, key: str) -> Row:
        if key not in self._rows:
            raise Unmeasured("not in this run")
        return self._rows[key]


class Unmeasured(Exception):
    """A figure that this run does not have; the text says why."""


# docs/performance.md's table: what, and the figure out of a run's rows.
FIGURES = (
    ("`doctor` against the same code by `python3 -m`", lambda f: f.times("doctor wall/module")),
    ("… against stock shiv packaging of it", lambda f: f.times("doctor wall/shiv")),
    (
        "… against a 30-line Node.js client",
        lambda f: f"{f.times('doctor wall/node')}, {f.times('doctor memory/node')} its memory",
    ),
    (
        "first `tools/list` of `mcp` against a server on the official Python SDK",
        lambda f: f"{f.times('list/python')}, {f.times('list memory/python')} its memory",
    ),
    (
        "… against one on the official TypeScript SDK",
        lambda f: f"{f.times('list/typescript')}, {f.times('list memory/typescript')} its memory",
    ),
    (
        "a call through `mcp` against the same call over HTTP alone",
        lambda f: f"{f.times('call/direct')}, {f.ours('call/direct')}",
    ),
    ("… against a bridge on the Python SDK", lambda f: f.times("call/python")),
    ("… against a bridge on the TypeScript SDK", lambda f: f.times("call/typescript")),
    (
        "calls through one `mcp`, eight in flight",
        lambda f: (
            f"{f.ours('rate/python')}, {f.times('rate/python')} the Python SDK's, "
            f"{f.times('rate/typescript')} the TypeScript SDK's"
        ),
    ),
    (
        "`session_info` of the embedded host against a server in Node: one client, eight",
        lambda f: f"{f.times('host session_info 1/node')}, {f.times('host session_info 8/node')}",
    ),
    (
        "… `canvas_list`",
        lambda f: f"{f.times('host canvas_list 1/node')}, {f.times('host canvas_list 8/node')}",
    ),
    (
        "… CPU for each call of `session_info`, of `canvas_list`, and memory",
        lambda f: (
            f"{f.times('host cpu session_info 8/node')}, {f.times('host cpu canvas_list 8/node')}, "
            f"{f.times('host memory/node')}"
        ),
    ),
    (
        "… CPU for `canvas_move` of one of 3,000 notes, and for `canvas_list` of all",
        lambda f: (
            f"{f.ours('host cpu large canvas_move/node')}, {f.times('host cpu large canvas_move/node')}; "
            f"{f.ours('host cpu large canvas_list/node')}, {f.times('host cpu large canvas_list/node')}"
        ),
    ),
    ("a codex run through `mcp agent` against the bare CLI", lambda f: f.times("run mcp/bare")),
    ("… through `agent run`", lambda f: f.times("run shell/bare")),
    ("memory of `mcp agent` while its agent prints 100 MB", lambda f: f.ours("flood/small")),
)


def markdown(rows: list[Row]) -> str:
    """The table of docs/performance.md."""
    figures = Figures(rows)
    lines = ["| what | figure |", "|---|---|"]
    for what, figure in FIGURES:
        try:
            lines.append(f"| {what} | {figure(figures)} |")
        except Unmeasured as reason:
            lines.append(f"| {what} | not measured: {reason} |")
    return "\n".join(lines)


def measure(program: str, *, short: bool, tell) -> dict[str, list[Row]]:
    """All parts; tell(line) follows them."""
    rounds = {name: counts[short] for name, counts in ROUNDS.items() if name in TITLES}
    parts = {
        "start": lambda: bench_start.rows(program, rounds["start"]),
        "mcp": lambda: bench_mcp.rows(program, rounds["mcp"]),
        "host": lambda: bench_host.rows(program, rounds["host"]),
        "agents": lambda: bench_agents.rows(program, rounds["agents"], short=short),
    }
    found = {}
    for name, part in parts.items():
        tell(f"{TITLES[name]}, medians of {rounds[name]} rounds")
        found[name] = part()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the built file.")
    parser.add_argument("program", help="the built file")
    parser.add_argument(
        "--short", action="store_true", help="few rounds: whether all can be measured, no figures to keep"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="all rows, the machine and the figures as one JSON object")
    how.add_argument("--markdown", action="store_true", help="the tables of docs/performance.md")
    options = parser.parse_args()
    begun_s = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun_s:6.0f} s  {line}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="b") as folder:
        # A copy, so that a build that goes on meanwhile does not change it under those who run it.
        program = shutil.copy2(options.program, os.path.join(folder, "termsprawlctl"))
        machine = described(program)
        machine["site"] = f"{bench_start.site_modules()} modules that a plain start of Python loads beyond its own"
        tell(f"the start with every Python, least of {ROUNDS['pythons'][options.short]} rounds")
        starts = bench_pythons.starts(program, ROUNDS["pythons"][options.short])
        parts = measure(program, short=options.short, tell=tell)
    rows = [row for part in parts.values() for row in part]
    if options.json:
        report = {"machine": machine, "short": options.short, "seconds": time.monotonic() - begun_s}
        report["rows"] = [row.as_dict() for row in rows]
        report["markdown"] = markdown(rows)
        report["starts"] = [row._asdict() for row in starts]
        report["start-up"] = bench_pythons.markdown(starts)
        print(json.dumps(report, indent=2, ensure_ascii=False))
    elif options.markdown:
        print(f"{markdown(rows)}\n\n{bench_pythons.markdown(starts)}")
    else:
        print("\n".join(f"{name:9}{value}" for name, value in machine.items()))
        for name, part in parts.items():
            print(f"\n{TITLES[name]}, medians of {ROUNDS[name][options.short]} interleaved rounds\n{table(part)}")
        print(f"\nthe tables of docs/performance.md\n{markdown(rows)}\n\n{bench_pythons.markdown(starts)}")


if __name__ == "__main__":
    main()
