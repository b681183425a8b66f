"""The revisions: what each request gets, whatever came before it on the same pipe."""

from __future__ import annotations

import pytest
from support.mcp_client import META, MODERN, PREFIX, McpServer, toy

VERSION, CAPABILITIES = f"{PREFIX}protocolVersion", f"{PREFIX}clientCapabilities"
SERVER_INFO = {f"{PREFIX}serverInfo": {"name": "toy", "version": "1.0.0"}}
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.fixture
def server(ctl, hermetic_env):
    with McpServer(toy(ctl), hermetic_env) as running:
        yield running


@pytest.mark.parametrize("version", LEGACY)
def test_initialize_answers_the_legacy_revision_that_was_asked_for(server, version):
    assert server.initialize(version)["result"] == {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "toy", "version": "1.0.0"},
    }


@pytest.mark.parametrize(
    ("params", "answered"),
    [
        (None, "2024-11-05"),
        ({}, "2024-11-05"),
        ({"protocolVersion": None}, "2024-11-05"),
        ({"protocolVersion": MODERN}, "2025-11-25"),
        ({"protocolVersion": "1999-01-01"}, "2025-11-25"),
        ({"protocolVersion": ""}, "2025-11-25"),
        ({"protocolVersion": 20250618}, "2025-11-25"),
        ({"protocolVersion": ["2025-06-18"]}, "2025-11-25"),
    ],
)
def test_initialize_answers_the_oldest_revision_for_none_and_the_newest_for_unknown_ones(server, params, answered):
    assert server.request("initialize", params)["result"]["protocolVersion"] == answered


def test_a_second_initialize_is_answered_again(server):
    assert server.initialize("2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
    assert server.initialize("2024-11-05")["result"]["protocolVersion"] == "2024-11-05"


def test_nothing_has_to_be_initialized_before_a_legacy_request(server):
    assert server.request("ping")["result"] == {}
    assert set(server.request("tools/list")["result"]) == {"tools"}
    assert set(server.answer_to(server.call("echo"))["result"]) == {"content", "isError"}


def test_discover_says_what_a_modern_client_needs(server):
    assert server.modern("server/discover")["result"] == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": SERVER_INFO,
    }


def test_a_modern_list_may_be_cached_and_a_modern_call_may_not(server):
    listed = server.modern("tools/list")["result"]
    assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 3_600_000, "public")
    assert listed["_meta"] == SERVER_INFO
    called = server.modern("tools/call", name="echo")["result"]
    assert set(called) == {"resultType", "content", "isError", "_meta"}
    assert called["_meta"] == SERVER_INFO


def test_what_a_tool_puts_into_meta_stays_there(server):
    result = {"content": [], "_meta": {"mine": 1}}
    modern = server.modern("tools/call", name="raw", arguments={"value": result})["result"]
    assert modern["_meta"] == {"mine": 1, **SERVER_INFO}
    legacy = server.request("tools/call", {"name": "raw", "arguments": {"value": result}})["result"]
    assert legacy == result


def test_modern_errors_carry_none_of_what_results_do(server):
    answer = server.modern("tools/call", name="nope")
    assert set(answer) == {"jsonrpc", "id", "error"}
    assert set(answer["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (None, "_meta"),
        ({}, "_meta"),
        ({"_meta": None}, "_meta"),
        ({"_meta": []}, "_meta"),
        ({"_meta": {}}, VERSION),
        ({"_meta": {CAPABILITIES: {}}}, VERSION),
        ({"_meta": {VERSION: 5, CAPABILITIES: {}}}, VERSION),
        ({"_meta": {VERSION: None, CAPABILITIES: {}}}, VERSION),
        ({"_meta": {VERSION: MODERN}}, CAPABILITIES),
        ({"_meta": {VERSION: MODERN, CAPABILITIES: []}}, CAPABILITIES),
        ({"_meta": {VERSION: MODERN, CAPABILITIES: None}}, CAPABILITIES),
    ],
)
def test_a_modern_request_without_its_marks_is_told_which_one_is_missing(server, params, named):
    answer = server.request("server/discover", params)
    assert answer["error"]["code"] == -32602
    assert named in answer["error"]["message"]


@pytest.mark.parametrize("version", [*LEGACY, "2031-01-01", ""])
def test_another_version_in_meta_is_unsupported_and_told_which_are(server, version):
    for method in ("server/discover", "tools/list", "tools/call", "ping"):
        answer = server.request(method, {"_meta": {VERSION: version, CAPABILITIES: {}}})
        assert answer["error"] == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": [MODERN], "requested": version},
        }


def test_client_info_is_never_required_and_unknown_meta_is_ignored(server):
    assert "result" in server.modern("tools/list", _meta={"vendor/id": 7, "progressToken": "t"})


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/list", "resources/read", "prompts/list", "x"]
)
def test_the_modern_revision_has_no_such_method(server, method):
    assert server.modern(method)["error"] == {"code": -32601, "message": "Method not found"}


def test_the_era_belongs_to_each_request_and_not_to_the_connection(server):
    # As Claude Code does when its first question is not answered at once.
    server.send(
        {"jsonrpc": "2.0", "id": "probe", "method": "server/discover", "params": {"_meta": META}},
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {"progressToken": 2}}},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    )
    answers = {answer["id"]: answer["result"] for answer in (server.read() for _ in range(5))}
    assert [key for key in answers if answers[key].get("resultType")] == ["probe", 1]
    assert answers[1]["tools"] == answers[2]["tools"]


def test_a_subscription_is_acknowledged_then_silent_until_it_is_cancelled(server):
    request_id = server.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": META})
    assert server.read() == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {f"{PREFIX}subscriptionId": request_id}, "notifications": {}},
    }
    assert server.is_silent()
    server.cancel(request_id)
    assert server.is_silent()
    server.close()
    assert server.rest() == []


def test_subscriptions_end_with_their_results_at_the_end_of_the_input(server):
    for request_id in ("a", 0, 0):  # an id may be in use twice
        server.ask("subscriptions/listen", {"_meta": META}, request_id=request_id)
        assert server.read()["params"]["_meta"] == {f"{PREFIX}subscriptionId": request_id}
    server.close()
    assert server.rest() == [
        {
            "jsonrpc": "2.0",
            "id": request_id,
            "result": {"resultType": "complete", "_meta": {f"{PREFIX}subscriptionId": request_id, **SERVER_INFO}},
        }
        for request_id in ("a", 0, 0)
    ]
    assert server.exit_status() == 0


def test_subscriptions_without_end_are_refused(server):
    params = {"_meta": META}
    server.send(
        *({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params} for _ in range(101)),
    )
    for _ in range(100):
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"
    assert server.read()["error"]["code"] == -32603
    server.cancel(5)
    assert server.is_silent()
    server.ask("subscriptions/listen", params)
    assert server.read()["method"] == "notifications/subscriptions/acknowledged"


def test_subscriptions_that_hold_much_are_refused(server):
    # Each keeps its id until it ends; 16 MiB of them may be open.
    ids = [f"{number}" + "x" * (3 << 20) for number in range(8)]
    answers = [
        server.read()
        for request_id in ids
        if server.ask("subscriptions/listen", {"_meta": META}, request_id=request_id)
    ]
    assert [answer.get("method") for answer in answers[:5]] == ["notifications/subscriptions/acknowledged"] * 5
    assert [answer["error"]["code"] for answer in answers[5:]] == [-32603] * 3
    server.cancel(ids[0])
    server.ask("subscriptions/listen", {"_meta": META}, request_id="short")
    assert server.read()["method"] == "notifications/subscriptions/acknowledged"
