"""Lines and frames, one rule each, against the built file and its core."""

from __future__ import annotations

import json

import pytest
from support.mcp_app import StandInApp
from support.mcp_client import McpServer, toy

SESSION_CAP = 262_144
NO_SUCH_SESSION = "/nonexistent/agent-tools/sessions/a.json"
NOT_JSON = {
    "words": b"hello",
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
    "infinity": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
    "too large a number": b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}',
    "half": b'{"jsonrpc":"2.0","id":1,"met',
    "two on a line": b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    "too deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "too many digits": b'{"id":1,"method":"ping","params":' + b"9" * 5000 + b"}",
}


@pytest.fixture
def bridge(ctl, hermetic_env):
    """The session bridge of the built file; no app is needed for what never reaches it."""
    with McpServer([ctl, "mcp", "--session", NO_SUCH_SESSION], hermetic_env) as server:
        yield server


@pytest.fixture
def server(ctl, hermetic_env):
    """A provider without the bridge's special answers, and with a small cap."""
    with McpServer(toy(ctl, "max_line_bytes=65536"), hermetic_env) as running:
        yield running


def ping(request_id: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}, ensure_ascii=False).encode()


def pong(request_id: object) -> dict:
    return {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.parametrize("line", NOT_JSON.values(), ids=NOT_JSON)
def test_a_line_that_is_not_json_is_an_internal_error_of_the_bridge_with_id_null(bridge, line):
    bridge.send_bytes(line + b"\n")
    answer = bridge.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32603)
    assert bridge.is_silent()


@pytest.mark.parametrize("line", NOT_JSON.values(), ids=NOT_JSON)
def test_a_line_that_is_not_json_is_a_parse_error_without_id_elsewhere(ctl, hermetic_env, line):
    with McpServer(toy(ctl), hermetic_env) as server:
        server.send_bytes(line + b"\n")
        answer = server.read()
        # Python 3.9 and 3.10 read numbers of any length.
        assert answer["error"]["code"] in ((-32700, -32602) if b"9" * 5000 in line else (-32700,))
        assert "id" not in answer or answer["error"]["code"] == -32602
        assert server.is_silent()


@pytest.mark.parametrize("line", [b"1", b'"text"', b"true"])
def test_the_bridge_ignores_scalars_as_its_original_does(bridge, line):
    bridge.send_bytes(line + b"\n")
    assert bridge.is_silent()


@pytest.mark.parametrize("line", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"[1]"])
def test_the_bridge_refuses_an_array_where_there_are_no_batches(bridge, line):
    bridge.send_bytes(line + b"\n")
    answer = bridge.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "no batches" in answer["error"]["message"]
    assert bridge.is_silent()


def test_null_is_an_internal_error_of_the_bridge(bridge):
    bridge.send_bytes(b"null\n")
    answer = bridge.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32603)


@pytest.mark.parametrize("line", [b"1", b'"text"', b"null", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_what_is_no_object_is_an_invalid_request_without_id_elsewhere(server, line):
    server.send_bytes(line + b"\n")
    answer = server.read()
    assert "id" not in answer
    assert answer["error"]["code"] == -32600
    assert server.is_silent()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_of_exactly_the_cap_is_read_and_one_byte_more_is_refused(bridge, end):
    for extra in (0, 1):
        request = ping("x")
        bridge.send_bytes(request + b" " * (SESSION_CAP - len(request) + extra) + end)
        if not extra:
            assert bridge.read() == pong("x")
    answer = bridge.read()
    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "Message too large"}}
    assert bridge.is_silent()


def test_a_line_over_the_cap_is_refused_before_it_ends_and_reading_goes_on_at_the_next(server):
    server.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 65536)
    answer = server.read()
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    assert "65536 bytes" in answer["error"]["message"]
    # The rest of that line is as long as it likes, and looks like messages.
    for _ in range(64):
        server.send_bytes((ping(7) + b"\r") * 1000)
    server.send_bytes(b"\n" + ping(8) + b"\n")
    assert server.read() == pong(8)


def test_a_refused_line_is_not_kept_in_memory(ctl, hermetic_env):
    with McpServer(toy(ctl), hermetic_env) as server:
        assert server.request("ping")["result"] == {}
        before = server.peak_memory_kib()
        for _ in range(100):
            server.send_bytes(b"x" * (1 << 20))
        server.send_bytes(b"\n")
        assert server.read()["error"]["code"] == -32600
        assert server.is_silent()
        # The cap is 4 MiB; what was sent is 100.
        assert server.peak_memory_kib() - before < 20 << 10


def test_lines_end_at_the_newline_byte_alone(server):
    text = "a\u2028b\u2029c\x85d\u0085e\x0bf\x0cg\x1ch"
    message = {"jsonrpc": "2.0", "id": text, "method": "ping"}
    server.send_bytes(json.dumps(message, ensure_ascii=False).replace("\\u000b", "\\u000B").encode() + b"\n")
    assert server.read() == pong(text)


