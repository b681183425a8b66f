"""Questions for permission: what the policy answers, and what a person does, over MCP and on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from support.mcp_client import META, PREFIX
from support.scripted_acp import WORK, script
from support.scripted_agent import Box, labels, structured, text
from support.waiting import until

from termsprawlctl.agents.clis.acp import AcpReader
from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.runs.run import Clocks

ABLE = {"elicitation": {}}
ONCE = {"outcome": {"outcome": "selected", "optionId": "once"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}
# What an agent does that is told to stop.
STOPPED = """
record('cancelled', take('session/cancel'))
answer(message, stopReason='cancelled')
next(lines, None)
sys.exit(0)
"""
ASK = ("--permissions", "ask")


@contextlib.contextmanager
def asking(box: Box, *words, version="2025-11-25", capabilities=ABLE):
    from support.mcp_client import McpServer

    with McpServer(box.argv(*ASK, *words, "--", "my-agent", agent="acp"), box.env) as server:
        server.initialize(version, capabilities)
        yield server


def question_of(server, **call):
    """(id of the call, the question that the agent's became)."""
    key = server.call("run", token="t", **{"prompt": "go", **call})
    while True:
        message = server.read()
        if message.get("method") == "elicitation/create":
            return key, message
        assert message.get("method") == "notifications/progress", message
        server.notifications.append(message)


def reply(server, question, value):
    result = {"action": "accept", "content": {"decision": value}} if value else {"action": "decline"}
    server.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(("value", "outcome"), [("allow_once", ONCE), ("reject_once", NO), ("", NO)])
def test_the_question_of_an_agent_goes_to_the_user_of_the_client(box, version, value, outcome):
    script(box, WORK)
    with asking(box, version=version) as server:
        key, question = question_of(server)
        params = question["params"]
        assert params["message"].endswith(f"wants to run this command in {box.project}:\n\nmake")
        field = params["requestedSchema"]["properties"]["decision"]
        offered = field.get("enum") or [one["const"] for one in field["oneOf"]]
        titles = field.get("enumNames") or [one["title"] for one in field["oneOf"]]
        # An option that holds for good is not offered, whatever the agent offers.
        assert (offered, titles) == (["allow_once", "reject_once"], ["Once", "No"])
        reply(server, question, value)
        answer = server.answer_to(key)
        assert "Waiting for permission: make" in labels(server)
    assert box.recorded("outcome") == outcome
    (command,) = [step for step in structured(answer)["activity"] if step["kind"] == "command"]
    assert command["status"] == ("completed" if outcome is ONCE else "declined")
    assert ("execute make" in structured(answer).get("note", "")) == (outcome is NO)


def test_the_question_is_put_as_an_input_required_result_where_the_revision_has_it(box):
    script(box, WORK)
    meta = {**META, f"{PREFIX}clientCapabilities": ABLE}
    with asking(box) as server:
        params = {"name": "run", "arguments": {"prompt": "go"}, "_meta": meta}
        asked = server.request("tools/call", params)["result"]
        assert asked["resultType"] == "input_required"
        assert "make" in asked["inputRequests"]["question"]["params"]["message"]
        chosen = {"question": {"action": "accept", "content": {"decision": "allow_once"}}}
        done = server.request("tools/call", {**params, "requestState": asked["requestState"], "inputResponses": chosen})
    assert done["result"]["structuredContent"]["status"] == "completed"
    assert box.recorded("outcome") == ONCE


def test_a_client_that_cannot_ask_means_no_and_the_result_says_so(box):
    script(box, WORK)
    with asking(box, capabilities={}) as server:
        answer = server.answer_to(server.call("run", prompt="go"))
    assert box.recorded("outcome") == NO
    assert "nobody can be asked here" in structured(answer)["note"]
    assert "--permissions allow" in text(answer)


def test_nobody_who_answers_means_no(box):
    script(box, WORK)
    with asking(box, "--ask-timeout", "0.2") as server:
        key, question = question_of(server)
        answer = server.answer_to(key)
    withdrawn = [note for note in server.notifications if note["method"] == "notifications/cancelled"]
    assert [note["params"]["requestId"] for note in withdrawn] == [question["id"]]
    assert box.recorded("outcome") == NO
    assert "nobody answered within 0.2 s" in structured(answer)["note"]


def test_a_client_that_does_not_come_back_has_its_run_ended(box):
    script(box, WORK.replace('chunk("All ")', STOPPED))
    meta = {**META, f"{PREFIX}clientCapabilities": ABLE}
    with asking(box, "--ask-timeout", "0.2") as server:
        params = {"name": "run", "arguments": {"prompt": "go"}, "_meta": meta}
        state = server.request("tools/call", params)["result"]["requestState"]
        until((box.home / "cancelled").exists, "the end of the run")
        late = {"question": {"action": "accept", "content": {"decision": "allow_once"}}}
        done = server.request("tools/call", {**params, "requestState": state, "inputResponses": late})
    assert done["result"]["structuredContent"]["status"] == "cancelled"
    assert box.recorded("outcome") == NO


def test_waiting_for_a_person_counts_neither_as_silence_nor_as_the_time_of_the_run():
    clocks = Clocks()
    begun = clocks.begun
    clocks.pass_over(begun + 10, waiting=False)
    clocks.pass_over(begun + 1010, waiting=True)
    assert (clocks.begun, clocks.heard) == (begun + 1000, begun + 1010)
    clocks.pass_over(begun + 1020, waiting=False)
    assert (clocks.begun, clocks.heard) == (begun + 1000, begun + 1010)


def test_a_call_that_is_cancelled_while_a_person_is_asked_ends_the_run_and_the_question(box):
    script(box, WORK)
    with asking(box) as server:
        key, question = question_of(server)
        server.cancel(key)
        withdrawn = server.read()
        while withdrawn["method"] == "notifications/progress":
            withdrawn = server.read()
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", question["id"])
        until(lambda: not box.family(), "the end of the run")
        assert server.is_silent()


def test_a_run_in_the_background_asks_whoever_waits_for_its_result(box):
    script(box, WORK)
    with asking(box) as server:
        run_id = structured(server.answer_to(server.call("run", prompt="go", background=True)))["runId"]
        key = server.call("run_result", runId=run_id, waitMs=20_000)
        question = server.read()
        assert question["method"] == "elicitation/create"
        reply(server, question, "allow_once")
        assert structured(server.answer_to(key))["status"] == "completed"
    assert box.recorded("outcome") == ONCE


# --- what is shown ---------------------------------------------------------------------------------


def ask_reader(call, options=None):
    """The reader of an agent that has asked this."""
    request = Request("p", "/srv/project")
    request.permissions = "ask"
    reader = AcpReader("/srv/project")
    reader.start(request)
    reader._session, reader._live = "s", True
    offered = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "t", **call},
        "options": offered if options is None else options,
    }
    message = {"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}
    reader.outbox = []
    reader.feed(json.dumps(message).encode())
    return reader


def test_a_change_is_shown_as_a_diff():
    content = [{"type": "diff", "path": "/srv/project/a.py", "oldText": "one\ntwo\n", "newText": "one\nthree\n"}]
    (question,) = ask_reader({"kind": "edit", "title": "Edit", "content": content}).permissions.open
    shown = question.message.split("\n")
    assert {"--- a.py", "+++ a.py", "-two", "+three"} <= set(shown)
    content = [{"type": "diff", "path": "b.py", "oldText": None, "newText": "x\n" * 500}]
    (question,) = ask_reader({"kind": "edit", "content": content}).permissions.open
    assert "+++ b.py" in question.message
    assert question.message.endswith("(421 more lines are not shown)")


def test_characters_that_deceive_are_shown_as_such():
    (question,) = ask_reader(
        {"kind": "execute", "rawInput": {"command": "echo \u202egnp\u202c \x1b[2Jx\u200b"}}
    ).permissions.open
    assert "\\u202e" in question.message
    assert "\x1b" not in question.message
    assert "\u200b" not in question.message


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ({"kind": "execute", "rawInput": {"command": "x" * 5000}}, None),
        ({"kind": "execute"}, None),
        ({}, None),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, []),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, [{"optionId": "a", "name": "A", "kind": "allow_always"}]),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, [{"optionId": "a", "name": "A", "kind": "allow_magic"}]),
    ],
)
def test_what_cannot_be_shown_or_allowed_once_is_refused_unasked(call, options):
    reader = ask_reader(call, options)
    assert reader.permissions.open == []
    (sent,) = [json.loads(line) for line in reader.outbox]
    outcome = sent["result"]["outcome"]
    assert outcome in ({"outcome": "selected", "optionId": "reject_once"}, {"outcome": "cancelled"})
    assert len(reader.denied) == 1


