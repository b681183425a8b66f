"""Threads that have begun when start() returns, or never will."""

from __future__ import annotations

import _thread
import threading

import pytest

from termsprawlctl.base import threads


def test_a_thread_runs_beside_its_starter():
    gate, done = threading.Event(), threading.Event()
    threads.start(lambda: gate.wait(20) and done.set())
    assert not done.is_set()
    gate.set()
    assert done.wait(20)


def test_nobody_waits_for_ever_for_a_thread_that_died_before_its_first_word(monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: 1)
    monkeypatch.setattr(threads, "BEGIN_S", 0.01)
    with pytest.raises(RuntimeError, match="did not begin"):
        threads.start(lambda: None)


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch):
    late, ran = [], []
    monkeypatch.setattr(_thread, "start_new_thread", lambda enter, _arguments: late.append(enter))
    monkeypatch.setattr(threads, "BEGIN_S", 0.01)
    with pytest.raises(RuntimeError):
        threads.start(lambda: ran.append(True))
    late[0]()
    assert ran == []


def test_one_that_nobody_waits_for_holds_nobody_up(monkeypatch):
    never_begins = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda enter, _arguments: never_begins.append(enter))
    threads.start_unawaited(lambda: None)
    assert len(never_begins) == 1


def test_whoever_started_a_thread_can_wait_for_its_end():
    gate = threading.Event()
    running = threads.start(lambda: gate.wait(20))
    assert not running.join(0.001)
    gate.set()
    assert running.join(20)
    assert running.join()
