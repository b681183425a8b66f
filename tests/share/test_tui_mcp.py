"""An MCP client, the adapter, a share and a real tmux client, end to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from support import counterparts
from support.command import run
from support.mcp_client import McpServer
from support.tui_endpoint import APPLIED, CONTEXT, SELECT, TOKEN, FakeEndpoint, line
from support.tui_share import RunningShare
from support.tui_tmux import PREFIX
from support.waiting import PATIENCE_S, until

DRIVER = Path(__file__).resolve().parent.parent / "counterparts" / "drivers" / "tui_client.py"
INVALID = {"status": "rejected", "code": "invalid_request"}


@pytest.fixture
def share(ctl, tmux):
    running = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket], tmux.env)
    yield running
    running.stop(signal.SIGKILL)


@pytest.fixture
def fake(tmp_path_factory):
    made = FakeEndpoint(tmp_path_factory.mktemp("f"))
    yield made
    made.close()


@pytest.fixture
def adapter(ctl, fake, hermetic_env):
    with McpServer([ctl, "mcp", "tui", "--endpoint", fake.path], hermetic_env) as server:
        yield server
        assert TOKEN not in server.log()


def session_ids(ctl, tmux) -> dict[str, str]:
    done = run([ctl, "tui", "sessions", "--json", "--socket-path", tmux.socket], tmux.env)
    return {row["name"]: row["sessionId"] for row in json.loads(done.out)}


def tool_result(response: dict) -> dict:
    """The answer inside a tool's result; structure, text and isError have to agree."""
    result = response["result"]
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]
    assert result["isError"] == (result["structuredContent"]["status"] == "rejected")
    return result["structuredContent"]


# --- the adapter on its own ---------------------------------------------------------------


def test_both_eras_see_the_same_server_and_tools(adapter):
    assert adapter.initialize()["result"]["serverInfo"]["name"] == "termsprawl-tui"
    tools = adapter.request("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["get_view_context", "select_session"]
    assert adapter.modern("tools/list")["result"]["tools"] == tools
    for tool in tools:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
        assert len(tool["annotations"]) == 4
    read, select = tools
    assert read["annotations"]["readOnlyHint"]
    assert select["annotations"]["idempotentHint"]
    assert select["inputSchema"]["required"] == list(SELECT)
    for words in ("fresh context", "not that it is drawn", "timeout_unknown", "outcome_unknown", "new requestId"):
        assert words in select["description"]


def test_an_answer_is_given_as_structure_and_as_the_same_text(adapter, fake):
    adapter.initialize()
    fake.serve(line(CONTEXT))
    assert tool_result(adapter.answer_to(adapter.call("get_view_context"))) == CONTEXT
    fake.serve(line({"status": "rejected", "code": "busy"}))
    answer = tool_result(adapter.modern("tools/call", name="select_session", arguments=SELECT))
    assert answer == {"status": "rejected", "code": "busy"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_view_context", {"more": 1}),
        ("select_session", {}),
        ("select_session", {**SELECT, "more": 1}),
        ("select_session", {**SELECT, "expectedRevision": "3"}),
        ("select_session", {**SELECT, "sessionId": "not a session"}),
        ("select_session", []),
        ("no_such_tool", {}),
    ],
    ids=str,
)
def test_arguments_of_the_wrong_shape_and_unknown_tools_are_invalid_and_connect_to_nobody(
    adapter, fake, tool, arguments
):
    response = adapter.request("tools/call", {"name": tool, "arguments": arguments})
    assert tool_result(response) == INVALID
    fake.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        fake.listener.accept()


def test_an_endpoint_that_went_away_is_unavailable_and_the_adapter_goes_on(adapter, fake):
    adapter.initialize()
    data = fake.file.read_bytes()
    fake.file.unlink()
    assert tool_result(adapter.answer_to(adapter.call("get_view_context")))["code"] == "target_unavailable"
    fake.write(data)
    fake.serve(line(CONTEXT))
    assert tool_result(adapter.answer_to(adapter.call("get_view_context"))) == CONTEXT


def test_a_line_over_64_kib_is_refused_and_the_next_one_served(adapter):
    adapter.send_bytes(b"x" * 65_537 + b"\n")
    assert "error" in adapter.read()
    assert adapter.request("ping")["result"] == {}


