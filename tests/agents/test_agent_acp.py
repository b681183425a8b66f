"""Agents over the Agent Client Protocol: recorded conversations of six, and a scripted one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.command import run
from support.scripted_acp import WORK, acp, script
from support.scripted_agent import structured, text
from support.waiting import until

from termsprawlctl.agents.clis.acp import AcpCli, Calls, mcp_servers
from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.clis.permission import Permissions
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.model.steps import Activity, summary
from termsprawlctl.agents.runs.render import structure_of, text_of
from termsprawlctl.agents.runs.result import Result
from termsprawlctl.agents.runs.status import COMPLETED, Ending, judge

RECORDED = Path(__file__).resolve().parent.parent / "data" / "acp"
EXPECTED = json.loads((RECORDED / "expected.json").read_text())
CASES = [pytest.param(*name.split("/"), id=name) for name in EXPECTED]
CWD = "/srv/project"


def lines_of(agent, case):
    """The messages of a conversation; of a resumed one those with the second process."""
    lines = [json.loads(line) for line in (RECORDED / agent / f"{case}.jsonl").read_text().splitlines()]
    starts = [number for number, line in enumerate(lines) if line.get("message", {}).get("method") == "initialize"]
    return lines[starts[-1] :] if case in ("load", "resume") else lines


def replay(agent, case, lines=None):
    """(reader, status) after what the agent said."""
    lines = lines_of(agent, case) if lines is None else lines
    cli = AcpCli(agent, [agent])
    reader = cli.reader(CWD)
    request = Request("please do the task", CWD)
    request.permissions = "reject" if case.startswith(("denied", "cancel")) else "allow"
    for line in lines_of(agent, case):
        message = line.get("message", {})
        if line["from"] == "client" and message.get("method") in ("session/load", "session/resume"):
            request.session_id = message["params"]["sessionId"]
    reader.start(request)
    for line in lines:
        if line["from"] == "agent":
            reader.feed(json.dumps(line.get("message", {})).encode())
    reader.finish()
    return reader, judge(cli, reader, Ending(0))


def told(reader, status):
    answer = "".join(reader.answer_parts()) if status.answered else ""
    return {
        "status": status.name,
        "code": status.code,
        "answer": answer[:80],
        "summary": [line[:200] for line in summary(reader.steps(answered=status.answered))[1:]],
        "files": reader.activity.files,
        "asked": reader.permissions.asked,
        "denied": len(reader.denied),
    }


@pytest.mark.parametrize(("agent", "case"), CASES)
def test_a_recorded_conversation_is_told_as_it_was(agent, case):
    reader, status = replay(agent, case)
    assert told(reader, status) == EXPECTED[f"{agent}/{case}"]


@pytest.mark.parametrize(("agent", "case"), CASES)
def test_what_we_send_is_what_the_protocol_has(agent, case):
    reader, _ = replay(agent, case)
    sent = [json.loads(line) for line in reader.outbox]
    assert all(message["jsonrpc"] == "2.0" for message in sent)
    assert sent[0]["method"] == "initialize"
    ids = [message["id"] for message in sent if "method" in message and "id" in message]
    assert ids == sorted(set(ids))
    asked = [line["message"]["id"] for line in lines_of(agent, case) if _is_request(line)]
    assert [message["id"] for message in sent if "method" not in message] == asked
    offered = {
        line["message"]["id"]: {option["optionId"]: option["kind"] for option in line["message"]["params"]["options"]}
        for line in lines_of(agent, case)
        if _is_request(line) and "options" in line["message"]["params"]
    }
    for message in sent:
        outcome = message.get("result", {}).get("outcome", {})
        if outcome.get("outcome") == "selected":
            assert offered[message["id"]][outcome["optionId"]] in ("allow_once", "reject_once")


def _is_request(line):
    return line["from"] == "agent" and "method" in line.get("message", {}) and "id" in line["message"]


@pytest.mark.parametrize(("agent", "case"), CASES)
def test_a_conversation_cut_after_any_line_is_no_success_that_it_was_not(agent, case):
    lines = lines_of(agent, case)
    _, whole = replay(agent, case)
    for end in range(len(lines)):
        reader, status = replay(agent, case, lines[:end])
        assert status.name != COMPLETED or (reader.turn_over and whole.name == COMPLETED), end
        result = Result(agent, status, reader, Request("p", CWD))
        assert text_of(result, Settings()).strip()
        json.dumps(structure_of(result, Settings()))


JUNK = [None, 7, -1, 2**70, 1.5, "", "x" * 5000, [], {}, [[]], {"a": {}}, True, "\ud800", "\x1b[31m"]


def spoiled(value, rng):
    """The value with something in it replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: spoiled(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        return [*value[:index], spoiled(value[index], rng), *value[index + 1 :]]
    return rng.choice(JUNK)


@pytest.mark.parametrize("agent", sorted({name.split("/")[0] for name in EXPECTED}))
def test_fields_of_another_type_are_survived(agent):
    rng = random.Random(agent)
    for case in ("create_run", "denied", "plan", "fail"):
        lines = lines_of(agent, case)
        for _ in range(60):
            index = rng.randrange(len(lines))
            broken = {**lines[index], "message": spoiled(lines[index].get("message", {}), rng)}
            reader, status = replay(agent, case, [*lines[:index], broken, *lines[index + 1 :]])
            result = Result(agent, status, reader, Request("p", CWD))
            assert text_of(result, Settings()).strip()
            json.dumps(structure_of(result, Settings()))
            b"".join(reader.outbox).decode()


# --- a scripted agent -----------------------------------------------------------------------------


def test_any_agent_is_run_by_its_command(box):
    script(box, WORK)
    with acp(box, "--permissions", "allow") as call:
        answer = call()
    found = structured(answer)
    assert (found["status"], found["answer"], found["sessionId"]) == ("completed", "All done.", "s-1")
    assert found["usage"] == {"input_tokens": 3, "output_tokens": 4}
    kinds = [(step["kind"], step.get("status")) for step in found["activity"]]
    assert kinds == [("printed", None), ("command", "completed"), ("event", None)]
    assert box.recorded("prompt") == [{"type": "text", "text": "go"}]
    assert box.recorded("outcome") == {"outcome": {"outcome": "selected", "optionId": "once"}}
    assert box.recorded("refused")["error"]["code"] == -32601
    assert box.recorded("new") == {"cwd": str(box.project), "mcpServers": []}
    assert box.recorded("eof") is None
    assert box.leftovers() == []


def test_a_permission_is_refused_unless_somebody_allowed_it_and_the_result_says_how(box):
    script(box, WORK)
    with acp(box) as call:
        answer = call()
    assert box.recorded("outcome") == {"outcome": {"outcome": "selected", "optionId": "no"}}
    assert "execute make" in structured(answer)["note"]
    assert "--permissions allow" in text(answer)
    assert structured(answer)["activity"][1]["status"] == "declined"


@pytest.mark.parametrize(("kind", "option"), [("edit", "once"), ("execute", "no"), ("delete", "no"), ("other", "no")])
def test_edits_alone_can_be_allowed(box, kind, option):
    script(box, WORK.replace('"kind": "execute"}', f'"kind": "{kind}", "locations": [{{"path": "a.py"}}]}}'))
    with acp(box, "--permissions", "allow-edits") as call:
        call()
    assert box.recorded("outcome")["outcome"]["optionId"] == option


def test_an_edit_outside_of_the_folder_is_refused_and_named(box):
    edit = WORK.replace('kind="execute"', 'kind="edit"')
    script(box, edit.replace('"kind": "execute"}', '"kind": "edit", "locations": [{"path": "/etc/passwd"}]}'))
    with acp(box, "--permissions", "allow-edits") as call:
        answer = call()
    assert box.recorded("outcome")["outcome"]["optionId"] == "no"
    assert f"/etc/passwd is outside of {box.project}" in structured(answer)["note"]


def outcome_of(cwd, policy, **call):
    """(what the agent is answered, what was refused)."""
    request = Request("p", str(cwd))
    request.permissions = policy
    sent, refused = [], []
    permissions = Permissions(Calls(Activity()), sent.append, lambda tool, given: refused.append(given))
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    permissions.decide(0, {"toolCall": {"toolCallId": "t", **call}, "options": options}, request)
    return sent[0]["result"]["outcome"]["optionId"], refused


INSIDE = ["a.py", "deep/er/a.py", "{cwd}/a.py", "{cwd}/deep/../a.py", "{cwd}/inner/a.py", "..a.py"]
OUTSIDE = [
    "/etc/passwd",
    "../a.py",
    "{cwd}/../a.py",
    "{cwd}-too/a.py",
    "{cwd}/outer/a.py",
    "{cwd}/dangling",
    "~/a.py",
    "~root/a.py",
    "file:///etc/passwd",
    "a\0b",
    "x/" * 3000 + "../" * 3003 + "a.py",
]


@pytest.mark.parametrize("where", ["locations", "content"])
@pytest.mark.parametrize("path", [*INSIDE, *OUTSIDE])
def test_only_edits_of_files_in_the_folder_can_be_allowed(tmp_path, path, where):
    cwd = tmp_path / "cwd"
    (cwd / "deep").mkdir(parents=True)
    (cwd / "inner").symlink_to(cwd / "deep")
    (cwd / "outer").symlink_to(tmp_path)
    (cwd / "dangling").symlink_to(tmp_path / "missing")
    named = path.format(cwd=cwd)
    told = [{"type": "diff", "path": named, "oldText": "a", "newText": "b"}, {"path": "a.py", "type": "diff"}]
    outcome, refused = outcome_of(cwd, "allow-edits", kind="edit", **{where: told})
    if path in INSIDE:
        assert (outcome, refused) == ("allow_once", [])
    else:
        assert outcome == "reject_once"
        assert f"outside of {cwd}" in refused[0]


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ({"kind": "edit"}, "reject_once"),
        ({"kind": "edit", "locations": []}, "reject_once"),
        ({"kind": "edit", "locations": [{"line": 1}]}, "reject_once"),
        ({"kind": "edit", "content": [{"type": "diff", "newText": "x"}]}, "reject_once"),
        ({"kind": "move", "locations": [{"path": "a"}]}, "reject_once"),
        ({"kind": "move", "locations": [{"path": "a"}, {"path": "../b"}]}, "reject_once"),
        ({"kind": "move", "locations": [{"path": "a"}, {"path": "b"}]}, "allow_once"),
    ],
)
def test_an_edit_that_does_not_tell_where_is_not_allowed(tmp_path, call, outcome):
    assert outcome_of(tmp_path, "allow-edits", **call)[0] == outcome
    assert outcome_of(tmp_path, "allow", **call)[0] == "allow_once"


