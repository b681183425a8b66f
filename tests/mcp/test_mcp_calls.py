"""Calls in flight: order, concurrency, progress, cancellation, foreign arguments."""

from __future__ import annotations

import json

import pytest
from support.mcp_app import StandInApp
from support.mcp_client import META, McpServer, toy


@pytest.fixture
def ordered(ctl, hermetic_env):
    with McpServer(toy(ctl), hermetic_env) as running:
        yield running


@pytest.fixture
def concurrent(ctl, hermetic_env):
    with McpServer(toy(ctl, "max_running=3"), hermetic_env) as running:
        yield running


def text(answer: dict) -> str:
    return answer["result"]["content"][0]["text"]


def started(server) -> list[str]:
    return json.loads(text(server.answer_to(server.call("started"))))


def test_pings_lists_and_cancellations_are_served_while_a_call_runs(ordered):
    blocked = ordered.block()
    assert ordered.request("ping")["result"] == {}
    assert ordered.request("tools/list")["result"]["tools"]
    assert ordered.modern("tools/list")["result"]["tools"]
    assert ordered.modern("server/discover")["result"]
    assert ordered.initialize()["result"]
    ordered.cancel(blocked)
    assert text(ordered.answer_to(ordered.call("echo"))) == "{}"


def test_ordered_calls_run_one_at_a_time_in_order_of_arrival(ordered):
    ids = [ordered.call("echo", value=str(number)) for number in range(200)]
    answers = [ordered.read() for _ in ids]
    assert [answer["id"] for answer in answers] == ids
    blocked = ordered.block()
    ordered.call("open")  # waits for its turn, so it cannot open the gate
    assert ordered.is_silent()
    ordered.cancel(blocked)
    assert text(ordered.read()) == "opened"


def test_calls_run_at_once_up_to_the_limit_and_the_next_one_waits(concurrent):
    first, second, third = (concurrent.block(gate) for gate in "abc")
    fourth = concurrent.call("echo", value="waits")
    assert concurrent.is_silent()
    concurrent.cancel(second)
    assert concurrent.answer_to(fourth)
    concurrent.call("open", gate="a", request_id="open a")
    answers = {answer["id"] for answer in (concurrent.read(), concurrent.read())}
    assert answers == {"open a", first}
    concurrent.cancel(third)


def test_an_initialize_is_answered_while_every_place_is_taken(concurrent):
    calls = [concurrent.call("block") for _ in range(5)]
    assert concurrent.initialize()["result"]
    for call in calls:
        concurrent.cancel(call)


def test_a_running_call_that_is_cancelled_is_stopped_freed_and_not_answered(ordered):
    blocked = ordered.block()
    ordered.cancel(blocked)
    assert ordered.is_silent()
    # The only lane is free again.
    assert text(ordered.answer_to(ordered.call("echo"))) == "{}"


def test_a_queued_call_that_is_cancelled_never_runs(ordered):
    first = ordered.block("first")
    second = ordered.call("block", gate="second")
    ordered.cancel(second)
    ordered.cancel(first)
    assert started(ordered) == ["first"]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        "x",
        {"requestId": None},
        {"requestId": True},
        {"requestId": [1]},
        {"requestId": {}},
        {"requestId": "1"},
        {"requestId": 1.0},
        {"requestId": 99},
        {"requestid": 1},
    ],
)
def test_a_cancellation_that_fits_nothing_is_ignored_without_noise(concurrent, params):
    blocked = concurrent.block(request_id=1)
    concurrent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert concurrent.is_silent()
    opened = concurrent.call("open", request_id="open")
    assert {concurrent.read()["id"], concurrent.read()["id"]} == {blocked, opened}
    assert concurrent.log() == ""


def test_cancelling_after_the_answer_or_twice_makes_no_noise(ordered):
    for _ in range(3):
        done = ordered.call("echo")
        ordered.answer_to(done)
        ordered.cancel(done)
        ordered.cancel(done)
    blocked = ordered.block()
    ordered.cancel(blocked)
    ordered.cancel(blocked)
    assert ordered.is_silent()
    assert ordered.log() == ""