def test_a_cancelled_call_lets_go_of_its_connection_at_once(adapter, fake):
    adapter.initialize()
    never = threading.Event()
    fake.serve(never)
    request_id = adapter.call("get_view_context")
    until(lambda: fake.requests)
    adapter.cancel(request_id)
    fake.serve(line(CONTEXT))
    assert tool_result(adapter.answer_to(adapter.call("get_view_context"))) == CONTEXT


def test_calls_run_side_by_side_and_each_is_answered_as_soon_as_it_can_be(adapter, fake):
    adapter.initialize()
    never = threading.Event()
    fake.serve(never, line(APPLIED))
    slow = adapter.call("select_session", **SELECT)
    until(lambda: fake.requests, "the selection is on its way")
    fake.serve(line(CONTEXT))
    assert tool_result(adapter.answer_to(adapter.call("get_view_context"))) == CONTEXT
    fake.serve(line({"status": "rejected", "code": "busy"}))
    other = {**SELECT, "requestId": "55555555-5555-4555-8555-555555555555"}
    assert tool_result(adapter.answer_to(adapter.call("select_session", **other)))["code"] == "busy"
    never.set()
    assert tool_result(adapter.answer_to(slow)) == APPLIED


def test_what_can_be_done_about_a_stale_view_is_said_beforehand(adapter, fake):
    adapter.initialize()
    _, select = adapter.request("tools/list")["result"]["tools"]
    assert "select at once" in select["description"]
    assert "beforehand" in select["description"]
    # The answer itself is the one text that there is.
    fake.serve(line({"status": "rejected", "code": "stale_revision"}))
    assert tool_result(adapter.answer_to(adapter.call("select_session", **SELECT)))["code"] == "stale_revision"


def test_an_adapter_that_may_come_first_serves_before_during_and_after_a_share(ctl, fake, hermetic_env):
    file = fake.file.read_bytes()
    fake.file.unlink()
    with McpServer([ctl, "mcp", "tui", "--later", "--endpoint", fake.path], hermetic_env) as server:
        server.initialize()
        gone = {"status": "rejected", "code": "target_unavailable"}
        assert tool_result(server.answer_to(server.call("get_view_context"))) == gone
        fake.write(file)
        fake.serve(line(CONTEXT))
        assert tool_result(server.answer_to(server.call("get_view_context"))) == CONTEXT
        fake.file.unlink()
        assert tool_result(server.answer_to(server.call("get_view_context"))) == gone


@pytest.mark.parametrize("wrong", ["relative", "name", "mode"])
def test_one_that_may_come_first_still_takes_no_wrong_endpoint(ctl, fake, hermetic_env, wrong):
    fake.file.chmod(0o644)
    path = {"relative": "endpoint.json", "name": str(fake.folder / "other.json"), "mode": fake.path}[wrong]
    assert run([ctl, "mcp", "tui", "--later", "--endpoint", path], hermetic_env).status == 2


