"""`termsprawlctl mcp`: the bridge from MCP to the app, against a scripted app."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.mcp_app import StandInApp
from support.mcp_client import McpServer
from support.session_files import TOKEN
from support.waiting import until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PICTURES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(40),
    "image/gif": b"GIF89a" + bytes(40),
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(40),
}


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path) as running:
        yield running


@pytest.fixture
def bridge(ctl, app, hermetic_env):
    with McpServer([ctl, "mcp", "--session", app.session], hermetic_env) as server:
        yield server
        assert TOKEN not in server.log()


def result_of(answer: dict) -> dict:
    """The ToolResult that the one text block holds."""
    (block,) = answer["result"]["content"]
    assert block["type"] == "text"
    return json.loads(block["text"])


def call(bridge, name: str, **arguments) -> dict:
    return bridge.answer_to(bridge.call(name, **arguments))


def test_the_handshake_asks_the_app_and_hands_out_instructions(bridge, app):
    result = bridge.initialize()["result"]
    assert app.requests == [("session_info", {})]
    assert result["serverInfo"] == {"name": "termsprawl", "version": "1.0.0"}
    assert result["capabilities"] == {"tools": {}}
    assert "session_info" in result["instructions"]
    assert bridge.request("initialize")["result"]["protocolVersion"] == "2024-11-05"
    assert app.operations == ["session_info", "session_info"]


def test_the_handshake_fails_with_the_words_of_the_app(bridge, app):
    app.replies["session_info"] = {"ok": False, "error": "Unknown or revoked session"}
    assert bridge.initialize()["error"] == {"code": -32603, "message": "Unknown or revoked session"}
    app.replies["session_info"] = {"ok": True, "value": {}}
    assert "result" in bridge.initialize()


def test_the_handshake_fails_when_the_app_is_out_of_reach(bridge, app):
    app.stop()
    error = bridge.initialize()["error"]
    assert error["code"] == -32603
    assert error["message"].startswith("Tool connection unavailable: ")
    app.start()
    assert "result" in bridge.initialize()


def test_discovering_asks_nobody_and_listing_asks_the_app_once_what_it_offers(bridge, app):
    assert "instructions" in bridge.modern("server/discover")["result"]
    assert app.requests == []
    assert bridge.modern("tools/list")["result"]["tools"] == bridge.request("tools/list")["result"]["tools"]
    assert app.requests == [("session_info", {})]


def test_after_the_handshake_listing_asks_nobody(bridge, app):
    bridge.initialize()
    assert bridge.request("tools/list")["result"]["tools"]
    assert app.operations == ["session_info"]


def test_the_list_does_not_wait_for_an_app_that_does_not_answer(bridge, app):
    gate = app.hold("session_info")
    assert len(bridge.modern("tools/list")["result"]["tools"]) == 32
    app.wait_for_hangup("session_info")
    gate.set()


def test_the_list_is_the_operation_table(bridge, ctl, hermetic_env):
    listed = [tool["name"] for tool in bridge.request("tools/list")["result"]["tools"]]
    shown = subprocess.run([ctl, "tools"], env=hermetic_env, capture_output=True, check=True).stdout.decode()
    # `tools` shows one operation a line, in the same order, extensions of the embedded host last.
    table = [line.split()[0] for line in shown.splitlines() if re.match(r"^ {0,2}[a-z]+_[a-z_]+( |$)", line)]
    assert len(listed) == 32
    assert listed == table[: len(listed)]


def test_arguments_are_taken_as_they_are_meant_and_refusals_of_them_explained(bridge, app):
    call(bridge, "terminal_read", nodeId="n", maxChars="500")
    call(bridge, "canvas_group", nodeIds='["a", "b"]', title=None)
    assert app.requests == [
        ("terminal_read", {"nodeId": "n", "maxChars": 500}),
        ("canvas_group", {"nodeIds": ["a", "b"]}),
    ]
    app.replies["terminal_read"] = {"ok": False, "error": "Invalid maxChars"}
    error = result_of(call(bridge, "terminal_read", nodeId="n", maxChars="much"))["error"]
    assert error.startswith('Invalid maxChars: terminal_read got "much", expected a number')
    app.replies["operation_of_tomorrow"] = {"ok": False, "error": "Invalid x"}
    assert result_of(call(bridge, "operation_of_tomorrow", x="1"))["error"] == "Invalid x"


def test_a_call_is_passed_through_by_name_and_its_whole_result_comes_back(bridge, app):
    arguments = {"nodeId": "n-1", "text": "é漢😀\u2028\n\"'$(x)", "deep": {"a": [1, 2.5, None, True]}}
    assert result_of(call(bridge, "operation_of_tomorrow", **arguments)) == {
        "ok": True,
        "value": {"operation": "operation_of_tomorrow", "args": arguments},
    }
    assert app.requests == [("operation_of_tomorrow", arguments)]


def test_the_text_is_compact_utf_8_json(bridge, app):
    app.replies["canvas_list"] = {"ok": True, "value": {"title": "é", "n": [1, 2]}}
    text = call(bridge, "canvas_list")["result"]["content"][0]["text"]
    assert text == '{"ok":true,"value":{"title":"é","n":[1,2]}}'


def test_is_error_is_the_opposite_of_ok(bridge, app):
    app.replies["terminal_close"] = {"ok": False, "error": "No such node", "hint": 1}
    answer = call(bridge, "terminal_close", nodeId="x")
    assert answer["result"]["isError"] is True
    assert result_of(answer) == {"ok": False, "error": "No such node", "hint": 1}
    assert call(bridge, "canvas_list")["result"]["isError"] is False


def test_missing_and_null_arguments_are_an_empty_object(bridge, app):
    bridge.request("tools/call", {"name": "a_list"})
    bridge.request("tools/call", {"name": "a_list", "arguments": None})
    assert app.requests == [("a_list", {}), ("a_list", {})]


def test_the_argument_that_gemini_adds_never_reaches_the_app(bridge, app):
    call(bridge, "terminal_read", nodeId="n", wait_for_previous=True)
    call(bridge, "operation_of_tomorrow", wait_for_previous=True)
    assert app.requests == [("terminal_read", {"nodeId": "n"}), ("operation_of_tomorrow", {})]


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_one_image_block_of_the_type_that_its_bytes_have(bridge, app, kind):
    data = base64.b64encode(PICTURES[kind]).decode()
    app.replies["browser_screenshot"] = {"ok": True, "value": {"image": data, "nodeId": "b"}}
    answer = call(bridge, "browser_screenshot", nodeId="b")
    assert answer["result"] == {"content": [{"type": "image", "data": data, "mimeType": kind}], "isError": False}


def test_bytes_that_nobody_knows_pass_for_the_apps_usual_type(bridge, app):
    app.replies["browser_screenshot"] = {"ok": True, "value": {"image": base64.b64encode(b"hello").decode()}}
    assert call(bridge, "browser_screenshot")["result"]["content"][0]["mimeType"] == "image/png"


@pytest.mark.parametrize(
    "value",
    [
        {"image": ""},
        {"image": "not base64!"},
        {"image": "data:image/png;base64,iVBORw0KGgo="},
        {"image": "iVBORw0KGg"},
        {"image": "iVBO\nRw0KGgo="},
        {"image": 5},
        {"image": None},
        {"image": ["iVBORw0KGgo="]},
        "iVBORw0KGgo=",
        None,
    ],
)
def test_what_is_no_base64_picture_is_text(bridge, app, value):
    app.replies["browser_screenshot"] = {"ok": True, "value": value}
    assert result_of(call(bridge, "browser_screenshot")) == {"ok": True, "value": value}


def test_a_picture_in_a_refusal_is_text(bridge, app):
    refusal = {"ok": False, "error": "no", "value": {"image": base64.b64encode(PNG).decode()}}
    app.replies["browser_screenshot"] = refusal
    assert result_of(call(bridge, "browser_screenshot")) == refusal


def test_calls_reach_the_app_in_the_order_in_which_they_came(bridge, app):
    names = [f"op_{number}" for number in range(100)]
    bridge.send(*({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name}} for name in names))
    assert [bridge.read()["id"] for _ in names] == names
    assert app.operations == names


def test_pings_lists_and_cancellations_are_answered_while_a_call_is_in_flight(bridge, app):
    bridge.initialize()
    gate = app.hold("slow")
    slow, queued, dropped = bridge.call("slow"), bridge.call("queued"), bridge.call("dropped")
    app.wait_for("slow")
    assert bridge.is_silent()
    assert bridge.request("tools/list")["result"]["tools"]
    bridge.cancel(dropped)
    gate.set()
    assert [bridge.read()["id"], bridge.read()["id"]] == [slow, queued]
    assert bridge.is_silent()
    assert app.operations == ["session_info", "slow", "queued"]


def test_a_call_in_flight_that_is_cancelled_is_given_up_and_the_next_one_goes_at_once(bridge, app):
    app.hold("slow")
    slow = bridge.call("slow")
    app.wait_for("slow")
    bridge.cancel(slow)
    assert result_of(call(bridge, "next"))["ok"]
    app.wait_for_hangup("slow")
    assert app.operations == ["slow", "next"]


def test_the_session_goes_on_when_the_app_restarts_on_another_port(bridge, app):
    bridge.initialize()
    assert result_of(call(bridge, "before"))["ok"]
    app.stop()
    away = call(bridge, "while_away")
    assert away["result"]["isError"] is True
    assert result_of(away)["error"].startswith("Tool connection unavailable: ")
    app.start()
    assert result_of(call(bridge, "after"))["ok"]
    # A call that failed is never repeated.
    assert app.operations == ["session_info", "before", "after"]


def test_wait_tries_the_handshake_again_until_the_app_is_back(ctl, app, hermetic_env):
    app.stop()
    with McpServer([ctl, "mcp", "--wait", "60", "--session", app.session], hermetic_env) as server:
        handshake = server.ask("initialize", {"protocolVersion": "2025-11-25"})
        early = server.call("early")
        assert server.is_silent()
        app.start()
        assert "result" in server.answer_to(handshake)
        assert server.answer_to(early)["result"]["isError"] is False
        assert app.operations == ["session_info", "early"]
        # Calls are not repeated, whatever --wait says.
        app.stop()
        assert server.answer_to(server.call("late"))["result"]["isError"] is True


def test_wait_does_not_ask_again_when_the_app_says_no(ctl, app, hermetic_env):
    app.replies["session_info"] = {"ok": False, "error": "Unknown or revoked session"}
    with McpServer([ctl, "mcp", "--wait", "60", "--session", app.session], hermetic_env) as server:
        assert server.initialize()["error"]["message"] == "Unknown or revoked session"
    assert app.operations == ["session_info"]


def test_waiting_for_the_app_ends_with_the_clients_input(ctl, app, hermetic_env):
    app.stop()
    with McpServer([ctl, "mcp", "--wait", "600", "--session", app.session], hermetic_env) as server:
        handshake = server.ask("initialize")
        assert server.is_silent()
        server.close()
        (answer,) = server.rest()
        assert (answer["id"], answer["error"]["code"]) == (handshake, -32603)
        assert server.exit_status() == 0


@pytest.mark.parametrize("wait", ["0", "60"])
def test_a_handshake_under_way_is_finished_when_the_clients_input_ends(ctl, app, hermetic_env, wait):
    gate = app.hold("session_info")
    with McpServer([ctl, "mcp", "--wait", wait, "--session", app.session], hermetic_env) as server:
        first, second = server.ask("initialize"), server.ask("initialize")
        app.wait_for("session_info")
        server.close()
        # The server knows of the end by now, or will; neither may make a difference.
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.2)
        gate.set()
        answers = server.rest()
        assert [(answer["id"], "result" in answer) for answer in answers] == [(first, True), (second, True)]
        assert app.hung_up == []
        assert server.exit_status() == 0


@pytest.mark.parametrize("words", [["--wait", "-1"], ["--wait", "x"], ["--wait", "nan"], ["--wait", "inf"], ["--wait"]])
def test_a_wait_that_is_no_time_is_a_usage_error(ctl, hermetic_env, words):
    done = subprocess.run([ctl, "mcp", *words], env=hermetic_env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--wait" in done.stderr


def test_without_a_session_nothing_is_served(ctl, hermetic_env):
    done = subprocess.run([ctl, "mcp"], env=hermetic_env, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"provide --session /absolute/path/to/session.json" in done.stderr


def test_the_session_may_come_from_the_environment(ctl, app, hermetic_env):
    with McpServer([ctl, "mcp"], {**hermetic_env, "TERMSPRAWL_SESSION_FILE": app.session}) as server:
        assert "result" in server.initialize()


def test_an_answer_of_many_megabytes_arrives_whole(bridge, app):
    text = "é\u2028" * (2 << 20)
    app.replies["terminal_read"] = {"ok": True, "value": {"output": text}}
    assert result_of(call(bridge, "terminal_read"))["value"]["output"] == text


def test_the_token_reaches_nobody(bridge, app):
    app.replies["leak"] = {"ok": True, "value": {"text": f"Bearer {TOKEN}"}}
    bridge.initialize()
    bridge.call("leak")
    assert TOKEN.encode() not in bridge.read_line()
    process = Path(f"/proc/{bridge.process.pid}")
    assert TOKEN.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


def test_an_answer_that_is_no_tool_result_is_an_error_of_the_call(bridge, app):
    app.replies["odd"] = {"hello": 1}
    answer = call(bridge, "odd")
    assert answer["result"]["isError"] is True
    assert "not a tool result" in result_of(answer)["error"]


@pytest.mark.parametrize("first", ["ping", "server/discover", "tools/list", "initialize", "tools/call", "guides"])
def test_a_session_survives_the_replacement_of_the_file_that_it_runs_from(ctl, app, hermetic_env, tmp_path, first):
    copy = tmp_path / "termsprawlctl"
    shutil.copy(ctl, copy)
    with McpServer([copy, "mcp", "--session", app.session], hermetic_env) as server:
        # Whatever has been asked by then, and at the very moment of its answer.
        if first in ("server/discover", "tools/list"):
            assert server.modern(first)["result"]
        elif first == "tools/call":
            assert result_of(call(server, "before"))["ok"]
        else:
            assert "result" in server.request("ping" if first == "guides" else first)
        newer = tmp_path / "newer"
        newer.write_bytes(b"#!/bin/sh\n" + bytes(copy.stat().st_size // 2))
        newer.rename(copy)
        if first == "guides":
            assert server.modern("server/discover")["result"]["instructions"]
        assert "result" in server.initialize()
        assert result_of(call(server, "canvas_list"))["ok"]
        assert server.request("tools/list")["result"]["tools"]
        assert server.log() == ""


def test_what_calls_need_is_loaded_as_soon_as_the_client_is_quiet(ctl, app, hermetic_env):
    words = [sys.executable, "-ISB", "-X", "importtime", ctl, "mcp", "--session", app.session]
    with McpServer(words, hermetic_env) as server:
        until(lambda: "termsprawlctl.app.transport" in server.log(), server.log)
        # Loading is all: nobody was asked anything.
        assert app.requests == []


def test_a_session_outlives_a_restart_of_the_embedded_host(ctl, host, hermetic_env):
    with McpServer([ctl, "mcp", "--session", host.session_file], hermetic_env) as server:
        assert server.initialize()["result"]["serverInfo"]["name"] == "termsprawl"
        node = result_of(call(server, "terminal_open", title="kept"))["value"]["nodeId"]
        assert host.stop().returncode == 0
        assert result_of(call(server, "canvas_list"))["ok"] is False
        host.start()
        assert result_of(call(server, "terminal_read", nodeId=node))["ok"] is True


def test_the_embedded_host_names_the_operations_that_are_listed(ctl, host, hermetic_env):
    with McpServer([ctl, "mcp", "--session", host.session_file], hermetic_env) as server:
        server.initialize()
        offered = result_of(call(server, "session_info"))["value"]["operations"]
        listed = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert listed == offered