def test_an_id_in_use_twice_is_answered_twice(ordered):
    ordered.call("echo", value="a", request_id=1)
    ordered.call("echo", value="b", request_id=1)
    assert [text(ordered.read()), text(ordered.read())] == ['{"value":"a"}', '{"value":"b"}']


@pytest.mark.parametrize("token", [0, "", 1, -5, "t", 2**53])
def test_progress_carries_the_same_token_and_rises(ordered, token):
    answer = ordered.answer_to(ordered.call("steps", count=3, total=3, token=token))
    assert text(answer) == "done"
    params = [message["params"] for message in ordered.notifications]
    assert params == [
        {"progressToken": token, "progress": step + 1, "total": 3, "message": f"step {step}"} for step in range(3)
    ]
    assert all(type(entry["progressToken"]) is type(token) for entry in params)


@pytest.mark.parametrize("token", [True, False, None, 1.5, [], {}])
def test_there_is_no_progress_without_a_token(ordered, token):
    params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": token}}
    ordered.request("tools/call", params)
    ordered.request("tools/call", {"name": "steps", "arguments": {}})
    ordered.request("tools/call", {"name": "steps", "arguments": {}, "_meta": None})
    assert ordered.notifications == []


def test_modern_calls_report_progress_too(ordered):
    ordered.modern(
        "tools/call", name="values", arguments={"values": [0, 50, 100], "total": 100}, _meta={"progressToken": "p"}
    )
    assert [message["params"]["progress"] for message in ordered.notifications] == [0, 50, 100]


def test_progress_that_does_not_rise_is_raised(ordered):
    ordered.answer_to(ordered.call("values", values=[5, 5, 3], token=1))
    values = [message["params"]["progress"] for message in ordered.notifications]
    assert values == sorted(set(values))
    assert len(values) == 3


def test_a_flood_of_progress_is_thinned_out_and_ends_with_the_newest(ordered):
    answer = ordered.answer_to(ordered.call("steps", count=5000, token="t"))
    assert text(answer) == "done"
    params = [message["params"] for message in ordered.notifications]
    assert len(params) < 20
    assert params[-1]["message"] == "step 4999"
    assert [entry["progress"] for entry in params] == sorted({entry["progress"] for entry in params})


def test_progress_that_came_too_soon_is_sent_later_even_if_nothing_follows_it(ordered):
    steps = ordered.call("steps", count=10, pause_s=0.0, token="t")
    ordered.answer_to(steps)
    ordered.notifications.clear()
    # Nine steps at once and then a tool that says nothing more until its gate opens.
    ordered.send(
        {
            "jsonrpc": "2.0",
            "id": "v",
            "method": "tools/call",
            "params": {"name": "then_block", "arguments": {"count": 9}, "_meta": {"progressToken": "v"}},
        }
    )
    seen = []
    while "step 8" not in seen:
        seen.append(ordered.read()["params"]["message"])
    ordered.cancel("v")
    assert ordered.is_silent()


def test_nothing_follows_a_response(ordered):
    late = ordered.answer_to(ordered.call("late", token="t"))
    assert text(late) == "done"
    assert [message["params"]["message"] for message in ordered.notifications] == ["in time"]
    assert text(ordered.answer_to(ordered.call("let_late_report"))) == "reported"
    assert len(ordered.notifications) == 1


def test_nothing_follows_a_cancellation(concurrent):
    blocked = concurrent.call("then_block", count=2, token="t")
    assert concurrent.read()["params"]["progressToken"] == "t"
    assert concurrent.read()["params"]["progressToken"] == "t"
    concurrent.cancel(blocked)
    assert concurrent.is_silent()


def test_an_argument_that_a_client_adds_to_every_call_is_dropped_unless_the_tool_has_it(ordered):
    arguments = {"value": "v", "wait_for_previous": True}
    assert text(ordered.answer_to(ordered.call("echo", **arguments))) == '{"value":"v"}'
    kept = text(ordered.answer_to(ordered.call("waits", wait_for_previous=False)))
    assert kept == '{"wait_for_previous":false}'


