"""The calling side against a server that behaves in every way it should not."""

from __future__ import annotations

import json
import os
import resource
import threading

import pytest
from support.tui_endpoint import APPLIED, CONTEXT, GENERATION, SELECT, TOKEN, VIEW, FakeEndpoint, changed, line
from support.waiting import until

from termsprawlctl.mcp.provider import Context
from termsprawlctl.share import client, wire

GET = wire.GetViewContext()
PICK = wire.select_request(SELECT)
OTHER = "99999999-9999-4999-8999-999999999999"


@pytest.fixture
def fake(tmp_path):
    made = FakeEndpoint(tmp_path)
    yield made
    made.close()


def code(answer: dict) -> str:
    return answer.get("code", answer["status"])


def test_a_call_is_one_line_there_and_one_line_back(fake):
    fake.serve(line(APPLIED))
    assert client.call(fake.path, PICK) == APPLIED
    (sent,) = fake.requests
    assert json.loads(sent) == {"token": TOKEN, "request": {"operation": "select_session", **SELECT}}
    assert len(sent) < 16_384


def test_a_rejection_is_passed_on_as_it_is(fake):
    for rejection in wire.CODES:
        fake.serve(line(wire.rejected(rejection)))
        assert client.call(fake.path, GET) == {"status": "rejected", "code": rejection}


def test_an_answer_may_come_in_pieces_and_from_a_server_that_closes_late(fake):
    whole = line(CONTEXT)
    never = threading.Event()
    fake.serve(whole[:10], whole[10:-1], whole[-1:], never)
    assert client.call(fake.path, GET) == CONTEXT


@pytest.mark.parametrize("change", [{"instanceId": OTHER}, {"generation": OTHER}], ids=str)
def test_a_selection_for_another_target_is_stale_and_sends_nothing(fake, change):
    assert code(client.call(fake.path, wire.select_request({**SELECT, **change}))) == "stale_target"
    fake.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        fake.listener.accept()


@pytest.mark.parametrize("name", ["instanceId", "generation"])
def test_a_context_of_another_target_is_stale(fake, name):
    fake.serve(line({**CONTEXT, "context": {**VIEW, name: OTHER}}))
    assert code(client.call(fake.path, GET)) == "stale_target"
    fake.serve(line({**APPLIED, "context": {**VIEW, name: OTHER}}))
    assert code(client.call(fake.path, PICK)) == "stale_target"


def test_a_request_that_fits_no_frame_is_invalid_and_connects_to_nobody(fake):
    assert code(client.call(fake.path, changed(PICK, session_id="ses_" + "a" * 16384))) == "invalid_request"
    fake.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        fake.listener.accept()


def test_a_call_that_is_cancelled_already_connects_to_nobody(fake):
    context = Context()
    context.cancel()
    assert code(client.call(fake.path, GET, context)) == "cancelled"
    fake.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        fake.listener.accept()


def test_a_call_that_is_cancelled_after_its_frame_left_has_an_unknown_outcome_at_once(fake):
    never = threading.Event()
    fake.serve(never)
    context = Context()
    answers = []
    caller = threading.Thread(target=lambda: answers.append(client.call(fake.path, PICK, context)))
    caller.start()
    until(lambda: fake.requests, "the frame has arrived")
    context.cancel()
    caller.join(2)
    assert [code(answer) for answer in answers] == ["timeout_unknown"]


def test_a_call_that_is_cancelled_while_it_connects_is_unavailable(fake, monkeypatch):
    context = Context()
    connect = client.socket.socket.connect

    class Slow(client.socket.socket):
        def connect(self, address):
            # Too early for the cancellation to find a connection that it could shut.
            context.cancel()
            connect(self, address)

    monkeypatch.setattr(client.socket, "socket", Slow)
    fake.serve()
    assert code(client.call(fake.path, PICK, context)) == "target_unavailable"
    assert until(lambda: fake.requests) == [b""], "no byte was sent"


def test_nobody_listening_is_unavailable(fake):
    fake.listener.close()
    assert code(client.call(fake.path, GET)) == "target_unavailable"


