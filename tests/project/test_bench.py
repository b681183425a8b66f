"""The benchmark's short form measures all that there is, and docs/performance.md shows the rows that it prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import bench_pythons
import pytest
from support import pythons
from support.figures import Row, compared, table

import bench

ROOT = Path(__file__).resolve().parents[2]
WITH_SUPPORT = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}  # as `make` runs it
FIGURES = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(ctl):
    command = [sys.executable, ROOT / "bench" / "bench.py", ctl, "--short", "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=280, env=WITH_SUPPORT)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_the_table_is_whole(report):
    rows = [Row(**{name: row[name] for name in Row._fields}) for row in report["rows"]]
    assert [row.key for row in rows if not row.is_whole()] == []
    assert sorted(row.key for row in rows) == sorted(bench.KEYS)
    for row in rows:
        assert row.absent == "" or len(row.absent) > 10, "a row that was not measured says why"


def test_what_cannot_be_missing_is_measured(report):
    unmeasured = {row["key"] for row in report["rows"] if row["absent"]}
    needs_nothing = {"doctor wall/bare", "list/bare", "call/direct", "host memory/node", "flood/small", "stubborn end"}
    assert unmeasured & needs_nothing == set()


def test_the_machine_and_the_versions_stand_above_it(report):
    machine = report["machine"]
    assert {"machine", "kernel", "python", "node", "tmux", "sdks", "codex", "file"} <= set(machine)
    assert re.search(r"\d+ x .+, \d+ GiB, load", machine["machine"])
    assert re.search(r"termsprawlctl \S+, \d+ KiB, sha256 [0-9a-f]{64}", machine["file"])


def test_every_python_has_its_start(report):
    names = {f"{major}.{minor}" for major, minor in pythons.installed() if (major, minor) >= pythons.OLDEST}
    rows = [bench_pythons.Start(**row) for row in report["starts"]]
    assert {row.python for row in rows} == names
    for row in rows:
        assert min(row[1:]) > 0, row
    lines = report["start-up"].splitlines()
    assert (lines[0], len(lines)) == (bench_pythons.HEAD, 2 + len(names))


def test_the_document_has_the_start_of_every_python_in_the_form_of_the_benchmark():
    table = FIGURES.partition("## Start-up")[2].partition(f"{bench_pythons.HEAD}\n")[2].partition("\n\n")[0]
    rows = table.splitlines()[1:]
    shown = bench_pythons.markdown([bench_pythons.Start("3.9", 7.2, 2.2, 2.1, 3.5, 9.5)]).splitlines()[2]
    form = re.sub(r"\\?\d+(\\?\.\d+)?", r"[\\d.]+", re.escape(shown))
    assert [row.split("|")[1].strip() for row in rows][:5] == ["3.9", "3.10", "3.11", "3.12", "3.13"]
    assert [row for row in rows if not re.fullmatch(form, row)] == []


def test_each_figure_of_the_document_comes_out_of_it(report):
    lines = report["markdown"].splitlines()
    assert _names(report["markdown"]) == [what for what, _ in bench.FIGURES]
    for line in lines[2:]:
        assert re.search(r"\| (\d[\d,.]* (times|MiB|ms|per s)|not measured: .+)", line), line


def test_the_document_shows_the_rows_that_the_benchmark_prints():
    section = FIGURES.partition("## Figures")[2].partition("\n## ")[0]
    assert _names(section) == [what for what, _ in bench.FIGURES]


def _names(text: str) -> list[str]:
    """The first cells of a table."""
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == "what"
    return rows[1:]


def test_what_was_not_measured_says_why_in_every_form():
    why = "shiv is not installed"
    (row,) = compared("doctor wall", "doctor: wall time", [0.02, 0.04, 0.03], {"stock shiv": ("shiv", why)}, "ms", 1000)
    assert row == Row("doctor wall/shiv", "doctor: wall time", 30.0, None, "stock shiv", "ms", why)
    assert row.is_whole()
    assert why in table([row])
    assert f"| … against stock shiv packaging of it | not measured: {why} |" in bench.markdown([row])


def test_a_row_without_a_finite_ratio_is_not_whole():
    assert Row("k", "what", 1.0, 2.0, "other", "ms").is_whole()
    assert not Row("k", "what", None, None, "other", "ms").is_whole()
    assert not Row("k", "what", 1.0, 0.0, "other", "ms").is_whole()
    assert not Row("k", "what", float("nan"), 2.0, "other", "ms").is_whole()


def test_medians_are_compared():
    rows = compared("k", "what", [1.0, 100.0, 2.0], {"a": ("a", [4.0, 4.0, 900.0]), "b": ("b", [1.0])}, "ms")
    assert [(row.key, row.ratio) for row in rows] == [("k/a", 0.5), ("k/b", 2.0)]