FAULTS = {
    "another version": ("answer(take(), protocolVersion=2)", "wrong_version", "protocol version 2"),
    "no login": (
        "answer(take(), protocolVersion=1)\nfail(take(), -32000, 'Authentication required')",
        "not_logged_in",
        "",
    ),
    "no session": ("answer(take(), protocolVersion=1)\nfail(take(), -32603, 'broken')", "failed", "broken"),
    "death before": ("take()\nsys.stderr.write('cannot start\\n')\nsys.exit(3)", "ended_early", "cannot start"),
    "death between": ("open_session()\ntask()\nchunk('Half')\nsys.exit(0)", "ended_early", ""),
    "no protocol": ("print('Usage: my-agent FILE')\nsys.exit(0)", "wrong_version", ""),
    "another reason": ("open_session()\nanswer(task(), stopReason='tired')", "failed", "tired"),
    "model error": (
        "open_session()\nmessage = task()\nchunk('Error: 429 slow down')\nanswer(message, stopReason='end_turn')",
        "rate_limited",
        "429",
    ),
}


@pytest.mark.parametrize(("body", "code", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_agent_has_a_name_and_a_remedy(box, body, code, words):
    script(box, body + "\nnext(lines, None)\n")
    with acp(box) as call:
        found = structured(call())
    assert found["status"] == "failed"
    assert found["error"]["code"] == code
    assert words in found["error"]["message"]
    assert found["error"]["remedy"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("answer(task(), stopReason='end_turn')", "no_answer"),
        ("message = task()\nchunk('Half')\nanswer(message, stopReason='max_tokens')", "cut_off"),
        ("message = task()\nchunk('No.')\nanswer(message, stopReason='refusal')", "cut_off"),
        (
            (
                "message = task()\nchunk('Doing it.')\nupdate('tool_call', toolCallId='t', kind='execute', "
                "rawInput={'command': 'make'})\nchunk('Done.')\nanswer(message, stopReason='end_turn')"
            ),
            "cut_off",
        ),
    ],
    ids=["nothing said", "tokens", "refusal", "open call"],
)
def test_an_ordinary_end_that_hides_something_is_incomplete(box, body, code):
    script(box, f"open_session()\n{body}\nnext(lines, None)\n")
    with acp(box) as call:
        found = structured(call())
    assert (found["status"], found["error"]["code"]) == ("incomplete", code)


def test_a_cancelled_run_is_told_so_and_then_its_input_ends(box):
    script(
        box,
        """
open_session()
message = task()
child = background("import time; time.sleep(600)", start_new_session=True)
record("started", True)
cancelled = take("session/cancel")
record("cancelled", cancelled)
answer(message, stopReason="cancelled")
record("eof", next(lines, None))
""",
    )
    with box.server("--", "my-agent", agent="acp") as server:
        key = server.call("run", prompt="go", background=True)
        run_id = structured(server.answer_to(key))["runId"]
        until((box.home / "started").exists, "the prompt")
        server.answer_to(server.call("run_cancel", runId=run_id))
        found = server.answer_to(server.call("run_result", runId=run_id, waitMs=20_000))
    assert structured(found)["status"] == "cancelled"
    assert box.recorded("cancelled")["params"] == {"sessionId": "s-1"}
    assert box.recorded("eof") is None


MODELS = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]}
OPTION = {
    "id": "m",
    "name": "M",
    "category": "model",
    "type": "select",
    "currentValue": "a",
    "options": [{"value": "b"}],
}


