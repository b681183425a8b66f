"""The short form of `make soak`, and that its verdict can be a bad one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.footprint import COUNTS, POINTS, Sample, growth, sample, verdict
from support.pump import Pump

import soak

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this system has no smaps_rollup")

ROOT = Path(__file__).resolve().parents[2]
WITH_SUPPORT = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}  # as `make` runs it
FLAT = Sample(done=0.0, rss=20_000, pss=12_000, anonymous=11_000, descriptors=9, threads=4, children=0, files=0)


def run_of(change, samples: int = 20) -> list[Sample]:
    """Samples of a made-up run; `change` maps the share done to the fields that differ then."""
    shares = [number / samples for number in range(samples + 1)]
    return [FLAT._replace(done=share, **change(share)) for share in shares]


@pytest.fixture(scope="module")
def report(ctl):
    """(exit status, report) of the short form."""
    command = [sys.executable, ROOT / "soak" / "soak.py", ctl, "--short", "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=280, env=WITH_SUPPORT)
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("part", ["calls", "runs", "host"])
def test_every_answer_is_right_and_comes_once_and_all_is_flat(report, part):
    _, parts = report[0], report[1]["parts"]
    told = parts[part]
    assert told["faults"] == []
    assert told["not_flat"] == []
    assert {told["counts"][name] for name in ("duplicate", "wrong", "lost")} == {0}
    assert told["ok"] is True


def test_the_short_form_has_been_through_all_that_the_long_one_is(report):
    status, told = report
    calls, runs, host = (told["parts"][name]["counts"] for name in ("calls", "runs", "host"))
    assert calls["sent"] > 3_000
    assert all(calls[name] for name in ("restarts", "unavailable", "cancelled", "lists", "bad_lines"))
    assert all(runs[name] for name in ("completed", "failed", "cancelled", "timed_out"))
    assert host["opened"] == host["closed"] > 0
    assert status == 0
    for part in told["parts"].values():
        for taken in part["processes"].values():
            assert [one["done"] for one in taken if one["done"] in POINTS] == list(POINTS)


def test_a_run_that_is_flat_but_for_its_ups_and_downs_is_flat():
    assert verdict(run_of(lambda share: {})) == []
    assert verdict(run_of(lambda share: {"rss": 20_000 + (share * 20 % 3) * 150})) == []
    # One peak that is over again.
    assert verdict(run_of(lambda share: {"rss": 30_000 if share == 0.5 else 20_000})) == []


@pytest.mark.parametrize("column", ["rss", "anonymous"])
def test_memory_that_grows_slowly_and_steadily_is_a_leak(column):
    def leak(share: float) -> dict:
        return {column: getattr(FLAT, column) + round(1_500 * share)}

    (fault,) = verdict(run_of(leak))
    assert fault.startswith(f"{column}: grows by 1500 KiB in a run")
    assert growth(run_of(leak), column) == pytest.approx(1_500, abs=30)


def test_memory_that_grew_at_once_and_stayed_there_is_not_flat():
    (fault,) = verdict(run_of(lambda share: {"rss": 20_000 if share < 0.1 else 24_000}))
    assert fault == "rss: 4000 KiB above the warm-up, 2000 are allowed"


@pytest.mark.parametrize("column", COUNTS)
def test_one_more_of_anything_that_is_counted_is_not_flat(column):
    (fault,) = verdict(run_of(lambda share: {column: getattr(FLAT, column) + (share > 0.6)}))
    assert fault.startswith(f"{column}: {getattr(FLAT, column) + 1} at 65% of the run")


LEAK = """
import os, sys
kept = [[], []]
for line in sys.stdin:
    kept[0].append(bytearray(200_000))
    kept[1].append(open(os.devnull))
    print("done", flush=True)
"""


def test_a_process_that_leaks_is_found_out():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-IS", "-c", LEAK], **pipes) as process:
        taken = []
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            for _ in range(10):
                process.stdin.write("go\n")
                assert process.stdout.readline() == "done\n"
            # Nothing settles here, and there is no need to wait for that.
            taken.append(sample(process.pid, share))
        process.stdin.close()
    told = "\n".join(verdict(taken))
    assert "descriptors: 53 at 100% of the run, 13 after the warm-up" in told
    assert "rss: grows by" in told
    assert "anonymous: grows by" in told


def test_a_part_with_a_lost_answer_does_not_hold():
    part = {
        "processes": {"mcp": run_of(lambda share: {})},
        "faults": [],
        "counts": {"duplicate": 0, "wrong": 0, "lost": 0},
    }
    soak.judge(part)
    assert part["ok"] is True
    part["counts"]["lost"] = 1
    soak.judge(part)
    assert part["ok"] is False


class Babbler:
    """A server that says what it was given to say, whatever it is sent."""

    def __init__(self, *answers: dict) -> None:
        self._answers = list(answers)

    def send(self, *messages: object) -> None:
        """Say nothing to that."""

    def read(self, timeout_s: float) -> dict:
        return self._answers.pop(0)


def test_an_answer_too_many_and_one_too_few_are_counted():
    answers = [{"id": 1_000_000, "result": 1}, {"id": 1_000_000, "result": 1}, {"id": 1_000_002, "result": 3}]
    pump = Pump(Babbler(*answers))
    assert pump.send(*(("ping", None, entry) for entry in ("first", "second", "third"))) == [
        *range(1_000_000, 1_000_003)
    ]
    assert [pump.next()[0], pump.next()[0]] == ["first", "third"]
    pump.close_ledger()
    assert pump.counts == {"sent": 3, "answered": 2, "duplicate": 1, "wrong": 0, "lost": 1}
    assert "no answer to 1000001: 'second'" in pump.faults
