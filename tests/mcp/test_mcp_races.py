"""Cancel against completion, thousands of times: one outcome each, and nothing after it."""

from __future__ import annotations

import _thread
import json
import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mcp_client import McpServer, toy
from support.waiting import until

from termsprawlctl.mcp import calls, protocol, stdio, work
from termsprawlctl.mcp.calls import Call, InFlight, Request
from termsprawlctl.mcp.options import Options
from termsprawlctl.mcp.provider import Provider
from termsprawlctl.mcp.server import Server
from termsprawlctl.mcp.workers import WorkerPool

ROUNDS = 2000
NAP_US = 100


@pytest.fixture(params=["ordered", "concurrent"])
def server(ctl, hermetic_env, request):
    words = [] if request.param == "ordered" else ["max_running=4"]
    with McpServer(toy(ctl, *words), hermetic_env) as running:
        yield running


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize("same_id", [False, True], ids=["new ids", "one id for all"])
def test_a_call_cancelled_around_its_completion_is_answered_once_or_never(server, cancels, same_id):
    answered = 0
    delay_s = 0.0005
    for number in range(ROUNDS):
        request_id = 7 if same_id else number
        server.call("nap", number=number, nap_us=NAP_US, token=number, request_id=request_id)
        sent_s = time.perf_counter()
        while time.perf_counter() - sent_s < delay_s:
            pass  # far shorter than the shortest sleep
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        server.send(*[cancel] * cancels, {"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        said = []
        # Nothing of a call may come after the answer to the ping, which stood behind its cancellation:
        # it would be taken for the next round's, and be of another number.
        while (message := server.read()).get("id") != "ping":
            said.append(message)
        answers = [message for message in said if "method" not in message]
        assert said[-1:] == answers or not answers
        for message in answers:
            assert (message["id"], message["result"]["content"][0]["text"]) == (request_id, str(number))
        progress = [message["params"] for message in said if "method" in message]
        assert {entry["progressToken"] for entry in progress} <= {number}
        # Hunt the moment of completion: later if the cancellation was first, earlier if it was late.
        delay_s *= 0.97 if answers else 1.03
        answered += len(answers)
    # Otherwise this would be no race.
    assert ROUNDS // 10 < answered < ROUNDS - ROUNDS // 10
    assert server.log() == ""


def test_cancelling_and_answering_at_the_same_moment_has_one_outcome():
    outcomes = {"answered": 0, "cancelled": 0}
    for _ in range(ROUNDS):
        said: list[bytes] = []
        in_flight = InFlight(said.append, lambda: None)
        call = Call(in_flight, Request(1, modern=False, token="t", batch=None), None)
        in_flight.open(call)
        start = threading.Barrier(3)
        cancelled: list = []

        def answer(start=start, in_flight=in_flight, call=call):
            start.wait()
            call.progress("last")
            in_flight.close(call, b"answer")

        def cancel(start=start, in_flight=in_flight, cancelled=cancelled):
            start.wait()
            cancelled += in_flight.cancel(1)

        threads = [threading.Thread(target=answer), threading.Thread(target=cancel)]
        for thread in threads:
            thread.start()
        start.wait()
        for thread in threads:
            thread.join()
        call.progress("after the end")
        if cancelled:
            outcomes["cancelled"] += 1
            assert b"answer\n" not in said
        else:
            outcomes["answered"] += 1
            assert said[-1] == b"answer\n"
        assert not in_flight.calls()
    assert all(outcomes.values()), outcomes


@pytest.mark.slow
@pytest.mark.parametrize("same_id", [False, True], ids=["new ids", "one id for all"])
@pytest.mark.parametrize("way", ["closed", "cancelled", "all cancelled"])
def test_open_calls_cost_the_same_however_many_there_are(monkeypatch, same_id, way):
    monkeypatch.setattr(calls, "MAX_OPEN_BYTES", 1 << 40)
    count = 20_000
    said: list[bytes] = []
    in_flight = InFlight(said.append, lambda: None)
    pool = WorkerPool(1, lambda job: None)
    monkeypatch.setattr(pool, "_start_thread", lambda: None)
    requests = [Request(1 if same_id else number, modern=False, token=None, batch=None) for number in range(count)]
    opened = [Call(in_flight, request, None) for request in requests]
    before_s = time.thread_time()
    for call in opened:
        in_flight.open(call)
        pool.add(call)
    ended = []
    if way == "all cancelled":
        ended = in_flight.cancel_all()
    for call in reversed(opened):
        if way == "closed":
            in_flight.close(call, b"answer")
            ended.append(call)
        else:
            ended += in_flight.cancel(call.request.id)
    assert all(pool.remove(call) for call in reversed(ended))
    # Processor time: a tenth of a second, and many seconds where each looks through all the others.
    assert time.thread_time() - before_s < 2
    assert len(ended) == count
    assert in_flight.is_empty()
    assert len(said) == (count if way == "closed" else 0)


def test_progress_for_a_reader_that_does_not_read_is_not_piled_up(monkeypatch):
    monkeypatch.setattr(calls, "PROGRESS_INTERVAL_S", 1e-9)  # time allows each of them
    said: list[bytes] = []
    is_read = [False]
    in_flight = InFlight(said.append, lambda: None, lambda: is_read[0])
    call = Call(in_flight, Request(1, modern=False, token="t", batch=None), None)
    in_flight.open(call)
    for number in range(100):
        call.progress(f"step {number}")
    assert said == []
    assert in_flight.release_due() is None  # nothing for the server's loop to do until there is room
    is_read[0] = True
    in_flight.release_due()
    # The newest alone, and what follows as usual.
    assert [json.loads(message)["params"]["message"] for message in said] == ["step 99"]
    call.progress("step 100")
    assert json.loads(said[-1])["params"] == {"progressToken": "t", "progress": 101, "message": "step 100"}


def test_messages_of_many_threads_are_never_mixed(ctl, hermetic_env):
    with McpServer(toy(ctl, "max_running=8"), hermetic_env) as server:
        sizes = [100, 5000, 65_500, 70_000, 300_000]
        ids = [server.call("big", bytes=sizes[number % 5], letter="abcdefgh"[number % 8]) for number in range(200)]
        seen = set()
        for _ in ids:
            message = server.read()
            text = message["result"]["content"][0]["text"]
            number = ids.index(message["id"])
            assert text == "abcdefgh"[number % 8] * sizes[number % 5]
            seen.add(message["id"])
        assert seen == set(ids)


def test_a_pool_that_gets_no_thread_says_so_and_one_that_has_one_goes_on(monkeypatch):
    def no_thread(*_, **__):
        raise RuntimeError("can't start new thread")

    done: list = []
    gate = threading.Event()
    pool = WorkerPool(2, lambda job: (gate.wait(20), done.append(job)))
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", no_thread)
        with pytest.raises(RuntimeError):
            pool.add("lost")
    pool.add("first")
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", no_thread)
        pool.add("second")
    assert pool.remove("lost") is False
    gate.set()
    until(lambda: done == ["first", "second"], lambda: f"both jobs, only {done}")


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\x00", b"\n")), st.lists(st.integers(1, 8), min_size=1))
def test_lines_do_not_depend_on_how_their_bytes_arrive(data, sizes):
    cap = 5

    def cut(pieces) -> list:
        lines = stdio.Lines(cap)
        found = [line for piece in pieces for line in lines.feed(piece)]
        return [None if isinstance(line, stdio.TooLong) else line for line in found + lines.end()]

    pieces, rest, turn = [], data, 0
    while rest:
        size = sizes[turn % len(sizes)]
        pieces.append(rest[:size])
        rest = rest[size:]
        turn += 1
    whole = data.split(b"\n")
    if not whole[-1]:
        whole.pop()
    expected = []
    for number, line in enumerate(whole):
        ended = number < len(whole) - 1 or data.endswith(b"\n")
        bare = line[:-1] if line.endswith(b"\r") else line
        too_long = len(bare) > cap or (len(line) > cap + 1 if not ended else False)
        expected.append(None if too_long else bare)
    assert cut(pieces) == cut([data]) == expected


@given(st.one_of(st.none(), st.text(max_size=12), st.integers(), st.lists(st.integers())))
def test_initialize_never_answers_the_modern_revision(requested):
    assert not protocol.negotiate(requested).modern


@given(st.text())
def test_encoded_messages_are_one_line_that_reads_back(text):
    line = protocol.encode({"text": text}).decode()
    assert not {"\n", "\r", "\u2028", "\u2029"} & set(line)
    assert json.loads(line)["text"] == text


class NoMemory(Provider):
    """A tool that needs more memory than there is, where there is none to say so, either."""

    name, version = "no-memory", "1"

    def tools(self) -> list:
        return [{"name": "grow", "description": "Grows.", "inputSchema": {"type": "object"}}]

    def call(self, _name, _arguments, _context) -> dict:
        raise MemoryError


CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "grow", "arguments": {}}}\n'


def test_a_server_that_cannot_even_refuse_ends_instead_of_leaving_its_client_waiting(monkeypatch):
    def none_left(*_):
        raise MemoryError

    monkeypatch.setattr(work.Work, "_encode_fault", none_left)
    # Of the main thread alone; and this one is the tests'.
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: -1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    try:
        served = Server(NoMemory(), Options(), in_read, out_write)
        os.write(in_write, CALL)
        assert served.run() == 1  # though its input is still open
    finally:
        for descriptor in (in_read, in_write, out_read, out_write):
            os.close(descriptor)


def test_a_writer_without_memory_counts_as_an_output_that_is_gone(monkeypatch):
    def none_left(*_):
        raise MemoryError

    monkeypatch.setattr(stdio.Writer, "_write", none_left)
    news = threading.Event()
    reader, descriptor = os.pipe()
    try:
        writer = stdio.Writer(descriptor, 100, news.set)
        writer.put(b"{}\n")
        assert news.wait(20)
        assert (writer.broken, writer.backlog) == (True, 0)
    finally:
        os.close(reader)
        os.close(descriptor)