@pytest.mark.parametrize(
    ("opened", "method", "params"),
    [
        ({"models": MODELS}, "session/set_model", {"sessionId": "s-1", "modelId": "b"}),
        ({"configOptions": [OPTION]}, "session/set_config_option", {"sessionId": "s-1", "configId": "m", "value": "b"}),
    ],
)
def test_a_model_is_set_as_the_agent_offers_it(box, opened, method, params):
    script(
        box,
        f"open_session(**{opened!r})\nmessage = take()\nrecord('set', message)\nanswer(message)\n"
        "message = task()\nchunk('ok')\nanswer(message, stopReason='end_turn')\nnext(lines, None)\n",
    )
    with acp(box, "--model", "b") as call:
        assert structured(call())["status"] == "completed"
        assert box.recorded("set")["method"] == method
        assert box.recorded("set")["params"] == params
        refused = structured(call(model="c"))
    assert refused["error"]["code"] == "unknown_model"
    assert "b" in refused["error"]["message"] or "c" in refused["error"]["message"]


def test_a_session_is_continued_without_its_history(box):
    script(
        box,
        """
answer(take("initialize"), protocolVersion=1, agentCapabilities={"loadSession": True})
message = take("session/load")
record("load", message["params"])
chunk("Old answer.")
answer(message)
message = task()
chunk("New answer.")
answer(message, stopReason="end_turn")
next(lines, None)
""",
    )
    with acp(box) as call:
        found = structured(call(sessionId="s-1"))
    assert found["answer"] == "New answer."
    assert found["activity"] == []
    assert box.recorded("load")["sessionId"] == "s-1"