def test_crlf_blank_lines_and_a_byte_order_mark_are_accepted(server):
    server.send_bytes(b"\xef\xbb\xbf" + ping(1) + b"\r\n\n\r\n  \t\n" + ping(2) + b"\n")
    assert [server.read(), server.read()] == [pong(1), pong(2)]
    assert server.is_silent()


@pytest.mark.parametrize("line", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\r", b"\xef\xbb\xbf \t"])
def test_a_line_of_a_byte_order_mark_alone_is_blank(bridge, server, line):
    for running in (bridge, server):
        running.send_bytes(line + b"\n")
        assert running.is_silent()
    server.send_bytes(line)
    server.close()
    assert server.rest() == []


def test_null_params_and_null_arguments_count_as_left_out(server):
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None})
    assert server.read()["result"]["tools"]
    answer = server.request("tools/call", {"name": "echo", "arguments": None, "_meta": None})
    assert answer["result"]["content"][0]["text"] == "{}"


def test_one_byte_at_a_time_is_still_one_message(server):
    for byte in ping("slow") + b"\n":
        server.send_bytes(bytes([byte]))
    assert server.read() == pong("slow")


def test_a_last_line_without_its_end_is_answered_at_the_end_of_the_input(server):
    server.send_bytes(ping(1) + b"\n" + ping(2))
    server.close()
    assert server.rest() == [pong(1), pong(2)]


def test_output_is_compact_utf_8_on_one_line_with_line_separators_escaped(server):
    text = 'é漢😀\u2028\u2029\x85"\\\n\x00'
    server.call("echo", value=text, request_id="é")
    line = server.read_line()
    assert json.loads(json.loads(line)["result"]["content"][0]["text"])["value"] == text
    assert "é".encode() in line
    assert b"\xe2\x80\xa8" not in line
    assert b"\xe2\x80\xa9" not in line
    assert b'": ' not in line


def test_lone_surrogates_are_replaced(server):
    server.send_bytes(b'{"jsonrpc":"2.0","id":"a\\ud800b","method":"ping"}\n')
    assert server.read_line().decode("utf-8") == '{"jsonrpc":"2.0","id":"a\ufffdb","result":{}}'


@pytest.mark.parametrize("request_id", [0, 1, -1, "", "1", "0", 1.5, 2**53, 10**30, "x" * 1000, "null"])
def test_an_id_keeps_its_value_and_its_type(server, request_id):
    server.send_bytes(ping(request_id) + b"\n")
    answer = server.read()
    assert answer == pong(request_id)
    assert type(answer["id"]) is type(request_id)


@pytest.mark.parametrize("request_id", [None, True, False, [], {}, [1]])
def test_an_id_that_is_no_string_or_number_is_an_invalid_request(bridge, server, request_id):
    for running in (bridge, server):
        running.send_bytes(ping(request_id) + b"\n")
        answer = running.read()
        assert "id" not in answer
        assert answer["error"]["code"] == -32600
        assert running.is_silent()


def test_an_id_may_be_used_again(server):
    for _ in range(3):
        assert server.request("ping", request_id=0) == pong(0)
    for _ in range(3):
        assert "result" in server.answer_to(server.call("echo", request_id=0))


def test_a_message_without_id_is_never_answered_and_never_executed(server):
    server.send(
        {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "method": "no/such"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "block"}},
        {"jsonrpc": "2.0", "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "2.0"},
        {},
    )
    assert server.is_silent()
    assert server.answer_to(server.call("started"))["result"]["content"][0]["text"] == "[]"


def test_responses_are_ignored_because_nothing_is_ever_asked(server):
    server.send(
        {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}
    )
    assert server.is_silent()


@pytest.mark.parametrize("method", ["no/such", "resources/list", "prompts/list", "logging/setLevel", "", "tools/List"])
def test_an_unknown_method_is_not_found(bridge, server, method):
    for running in (bridge, server):
        assert running.request(method)["error"] == {"code": -32601, "message": "Method not found"}


def test_a_method_that_is_no_string_is_an_invalid_request(server):
    for message in ({"method": 5}, {"method": None}, {}):
        server.send({"jsonrpc": "2.0", "id": 1, **message})
        assert server.read()["error"]["code"] == -32600


def test_a_cursor_is_refused_because_the_list_has_one_page(bridge, server):
    for running in (bridge, server):
        assert running.request("tools/list", {"cursor": "x"})["error"]["code"] == -32602
        assert running.request("tools/list", {"cursor": ""})["error"]["code"] == -32602
        assert "result" in running.request("tools/list", {"cursor": None})


def test_an_unknown_tool_is_invalid_params(server):
    assert server.request("tools/call", {"name": "nope"})["error"]["code"] == -32602


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": None},
        {"name": 5},
        {"name": ["echo"]},
        {"name": "echo", "arguments": []},
        {"name": "echo", "arguments": "x"},
        {"name": "echo", "arguments": 0},
        [],
        "x",
        7,
    ],
)
def test_broken_params_are_invalid_params(bridge, server, params):
    for running in (bridge, server):
        assert running.request("tools/call", params)["error"]["code"] == -32602
        assert running.is_silent()