def test_an_endpoint_that_is_gone_or_no_longer_right_is_unavailable(fake):
    fake.file.chmod(0o644)
    assert code(client.call(fake.path, GET)) == "target_unavailable"
    fake.file.unlink()
    assert code(client.call(fake.path, GET)) == "target_unavailable"


def test_a_server_that_takes_nothing_is_unavailable_at_the_deadline(fake, monkeypatch):
    """Its queue of connections is full, so the frame never leaves."""
    monkeypatch.setattr(client, "DEADLINE_S", 0.3)
    fake.listener.listen(0)
    waiting = [client.socket.socket(client.socket.AF_UNIX) for _ in range(2)]
    for sock in waiting:
        sock.settimeout(0.1)
        try:
            sock.connect(os.path.join(fake.folder, "s"))
        except OSError:
            continue
    assert code(client.call(fake.path, PICK)) == "target_unavailable"
    for sock in waiting:
        sock.close()


def test_a_server_that_says_nothing_is_given_up_at_the_deadline(fake, monkeypatch):
    monkeypatch.setattr(client, "DEADLINE_S", 0.2)
    never = threading.Event()
    fake.serve(never)
    assert code(client.call(fake.path, PICK)) == "timeout_unknown"


def test_a_server_that_drips_bytes_does_not_move_the_deadline(fake):
    """By a clock that jumps ahead with each look, so the test takes no time."""
    ticks = iter(range(1000))
    fake.serve(b" ", b" ", b" ", threading.Event())
    assert code(client.call(fake.path, PICK, clock=lambda: float(next(ticks)))) == "timeout_unknown"


@pytest.mark.parametrize("sent", [b"", b"{", line(CONTEXT)[:-1]], ids=["nothing", "half", "no line end"])
def test_a_server_that_closes_without_a_whole_line_leaves_the_outcome_unknown(fake, sent):
    fake.serve(sent)
    assert code(client.call(fake.path, GET)) == "timeout_unknown"


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"not json\n",
        line({"status": "fine"}),
        line(CONTEXT) + line(CONTEXT),
        line(CONTEXT) + b"x",
        b"x" * 20_000,
        line(APPLIED),
    ],
    ids=lambda sent: repr(sent[:20]),
)
def test_an_answer_that_is_none_is_invalid(fake, sent):
    fake.serve(sent)
    assert code(client.call(fake.path, GET)) == "invalid_request"


def test_an_answer_may_have_16384_bytes_and_not_one_more(fake):
    whole = line(CONTEXT)
    full = whole[:-1] + b" " * (16_384 - len(whole)) + b"\n"
    fake.serve(full)
    assert client.call(fake.path, GET) == CONTEXT
    fake.serve(b" " + full)
    assert code(client.call(fake.path, GET)) == "invalid_request"


def test_a_second_line_that_comes_a_moment_later_is_seen(fake):
    wait = threading.Event()
    threading.Timer(0.1, wait.set).start()
    fake.serve(line(CONTEXT), wait, line(CONTEXT))
    assert code(client.call(fake.path, GET)) == "invalid_request"


def test_nothing_is_ever_tried_twice(fake):
    fake.serve(b"")
    assert code(client.call(fake.path, PICK)) == "timeout_unknown"
    fake.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        fake.listener.accept()
    assert len(fake.requests) == 1


def test_the_identity_sent_is_the_callers_and_not_invented(fake):
    fake.serve(line(APPLIED))
    client.call(fake.path, PICK)
    assert json.loads(fake.requests[0])["request"]["generation"] == GENERATION


def test_without_a_free_descriptor_the_target_is_unavailable(fake, monkeypatch):
    usual, limit = client.endpoint.load, resource.getrlimit(resource.RLIMIT_NOFILE)

    def load_and_then_run_out(path):
        target = usual(path)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
        return target

    monkeypatch.setattr(client.endpoint, "load", load_and_then_run_out)
    try:
        answer = client.call(fake.path, GET)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert code(answer) == "target_unavailable"