def test_servers_of_an_mcp_configuration_are_handed_on(box, tmp_path):
    script(box, WORK)
    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "one": {"command": "/bin/sh", "args": ["-c", "true"], "env": {"A": "b"}},
                    "two": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X": "y"}},
                }
            }
        )
    )
    with acp(box, "--mcp-config", str(file)) as call:
        call()
    assert box.recorded("new")["mcpServers"] == [
        {"name": "one", "command": "/bin/sh", "args": ["-c", "true"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "two", "url": "http://127.0.0.1:9/mcp", "headers": [{"name": "X", "value": "y"}]},
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"mcpServers": []}', '{"mcpServers": {"a": {}}}', '{"mcpServers": {"a": 7}}']
)
def test_an_mcp_configuration_that_is_none_says_why(text):
    with pytest.raises(ValueError, match="it"):
        mcp_servers(text)


# --- names ----------------------------------------------------------------------------------------


def own(box, name, content):
    folder = box.home / ".config" / "termsprawlctl" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(content)
    box.env.pop("XDG_CONFIG_HOME", None)


def test_a_person_names_an_agent_of_their_own(box):
    script(box, WORK + "record('variable', os.environ['MINE'])\n")
    own(box, "mine", json.dumps({"acp": ["my-agent", "--acp"], "env": {"MINE": "yes"}}))
    with box.server(agent="mine") as server:
        assert structured(server.answer_to(server.call("run", prompt="go")))["answer"] == "All done."
    until((box.home / "variable").exists, "the end of the agent")
    listed = json.loads(run([box.ctl, "agent", "list", "--json"], box.env).out)["agents"]
    (row,) = [row for row in listed if row["name"] == "mine"]
    assert (row["acp"], row["path"]) == (True, str(box.bin / "my-agent"))
    assert {"codex", "opencode", "claude", "gemini", "copilot", "qwen"} <= {row["name"] for row in listed}


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not JSON"), ("[]", '"acp"'), ('{"acp": "x"}', '"acp"'), ('{"acp": ["x"], "env": {"A": 1}}', '"env"')],
)
def test_a_file_of_a_persons_own_agent_that_is_wrong_says_so(box, content, words):
    own(box, "mine", content)
    done = run([box.ctl, "agent", "run", "mine", "go"], box.env)
    assert done.status == 2
    assert words in done.err.decode()
    assert "mine.json" in done.err.decode()
    assert words in run([box.ctl, "agent", "list"], box.env).out.decode()


def test_what_is_for_agents_over_acp_alone_is_refused_elsewhere(box):
    done = run([box.ctl, "agent", "run", "codex", "go", "--permissions", "allow"], box.env)
    assert done.status == 2
    assert "--via acp" in done.err.decode()
    done = run([box.ctl, "agent", "run", "acp", "go"], box.env)
    assert done.status == 2
    assert "acp -- my-agent --acp" in done.err.decode()