@pytest.mark.parametrize("how", ["exception", "exit", "nan", "set"])
def test_a_fault_of_ours_is_an_internal_error_that_does_not_quote_it(server, how):
    answer = server.answer_to(server.call("broken", how=how))
    assert answer["error"]["code"] == -32603
    assert "1234" not in json.dumps(answer) + server.log()
    assert "result" in server.answer_to(server.call("echo"))


def test_a_fault_that_the_provider_states_is_passed_on(server):
    assert server.answer_to(server.call("broken", how="fault"))["error"] == {"code": -32603, "message": "out of order"}
    assert server.answer_to(server.call("broken", how="call fault"))["error"] == {
        "code": -32021,
        "message": "needs sampling",
        "data": {"requiredCapabilities": {"sampling": {}}},
    }


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_result_that_is_no_object_is_an_internal_error(server, value):
    assert server.answer_to(server.call("raw", value=value))["error"]["code"] == -32603


def test_arrays_are_batches_once_2025_03_26_is_negotiated(server, bridge):
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        7,
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
    ]
    server.initialize("2025-03-26")
    server.send(batch)
    answers = server.read()
    assert isinstance(answers, list)
    assert {answer.get("id", "none"): answer.get("error", {}).get("code") for answer in answers} == {
        1: None,
        "none": -32600,
        2: None,
        3: -32600,
    }
    assert len(answers) == 5
    server.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
    assert server.is_silent()
    server.send([])
    assert server.read()["error"]["code"] == -32600
    server.initialize("2025-06-18")
    server.send(batch)
    assert server.read()["error"]["code"] == -32600


def test_a_handshake_that_fails_negotiates_nothing(ctl, hermetic_env, bridge, tmp_path):
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]
    assert "error" in bridge.initialize("2025-03-26")  # no app
    bridge.send(batch)
    assert bridge.read()["error"]["code"] == -32600
    with StandInApp(tmp_path) as app, McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
        assert "result" in server.initialize("2025-03-26")
        server.send(batch)
        assert server.read() == [pong(1), pong(2)]
        app.stop()
        # What was negotiated before stays.
        assert "error" in server.initialize("2025-11-25")
        server.send(batch)
        assert server.read() == [pong(1), pong(2)]


def test_a_batch_of_too_many_messages_is_refused_whole(server):
    server.initialize("2025-03-26")
    for count in (100, 101):
        server.send([{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(count)])
        answer = server.read()
        if count == 100:
            assert answer == [pong(number) for number in range(count)]
    assert "id" not in answer
    assert answer["error"]["code"] == -32600
    assert "at most 100" in answer["error"]["message"]
    assert server.is_silent()


def test_a_cancelled_member_is_missing_from_the_answer_to_its_batch(server):
    server.initialize("2025-03-26")
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "block"}}
    server.send([{**call, "id": 1}, {**call, "id": 2}])
    server.cancel(2)
    server.cancel(1)
    assert server.is_silent()
    server.send([{**call, "id": 1}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    assert server.is_silent()
    server.cancel(1)
    assert server.read() == [pong(2)]


def test_standard_output_is_private(ctl, hermetic_env):
    with McpServer(toy(ctl), hermetic_env) as server:
        # The child reads what its standard input gives: nothing, and none of our lines.
        assert server.answer_to(server.call("stray"))["result"]["content"][0]["text"] == ""
        assert server.is_silent()
        server.close()
        assert server.rest() == []
        assert server.exit_status() == 0
        assert "stray print" in server.log()


@pytest.mark.parametrize("request_id", [7, "a\u00e9", 1.5])
def test_a_request_over_the_cap_is_refused_by_its_id_where_that_stands_before_the_long_part(server, request_id):
    message = {"jsonrpc": "2.0", "method": "tools/call", "id": request_id, "params": {"name": "x" * 70_000, "id": 9}}
    server.send(message)
    answer = server.read()
    assert (answer["id"], answer["error"]["code"]) == (request_id, -32600)
    assert "65536" in answer["error"]["message"]
    server.send_bytes(ping(1) + b"\n")
    assert server.read() == pong(1)


@pytest.mark.parametrize(
    "head",
    [
        '{"jsonrpc":"2.0","method":"m","params":"PAD","id":7}',
        '{"jsonrpc":"2.0","id":7,"result":"PAD"}',
        '{"method":"m","id":PAD',
        '{"method":"m","id":true,"params":"PAD"}',
        '{"method":1,"id":7,"params":"PAD"}',
        '[{"method":"m","id":7,"params":"PAD"}]',
        '"{\\"id\\":7,\\"method\\":\\"m\\",PAD"',
        '{"method":"m","params":{"id":7,"x":"PAD"}}',
        "{" * 5000 + "PAD",
    ],
)
def test_an_id_that_is_not_certain_is_not_used(server, head):
    server.send_bytes(head.replace("PAD", "1" * 70_000).encode() + b"\n")
    answer = server.read()
    assert ("id" in answer, answer["error"]["code"]) == (False, -32600)
