"""Does the built file hold? `python soak/soak.py dist/termsprawlctl [--short] [--json]`, or `make soak`.

Three parts: `calls`, one MCP server through 100,000 calls while the app is started anew; `runs`, one agent server
through 200 runs; `host`, an embedded host through hundreds of terminals. Each answer is checked; memory,
descriptors, threads, child processes and temporary files are measured on the way. Exits with 1 unless every answer
was right and came once, and all of that is flat.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time

import soak_calls
import soak_host
import soak_runs
from support.footprint import MEMORY_SHARE, Sample, at_points, growth, verdict
from support.machine import described

PARTS = {
    "calls": lambda program, short, tell: soak_calls.soak(
        program,
        soak_calls.SHORT_CALLS if short else soak_calls.CALLS,
        soak_calls.SHORT_RESTARTS if short else soak_calls.RESTARTS,
        tell=tell,
    ),
    "runs": lambda program, short, tell: soak_runs.soak(
        program, soak_runs.SHORT_RUNS if short else soak_runs.RUNS, short=short, tell=tell
    ),
    "host": lambda program, short, tell: soak_host.soak(
        program, soak_host.SHORT_TERMINALS if short else soak_host.TERMINALS, tell
    ),
}
COLUMNS = ("process", "at", "RSS KiB", "PSS KiB", "anonymous KiB", "descriptors", "threads", "children", "temp files")


def soak(program: str, parts: list[str], *, short: bool, tell) -> dict:
    """Run these parts; the report. tell(line) follows it."""
    report: dict = {"machine": described(program), "parts": {}, "ok": True}
    for name in parts:
        tell(f"{name}: warming up")
        told = [0.0]

        def share_done(share: float, name: str = name, told: list = told) -> None:
            if share - told[-1] >= 0.099:
                told.append(share)
                tell(f"{name}: {share:.0%}")

        part = PARTS[name](program, short, share_done)
        judge(part)
        report["parts"][name] = part
        report["ok"] = report["ok"] and part["ok"]
    return report


def judge(part: dict) -> None:
    """Add to a part what is not flat, and whether all of it is as it has to be."""
    share = part.get("memory_share", MEMORY_SHARE)
    judged = {name: verdict(taken, share) for name, taken in part["processes"].items()}
    part["not_flat"] = [f"{name}: {fault}" for name, faults in judged.items() for fault in faults]
    wrong = sum(part["counts"][name] for name in ("duplicate", "wrong", "lost"))
    part["ok"] = not (part["not_flat"] or part["faults"] or wrong)


def show(report: dict) -> None:
    """For people."""
    for name, value in report["machine"].items():
        print(f"{name:9}{value}")
    for part in report["parts"].values():
        print(f"\n{part['what']}, in {part['seconds']:.0f} s")
        print("  " + ", ".join(f"{name} {count:,}" for name, count in part["counts"].items()))
        print_table([COLUMNS, *(row for name, taken in part["processes"].items() for row in _rows(name, taken))])
        for fault in [*part["faults"], *part["not_flat"]]:
            print(f"  NOT SO: {fault}")
        print(f"  {'every answer is right, and all is flat' if part['ok'] else 'it does NOT hold'}")


def _rows(name: str, taken: list[Sample]):
    for one in at_points(taken):
        at = "warm-up" if one.done == 0 else f"{one.done:.0%}"
        yield [name, at, *(f"{value:,}" for value in one[1:])]
    yield [name, "growth", *(f"{growth(taken, column):+,.0f}" for column in Sample._fields[1:])]


def print_table(rows: list) -> None:
    """The first column left, all others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  " + "  ".join(cells).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the built file for long, and see whether it holds.")
    parser.add_argument("program", help="the built file")
    parser.add_argument("--short", action="store_true", help="some seconds of each part")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be given again")
    parser.add_argument("--json", action="store_true", help="the whole report, with all samples, as one JSON object")
    options = parser.parse_args()
    if not os.path.exists("/proc/self/smaps_rollup"):
        sys.exit("soak: this system does not tell what memory a process has to itself (/proc/PID/smaps_rollup).")
    begun_s = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun_s:6.0f} s  {line}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="s") as folder:
        # A copy, so that a build that goes on meanwhile does not change it under those who run it.
        program = shutil.copy2(options.program, os.path.join(folder, "termsprawlctl"))
        report = soak(program, options.part or list(PARTS), short=options.short, tell=tell)
    if options.json:
        for part in report["parts"].values():
            part["processes"] = {name: [one._asdict() for one in taken] for name, taken in part["processes"].items()}
        print(json.dumps(report, indent=2))
    else:
        show(report)
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