def test_unknown_tools_and_odd_arguments_reach_a_provider_that_wants_them(ctl, hermetic_env):
    with McpServer(toy(ctl, "any_tool_name=true", "any_arguments=true"), hermetic_env) as server:
        # The toy has no such tool and fails, but it was asked.
        assert server.request("tools/call", {"name": "nope"})["error"]["code"] == -32603
        assert server.request("tools/call", {"name": "echo", "arguments": []})["error"]["code"] == -32603


def test_meta_of_a_modern_call_never_reaches_the_tool(ordered):
    assert text(ordered.modern("tools/call", name="echo", arguments={"a": 1}, _meta=META)) == '{"a":1}'


def test_calls_without_end_behind_a_slow_one_are_refused_and_not_kept(ordered):
    blocked = ordered.block("slow")
    before = ordered.peak_memory_kib()
    count = 400
    ids = [ordered.call("big", bytes=0, letter="x" * 250_000) for _ in range(count)]
    assert ordered.ask("ping", request_id="end")
    refused = []
    while (answer := ordered.read())["id"] != "end":
        assert answer["error"]["code"] == -32603
        assert "send it again when some of them have been answered" in answer["error"]["message"]
        refused.append(answer["id"])
    # 16 MiB of them may wait; what was sent is 100 MB.
    assert ids[len(ids) - len(refused) :] == refused
    assert 40 < count - len(refused) < 80
    assert ordered.peak_memory_kib() - before < 40 << 10
    # Cancelling makes room, and so does carrying out.
    waiting = ids[: count - len(refused)]
    ordered.cancel(waiting[0])
    again = ordered.call("big", letter="x" * 250_000)
    assert ordered.is_silent()
    ordered.cancel(blocked)
    assert [ordered.read()["id"] for _ in waiting] == [*waiting[1:], again]
    assert text(ordered.answer_to(ordered.call("echo"))) == "{}"


@pytest.mark.parametrize("piece", ["[]", "{}", '{"a":0}', "[[0.5]]"])
def test_what_a_dense_call_holds_is_counted_and_not_the_bytes_of_its_line(ordered, piece):
    ordered.block("slow")
    before = ordered.peak_memory_kib()
    value = f"[{','.join([piece] * ((256 << 10) // (len(piece) + 1)))}]"
    count = 60
    for number in range(count):
        params = f'{{"name":"echo","arguments":{{"value":{value}}}}}'
        line = f'{{"jsonrpc":"2.0","id":"d{number}","method":"tools/call","params":{params}}}'
        ordered.send_bytes(line.encode() + b"\n")
    assert ordered.ask("ping", request_id="end")
    refused = 0
    while (answer := ordered.read())["id"] != "end":
        assert "send it again when some of them have been answered" in answer["error"]["message"]
        refused += 1
    # Two to four of them hold 16 MiB; their lines together are no longer than that.
    assert 1 <= count - refused <= 6
    assert ordered.peak_memory_kib() - before < 64 << 10


def test_a_call_as_large_as_a_line_may_be_is_taken_when_nothing_else_is_open(ctl, hermetic_env):
    with McpServer(toy(ctl, f"max_line_bytes={20 << 20}"), hermetic_env) as server:
        assert text(server.answer_to(server.call("big", letter="x" * (17 << 20)))) == ""


def test_handshakes_and_lists_that_wait_are_bounded_as_well(ctl, hermetic_env, tmp_path):
    with StandInApp(tmp_path) as app, McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
        gate = app.hold("session_info")
        count = 10_000
        server.send(*({"jsonrpc": "2.0", "id": 1, "method": "initialize"} for _ in range(count)))
        server.ask("ping", request_id="end")
        refused = 0
        while (answer := server.read())["id"] != "end":
            assert answer["error"]["code"] == -32603
            refused += 1
        assert 0 < refused < count
        server.cancel(1)
        gate.set()
        assert "result" in server.initialize()