def test_an_agent_may_take_its_question_back():
    reader = ask_reader({"kind": "execute", "rawInput": {"command": "ls"}})
    reader.outbox = []
    reader.feed(b'{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 0}}')
    assert reader.permissions.open == []
    (sent,) = [json.loads(line) for line in reader.outbox]
    assert (sent["id"], sent["error"]["code"]) == (0, -32800)


# --- on a terminal ---------------------------------------------------------------------------------


def on_terminal(box, typed, *words, patience_s=60.0):
    """Run `agent run` on a terminal of its own; `typed` is sent once the question is shown. What was shown."""
    argv = [box.ctl, "agent", "run", "acp", "go", *ASK, *words, "--", "my-agent"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(box.project)
        os.execvpe(argv[0], argv, box.env)
    shown, sent, end_s = b"", False, time.monotonic() + patience_s
    try:
        while time.monotonic() < end_s:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:
                data = b""
            if not data:
                break
            shown += data
            if b"for none: " in shown and not sent:
                sent = True
                os.write(terminal, typed)
        else:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(shown)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.parametrize(
    ("typed", "outcome"),
    [(b"1\n", ONCE), (b"2\n", NO), (b"\n", NO), (b"y\n", NO), (b"3\n", NO), (b"11\n", NO), (b"\x04", NO)],
)
def test_a_person_is_asked_on_the_terminal(box, typed, outcome):
    script(box, WORK)
    status, shown = on_terminal(box, typed)
    assert status == 0
    assert f"wants to run this command in {box.project}:" in shown
    assert "[1] Once" in shown
    assert box.recorded("outcome") == outcome


def test_a_terminal_where_nobody_types_means_no(box):
    script(box, WORK)
    status, shown = on_terminal(box, b"", "--ask-timeout", "0.3")
    assert status == 0
    assert "nobody answered within 0.3 s" in shown
    assert box.recorded("outcome") == NO


def test_without_a_terminal_nobody_is_asked(box):
    script(box, WORK)
    argv = [box.ctl, "agent", "run", "acp", "go", *ASK, "--", "my-agent"]
    done = subprocess.run(
        argv, env=box.env, cwd=box.project, input=b"1\n1\n", capture_output=True, check=True, start_new_session=True
    )
    assert b"nobody can be asked here" in done.stderr
    assert box.recorded("outcome") == NO
