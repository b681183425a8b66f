"""The process table, in both ways of reading it."""

from __future__ import annotations

import errno
import os
import secrets
import subprocess
import sys

import pytest
from support.processes import is_alive
from support.waiting import until

from termsprawlctl.base import processtable
from termsprawlctl.base.processtable import MARKER, Family, descendants, marked, table

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def child():
    """A running process, and the marker in its environment."""
    marker = secrets.token_hex(8)
    process = subprocess.Popen(SLEEP, env={MARKER: marker}, start_new_session=True)
    yield process, marker
    process.kill()
    process.wait()


def test_the_table_knows_this_process_and_its_parent():
    found = table()[os.getpid()]
    assert (found.pid, found.parent, found.zombie) == (os.getpid(), os.getppid(), False)


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="there is no /bin/ps")
def test_ps_tells_the_same_as_proc(child):
    process, _ = child
    by_ps, by_proc = processtable._table_of_ps(), processtable._table_of_proc()
    for pid in (os.getpid(), process.pid):
        assert (by_ps[pid].parent, by_ps[pid].zombie) == (by_proc[pid].parent, by_proc[pid].zombie)
        assert by_ps[pid].born


def test_descendants_are_found_over_generations(child):
    process, _ = child
    assert process.pid in descendants(table(), [os.getpid()])
    assert descendants(table(), [process.pid]) == set()


def test_a_process_is_found_by_the_marker_alone(child):
    process, marker = child
    until(lambda: process.pid in marked(table(), marker), "the marker")
    assert marked(table(), marker[:-1]) == set()
    assert marked(table(), "") == set()


def test_a_number_that_was_given_to_another_process_is_not_taken_for_the_first(child):
    process, marker = child
    family = Family(process.pid + 1_000_000, marker)
    until(lambda: family.look() == [process.pid], "the child")
    family._seen = {process.pid: "another time of birth"}
    family._marker = "gone"
    assert family.look() == []


def test_ending_a_family_ends_what_has_been_seen_even_if_nothing_points_to_it_any_more(child):
    process, marker = child
    family = Family(process.pid + 1_000_000, marker)
    until(lambda: family.look() == [process.pid], "the child")
    family._marker = "gone"
    assert family.end(5.0, 10.0, process.poll) == 0
    assert not is_alive(process.pid)


def test_a_zombie_counts_as_ended():
    process = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: not is_alive(process.pid), "the zombie")
    assert table()[process.pid].zombie
    assert process.pid not in Family(os.getpid(), "none").look()
    process.wait()


def test_one_look_that_misses_a_process_does_not_end_the_search(child, monkeypatch):
    # Reading the table takes its time: a process that forks and exits meanwhile is missed, and its child, too.
    process, marker = child
    until(lambda: process.pid in marked(table(), marker), "the marker")
    real, blind = processtable.table, [True]
    monkeypatch.setattr(processtable, "table", lambda: {} if blind and blind.pop() else real())
    assert Family(process.pid + 1_000_000, marker).end(5.0, 10.0, process.poll) == 0
    assert not is_alive(process.pid)


def test_a_table_that_cannot_be_read_for_a_while_does_not_end_the_search(child, monkeypatch):
    process, marker = child
    until(lambda: process.pid in marked(table(), marker), "the marker")
    real, failures = processtable.table, [1, 2, 3]

    def short_of_descriptors():
        if failures:
            failures.pop()
            raise OSError(24, "Too many open files")
        return real()

    monkeypatch.setattr(processtable, "table", short_of_descriptors)
    assert Family(process.pid + 1_000_000, marker).end(5.0, 10.0, process.poll) == 0
    assert not is_alive(process.pid)


def does_not_start(*_words, **_options):
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


def is_late(argv, **_options):
    raise subprocess.TimeoutExpired(argv, 5.0)


def complains(argv, **_options):
    return subprocess.CompletedProcess(argv, 1, b"", b"ps: /proc must be mounted")


def is_killed(argv, **_options):
    return subprocess.CompletedProcess(argv, -9, b"", b"")


@pytest.mark.parametrize("ps", [does_not_start, is_late, complains, is_killed])
def test_a_ps_that_fails_does_not_say_that_nothing_is_there(monkeypatch, ps):
    monkeypatch.setattr(processtable, "has_proc", lambda: False)
    monkeypatch.setattr(subprocess, "run", ps)
    monkeypatch.delenv(MARKER, raising=False)
    pid = os.getpid()
    for ask in (
        table,
        lambda: marked({}, "mark"),
        lambda: processtable.column("args", pid),
        lambda: processtable.command_line_of(pid),
        lambda: processtable.on_terminal("/dev/pts/0"),
        Family(pid, "mark").look,
    ):
        with pytest.raises(OSError, match=r"\w"):
            ask()
    assert processtable.is_running(pid)
    assert not processtable.inside_a_run()


def test_a_ps_that_finds_no_process_says_so(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 1, b"", b""))
    assert processtable.column("args", 1) == ""
    with pytest.raises(OSError, match="no process"):
        processtable._table_of_ps()


def test_without_descriptors_a_process_is_not_said_to_have_no_environment(monkeypatch):
    def short_of_descriptors(*_words, **_options):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("builtins.open", short_of_descriptors)
    with pytest.raises(OSError, match="Too many"):
        processtable.environment_of(os.getpid())
    assert processtable.is_running(os.getpid())