@pytest.mark.parametrize("wrong", ["relative", "name", "mode", "version", "socket", "missing"])
def test_an_endpoint_that_cannot_be_used_ends_the_adapter_at_start(ctl, fake, hermetic_env, wrong):
    path = fake.path
    if wrong == "relative":
        path = os.path.relpath(path)
    elif wrong == "name":
        path = str(fake.folder / "other.json")
    elif wrong == "mode":
        fake.file.chmod(0o644)
    elif wrong == "version":
        fake.write(json.dumps({"version": 2, "token": TOKEN}).encode())
    elif wrong == "socket":
        (fake.folder / "s").unlink()
    else:
        fake.file.unlink()
    done = run([ctl, "mcp", "tui", "--endpoint", path], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(b"termsprawlctl: the ") or done.err.startswith(b"termsprawlctl: cannot look at the ")
    assert done.err.count(b"\n") == 1
    assert TOKEN.encode() not in done.err


def test_the_adapter_starts_without_what_only_the_sharing_side_needs(ctl, fake, hermetic_env):
    """Start-up time is a feature; and on Windows there is no fcntl to import."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import termsprawlctl.share.adapter; "
        "unwanted = {'asyncio', 'fcntl', 'hmac', 'tempfile', 'termsprawlctl.base.tmux'}; "
        "print(sorted(unwanted.intersection(sys.modules)))"
    )
    done = run([sys.executable, "-ISBc", code, ctl], hermetic_env)
    assert done.out == b"[]\n"


# --- all together -------------------------------------------------------------------------


class OfficialClient:
    """The official client in a process of its own, with the adapter as its server."""

    def __init__(self, mode: str, ctl: str, endpoint: str, env: dict) -> None:
        argv = [counterparts.python(), DRIVER, mode, ctl, "mcp", "tui", "--endpoint", endpoint]
        self.process = subprocess.Popen(
            [str(word) for word in argv], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hello = json.loads(self.process.stdout.readline())

    def begin(self, tool: str, **arguments) -> None:
        self.process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        report = json.loads(self.process.stdout.readline())
        text = report["texts"][0]
        assert json.loads(text) == report["structured"]
        assert report["isError"] == (report["structured"]["status"] == "rejected")
        return report["structured"]

    def context(self) -> dict:
        self.begin("get_view_context")
        return self.answer()["context"]

    def quiet_context(self) -> dict:
        seen: list[dict] = []
        until(lambda: seen.append(self.context()) or not seen[-1]["blocked"])
        return seen[-1]

    def begin_select(self, context: dict, session_id: str, request_id: str | None = None) -> None:
        self.begin(
            "select_session",
            requestId=request_id or str(uuid.uuid4()),
            instanceId=context["instanceId"],
            generation=context["generation"],
            expectedRevision=context["revision"],
            sessionId=session_id,
        )

    def select(self, *what) -> dict:
        self.begin_select(*what)
        return self.answer()

    def close(self) -> int:
        self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return status


@pytest.mark.counterpart
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_sees_and_switches_a_live_tmux_client(ctl, tmux, share, hermetic_env, mode):
    client, ids = tmux.first, session_ids(ctl, tmux)
    agent = OfficialClient(mode, ctl, share.path, {**hermetic_env, "HOME": tmux.env["HOME"]})
    assert agent.hello["tools"] == ["get_view_context", "select_session"]

    seen = agent.quiet_context()
    assert (seen["route"], seen["sessionId"], seen["ready"]) == ("session", ids["one"], True)
    request_id = str(uuid.uuid4())
    applied = agent.select(seen, ids["two"], request_id)
    assert applied["status"] == "applied"
    assert applied["context"]["sessionId"] == ids["two"]
    assert tmux.session_of(client) == "two"
    assert agent.select(seen, ids["two"], request_id) == applied, "the receipt"

    seen = agent.quiet_context()
    client.type(PREFIX + b"c")
    assert until(lambda: agent.context()["revision"] > seen["revision"])
    assert agent.select(seen, ids["one"])["code"] == "stale_revision"
    client.type(b"a")
    assert until(lambda: agent.context()["blocked"])
    assert agent.select(agent.context(), ids["one"])["code"] == "user_active"
    client.type(b"\x15")
    assert agent.select(agent.quiet_context(), ids["one"])["status"] == "applied"
    assert tmux.session_of(client) == "one"

    share.stop()
    agent.begin("get_view_context")
    assert agent.answer()["code"] == "target_unavailable"
    assert agent.close() == 0


# A tmux that keeps back the question which sessions there are while the gate file exists.
GATED_TMUX = """#!{python}
import os, sys, time
real, gate = {real!r}, {gate!r}
while any("#{{session_name}}" in word for word in sys.argv) and os.path.exists(gate):
    open(gate + ".reached", "w").close()
    time.sleep(0.01)
os.execv(real, [real, *sys.argv[1:]])
"""


@pytest.mark.counterpart
def test_revoking_while_a_validation_hangs_stops_the_navigation_at_once(ctl, tmux, tmp_path, hermetic_env, request):
    counterparts.python()  # skips before anything is started
    gate = tmp_path / "gate"
    stand_in = tmp_path / "tmux"
    stand_in.write_text(GATED_TMUX.format(python=sys.executable, real=shutil.which("tmux"), gate=str(gate)))
    stand_in.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), tmux.env["PATH"]])
    share = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket], {**tmux.env, "PATH": path})
    request.addfinalizer(lambda: share.process.poll() is not None or share.stop(signal.SIGKILL))
    agent = OfficialClient("auto", ctl, share.path, {**hermetic_env, "HOME": tmux.env["HOME"]})
    seen = agent.quiet_context()
    wanted = session_ids(ctl, tmux)["two"]
    gate.touch()
    agent.begin_select(seen, wanted)
    until(lambda: os.path.exists(f"{gate}.reached"), "the validation hangs")
    done = run([ctl, "tui", "revoke", share.path], tmux.env)
    assert (done.status, done.out) == (0, b"revoked\n")
    assert agent.answer() == {"status": "rejected", "code": "revoked"}
    assert share.ended() == 0
    gate.unlink()
    assert tmux.session_of(tmux.first) == "one"
    assert agent.close() == 0
