"""Which call begins when: the pool's turns, what may be sent behind `initialize`, and steps behind the throttle."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mcp_app import StandInApp
from support.mcp_client import McpServer

from termsprawlctl.mcp import calls
from termsprawlctl.mcp.calls import Call, InFlight, Request
from termsprawlctl.mcp.provider import Turn
from termsprawlctl.mcp.workers import WorkerPool

PATIENCE_S = 20.0


class Jobs:
    """Jobs of a pool that the test begins, passes on and ends by name."""

    def __init__(self, limit: int = 16) -> None:
        self._changed = threading.Condition()
        self._ended: set[str] = set()
        self.started: list[str] = []
        self.pool = WorkerPool(limit, self._run)

    def _run(self, name: str) -> None:
        with self._changed:
            self.started.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: name in self._ended, PATIENCE_S)

    def end(self, *names: str) -> None:
        with self._changed:
            self._ended.update(names)
            self._changed.notify_all()

    def wait_for(self, *names: str) -> bool:
        """Whether these have been started, sooner or later."""
        with self._changed:
            return self._changed.wait_for(lambda: set(names) <= set(self.started), PATIENCE_S)


@pytest.fixture
def jobs():
    made = Jobs()
    yield made
    made.end(*made.started, "first", "second", "third", "other", "free")


def test_jobs_of_one_key_run_one_after_the_other_and_others_at_once(jobs):
    jobs.pool.add("first", Turn("a"))
    jobs.pool.add("second", Turn("a"))
    jobs.pool.add("other", Turn("b"))
    jobs.pool.add("free")
    assert jobs.wait_for("first", "other", "free")
    assert "second" not in jobs.started
    jobs.end("first")
    assert jobs.wait_for("second")


def test_what_reaches_in_begins_once_those_before_it_have_begun(jobs):
    jobs.pool.add("first", Turn("a"))
    jobs.pool.add("second", Turn("a", reaches_in=True))
    jobs.pool.add("third", Turn("a"))
    assert jobs.wait_for("first")
    assert jobs.started == ["first"]
    jobs.pool.begun("first")
    assert jobs.wait_for("second")
    jobs.end("second")
    jobs.pool.add("free")
    assert jobs.wait_for("free")
    assert "third" not in jobs.started  # it waits for the end of the first
    jobs.end("first")
    assert jobs.wait_for("third")


def test_a_job_that_is_taken_back_lets_those_behind_it_pass(jobs):
    for name in ("first", "second"):
        jobs.pool.add(name, Turn("a"))
    jobs.pool.add("third", Turn("a", reaches_in=True))
    assert jobs.wait_for("first")
    jobs.pool.begun("first")
    assert jobs.pool.remove("second")
    assert jobs.wait_for("third")
    assert not jobs.pool.remove("third")
    assert not jobs.pool.remove("second")


def test_one_line_of_jobs_takes_no_thread_for_each():
    done = threading.Semaphore(0)
    pool = WorkerPool(128, lambda _job: done.release())
    for number in range(500):
        pool.add(number, Turn("a"))
    assert all(done.acquire(timeout=PATIENCE_S) for _ in range(500))
    assert pool._threads <= 2
    assert not pool._queues
    assert not pool._turns


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=30), st.sets(st.integers(0, 29)))
def test_any_mix_of_turns_runs_each_job_once_in_its_order(turns, taken):
    started, ended = defaultdict(list), threading.Semaphore(0)

    def run(job) -> None:
        number, key, _ = job
        started[key].append(number)
        pool.begun(job)
        ended.release()

    pool = WorkerPool(4, run)
    added = [(number, *turn) for number, turn in enumerate(turns)]
    removed = set()
    for job in added:
        pool.add(job, Turn(job[1], reaches_in=job[2]))
        if job[0] in taken and pool.remove(job):
            removed.add(job)
    left = [job for job in added if job not in removed]
    assert all(ended.acquire(timeout=PATIENCE_S) for _ in left)
    for key in "ab":
        expected = [number for number, of, _ in left if of == key]
        assert sorted(started[key]) == expected
        if not any(reaches for _, of, reaches in left if of == key):
            assert started[key] == expected


# initialize first


def pipelined(server, version: str = "2025-11-25") -> list:
    """Send a handshake and all that may follow it in one go; the ids in the order of their answers."""
    server.send(
        {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"protocolVersion": version}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "list", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "unknown", "method": "resources/list"},
        {"jsonrpc": "2.0", "id": "bad", "method": "tools/call", "params": []},
        {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "canvas_list"}},
    )
    return [server.read()["id"] for _ in range(5)]


def test_initialize_is_answered_before_all_that_was_sent_behind_it(tmp_path, ctl, hermetic_env):
    with StandInApp(tmp_path) as app, McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
        for _ in range(5):
            order = pipelined(server)
            assert order[0] == "init"
            assert sorted(order) == ["bad", "call", "init", "list", "unknown"]
        gate = app.hold("session_info")
        handshake = server.ask("initialize", {"protocolVersion": "2025-03-26"})
        listed, batch = server.ask("tools/list"), [{"jsonrpc": "2.0", "id": "b", "method": "ping"}]
        server.send(batch)
        app.wait_for("session_info")
        # Nothing of the same era but a ping is answered meanwhile; the other era does not wait.
        assert server.is_silent()
        assert server.modern("server/discover")["result"]
        gate.set()
        assert server.read()["id"] == handshake
        assert server.read()["id"] == listed
        assert [answer["id"] for answer in server.read()] == ["b"]


def test_initialize_is_answered_first_also_when_it_fails_or_the_input_ends(tmp_path, ctl, hermetic_env):
    with StandInApp(tmp_path) as app:
        app.stop()
        with McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
            assert pipelined(server)[0] == "init"
        app.start()
        with McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
            gate = app.hold("session_info")
            handshake, call = server.ask("initialize"), server.call("canvas_list")
            app.wait_for("session_info")
            server.close()
            gate.set()
            assert [answer["id"] for answer in server.rest()] == [handshake, call]


def test_what_waits_for_a_handshake_can_be_cancelled_and_so_can_the_handshake(tmp_path, ctl, hermetic_env):
    with StandInApp(tmp_path) as app, McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
        gate = app.hold("session_info")
        handshake, dropped, kept = server.ask("initialize"), server.call("dropped"), server.call("kept")
        app.wait_for("session_info")
        server.cancel(dropped)
        server.cancel(handshake)
        assert server.answer_to(kept)["result"]["isError"] is False
        gate.set()
        assert app.operations == ["session_info", "kept"]


# Steps behind the throttle


class Reader:
    """The client's end of a call's progress; `reads` is whether it keeps up."""

    def __init__(self) -> None:
        self.reads = True
        self._lines: list[bytes] = []
        self.in_flight = InFlight(self._lines.append, lambda: None, lambda: self.reads)
        self.call = Call(self.in_flight, Request(1, modern=False, token="t", batch=None), lambda _call: {})
        self.in_flight.open(self.call)

    def params(self) -> list[dict]:
        return [json.loads(line)["params"] for line in self._lines if b"progress" in line]

    def steps(self) -> list[str]:
        return [step for params in self.params() for step in params["message"].split(calls.STEP_SEPARATOR)]


def test_no_step_is_lost_while_the_client_is_behind():
    reader = Reader()
    steps = [f"step {number}" for number in range(300)]
    for number, step in enumerate(steps):
        reader.reads = number % 100 < 50  # it stops reading now and then
        reader.call.step(step)
    reader.in_flight.close(reader.call, b"{}")
    assert reader.steps() == steps
    values = [params["progress"] for params in reader.params()]
    assert values == sorted(set(values))
    assert all(len(params["message"]) <= calls.MAX_MESSAGE_CHARS for params in reader.params())


def test_steps_that_were_held_are_sent_together_when_their_time_comes(monkeypatch):
    reader = Reader()
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for number in range(6):
        reader.call.step(f"step {number}")
    assert [params["message"] for params in reader.params()] == ["step 0", "step 1", "step 2"]
    wait_s = reader.in_flight.release_due()
    assert 0 < wait_s <= calls.PROGRESS_INTERVAL_S
    now[0] += wait_s
    assert reader.in_flight.release_due() is None
    assert reader.params()[-1]["message"] == "step 3 · step 4 · step 5"


def test_the_same_step_again_is_sent_where_nothing_waits_and_not_piled_up_where_something_does():
    reader = Reader()
    reader.call.step("works")
    reader.call.step("works")
    assert reader.steps() == ["works", "works"]
    reader.reads = False
    for _ in range(10):
        reader.call.step("works")
    reader.in_flight.close(reader.call, b"{}")
    assert reader.steps() == ["works"] * 3


def test_steps_without_end_for_a_client_that_does_not_read_are_counted_and_not_kept():
    reader = Reader()
    reader.reads = False
    for number in range(calls.MAX_HELD_STEPS + 7):
        reader.call.step(f"step {number}")
    reader.in_flight.close(reader.call, b"{}")
    assert reader.steps()[0] == "(7 steps left out)"
    assert reader.steps()[1:] == [f"step {number}" for number in range(7, calls.MAX_HELD_STEPS + 7)]


def test_progress_and_steps_follow_nothing_that_is_over():
    reader = Reader()
    reader.in_flight.close(reader.call, b"{}")
    reader.call.step("late")
    reader.call.progress("late")
    assert reader.params() == []
