"""Recorded streams of the real CLIs: what each reader makes of them, whole and cut anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from termsprawlctl.agents.clis.registry import NAMES, agent_cli
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.model.steps import summary
from termsprawlctl.agents.runs.render import structure_of, text_of
from termsprawlctl.agents.runs.run import Request, Result
from termsprawlctl.agents.runs.status import COMPLETED, Ending, judge

STREAMS = Path(__file__).resolve().parent.parent / "data" / "agent_streams"
CWD = "/srv/project"
KILLED = -9


def recorded():
    for cli in NAMES:
        for case, expected in json.loads((STREAMS / f"{cli}.json").read_text()).items():
            yield pytest.param(cli, case, expected, id=f"{cli}-{case}")


RECORDED = list(recorded())


def lines_of(cli, case):
    return (STREAMS / cli / f"{case}.jsonl").read_bytes().split(b"\n")


def errors_of(cli, case):
    path = STREAMS / cli / f"{case}.stderr"
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def read(cli, lines, exit_status, errors=""):
    """(reader, labels, status) of these lines."""
    kind = agent_cli(cli)
    reader = kind.reader(CWD)
    labels = []
    for line in lines:
        reader.feed(line)
        labels += reader.activity.take_labels()
    reader.finish()
    return reader, labels, judge(kind, reader, Ending(exit_status, "", errors))


def shown(text):
    return text if len(text) < 200 else f"{text[:60]}…{len(text)}"


@pytest.mark.parametrize(("cli", "case", "expected"), RECORDED)
def test_a_recorded_run_is_told_as_it_was(cli, case, expected):
    reader, labels, status = read(cli, lines_of(cli, case), expected["exit"], errors_of(cli, case))
    told = {
        "exit": expected["exit"],
        "status": status.name,
        "code": status.code,
        "message": status.message,
        "note": status.note,
        "session": reader.session_id,
        "answer": shown("\n\n".join(reader.answer_parts())) if status.answered else "",
        "labels": labels,
        "summary": summary(reader.steps(answered=status.answered))[1:],
        "files": reader.activity.files,
    }
    empty = ("code", "message", "note", "session", "answer", "files")
    assert told == {**dict.fromkeys(empty, ""), "files": {}, **expected}


@pytest.mark.parametrize(("cli", "case", "expected"), RECORDED)
def test_a_run_cut_after_any_line_is_never_a_crash_and_never_a_success_it_was_not(cli, case, expected):
    lines = lines_of(cli, case)
    _, _, whole = read(cli, lines, expected["exit"], errors_of(cli, case))
    for end in range(len(lines)):
        reader, _, status = read(cli, lines[:end], KILLED)
        # What a killed CLI had printed is the whole run only if its closing event was there.
        assert status.name != COMPLETED or (whole.name == COMPLETED and reader.ended), f"cut after line {end}"
        result = Result(cli, status, reader, Request("p", CWD))
        result.exit_status = KILLED
        text = text_of(result, Settings())
        assert text.strip()
        assert not any(line.lstrip("- ").startswith('{"') for line in text.splitlines())
        json.dumps(structure_of(result, Settings()))


@pytest.mark.parametrize(("cli", "case", "expected"), RECORDED)
def test_a_line_cut_in_two_by_a_kill_is_never_shown_raw(cli, case, expected):
    for line in lines_of(cli, case)[:12]:
        reader, _, _ = read(cli, [line[: len(line) * 2 // 3]], KILLED)
        assert not any('{"' in text for text in summary(reader.steps(answered=False))), line[:80]


@pytest.mark.parametrize("cli", NAMES)
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{}",
        b'{"type": null}',
        b'{"type": 7}',
        b'{"type": "no.such.event", "x": 1}',
        b'{"type": "item.completed"}',
        b'{"type": "item.completed", "item": "text"}',
        b'{"type": "item.completed", "item": {"type": "agent_message", "text": {"a": 1}}}',
        b'{"type": "item.completed", "item": {"type": "command_execution", "command": 5, "exit_code": "0"}}',
        b'{"type": "item.completed", "item": {"type": "file_change", "changes": {"a": 1}}}',
        b'{"type": "item.completed", "item": {"type": "file_change", "changes": [null, {"path": null}]}}',
        b'{"type": "item.completed", "item": {"type": "brand_new", "id": []}}',
        b'{"type": "turn.failed", "error": null}',
        b'{"type": "turn.completed", "usage": 3}',
        b'{"type": "error", "message": {"message": {"message": "deep"}}}',
        b'{"type": "tool_use", "part": {"tool": "bash", "state": []}}',
        b'{"type": "tool_use", "part": {"tool": {}, "state": {"input": 3, "metadata": {"exit": "1"}}}}',
        b'{"type": "tool_use", "part": {"tool": "apply_patch", "state": {"metadata": {"files": "x"}}}}',
        b'{"type": "step_finish", "part": {"tokens": {"input": "many", "cache": []}, "cost": "free"}}',
        b'{"type": "assistant", "message": {"content": "text"}}',
        b'{"type": "assistant", "message": {"content": [{"type": "tool_use", "name": 1, "id": [], "input": 3}]}}',
        b'{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": {}}]}}',
        b'{"type": "system", "subtype": "background_tasks_changed", "tasks": 4}',
        b'{"type": "result", "result": 5, "is_error": "yes", "usage": [], "permission_denials": {}, "errors": 1}',
        b'{"type": "message", "role": "assistant", "content": null, "delta": true}',
        b'{"type": "tool_result", "tool_id": 9, "status": 1, "output": {}}',
        b'{"type": "result", "status": null, "stats": [], "error": 3}',
        b'{"id": "0", "msg": {"type": "patch_apply_begin", "changes": {"a": []}}}',
        b'{"id": "0", "msg": {"type": "exec_command_begin", "command": [1, null]}}',
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b"\xff\xfe\x00 not text",
    ],
)
def test_no_shape_of_an_event_breaks_a_reader(cli, line):
    reader, _, status = read(cli, [line, line], 0)
    assert isinstance(summary(reader.steps(answered=status.answered)), list)


def test_numbers_that_json_does_not_have_are_left_out_of_the_result():
    run = agent_cli("codex").reader("/srv/project")
    run.feed(b'{"type":"turn.completed","usage":{"input_tokens":1e999,"output_tokens":NaN,"cached":-Infinity,"n":5}}')
    result = Result("codex", judge(agent_cli("codex"), run, Ending(0)), run, Request("p", "/srv/project"))
    assert structure_of(result, Settings())["usage"] == {"n": 5}


def test_an_event_of_an_unknown_type_is_kept_and_does_not_end_the_run():
    lines = [b'{"type":"turn.rated","stars":5}', *lines_of("codex", "plain")]
    reader, _, status = read("codex", lines, 0)
    assert status.name == COMPLETED
    assert summary(reader.steps(answered=True))[1:] == ["- unknown event: turn.rated"]


def test_the_streams_of_older_codex_versions_are_understood():
    old = [
        {"type": "session_configured", "session_id": "s-1", "model": "gpt-5"},
        {"type": "task_started"},
        {"type": "agent_reasoning", "text": "**Looking**"},
        {"type": "exec_command_begin", "call_id": "c", "command": ["bash", "-lc", "ls"]},
        {"type": "exec_command_end", "call_id": "c", "stdout": "a.txt\n", "stderr": "", "exit_code": 0},
        {"type": "patch_apply_begin", "changes": {"/srv/project/b.txt": {"add": {"content": "x"}}}},
        {"type": "agent_message", "message": "All done."},
        {"type": "task_complete", "last_agent_message": "All done."},
    ]
    lines = [json.dumps({"id": "0", "msg": message}).encode() for message in old]
    reader, labels, status = read("codex", lines, 0)
    assert status.name == COMPLETED
    assert reader.answer_parts() == ["All done."]
    assert reader.session_id == "s-1"
    assert summary(reader.steps(answered=True))[1:] == [
        "- thought: **Looking**",
        "- ran `bash -lc ls` -> exit 0 | a.txt",
        "- edited add b.txt",
    ]
    assert "Running: ls" in labels


def test_items_named_as_in_older_codex_versions_are_understood():
    lines = [
        b'{"type":"item.completed","item":{"id":"i","item_type":"assistant_message","text":"Hello."}}',
        b'{"type":"turn.completed"}',
    ]
    reader, _, status = read("codex", lines, 0)
    assert (status.name, reader.answer_parts()) == (COMPLETED, ["Hello."])


def test_a_version_whose_events_are_all_unknown_is_named_as_the_fault():
    lines = [b'{"kind":"begin"}', b'{"kind":"end","text":"hi"}']
    _, _, status = read("codex", lines, 0)
    assert status.code == "no_answer"
    _, _, plain = read("codex", [b"Hello, here is your answer."], 0)
    assert plain.code == "wrong_version"
    assert "AGENT_CLI_MCP_STRUCTURED=0" in plain.remedy


def test_the_second_version_of_the_opencode_stream_is_understood():
    state = {"status": "completed", "input": {"command": "false"}, "metadata": {"metadata": {"exit": 3}}, "time": {}}
    lines = [
        json.dumps(
            {"type": "tool_use", "sessionID": "ses_1", "part": {"id": "p", "tool": "bash", "state": state}}
        ).encode(),
        b'{"type":"error","sessionID":"ses_1","error":{"type":"overloaded","message":"try again"}}',
        b'{"type":"step_start","sessionID":"ses_1","part":{}}',
        b'{"type":"text","sessionID":"ses_1","part":{"messageID":"m","text":"Recovered."}}',
        b'{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}',
    ]
    reader, _, status = read("opencode", lines, 1)
    assert (status.name, reader.answer_parts()) == (COMPLETED, ["Recovered."])
    assert "exit 1" in status.note
    assert summary(reader.steps(answered=True))[1:] == ["- ran `false` -> exit 3"]


def test_a_call_that_claude_was_not_permitted_to_make_is_declined_and_noted():
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo hi > b.txt"}}
    refusal = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "It needs an answer."}
    events = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": {"id": "m0", "content": [call]}},
        {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t1", "message": "no"},
        {"type": "user", "message": {"content": [refusal]}},
        {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I could not."}]}},
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "I could not.",
            "permission_denials": [{"tool_name": "Bash", "tool_input": {"command": "echo hi > b.txt"}}],
        },
    ]
    reader, _, status = read("claude", [json.dumps(event).encode() for event in events], 0)
    assert summary(reader.steps(answered=True))[1:] == ["- ran `echo hi > b.txt` -> declined | It needs an answer."]
    assert status.name == COMPLETED
    assert "echo hi > b.txt" in status.note
    assert "--permission-mode acceptEdits" in status.note


def test_claude_is_not_done_while_an_agent_in_the_background_may_still_report():
    lines = [
        b'{"type":"system","subtype":"init","session_id":"s"}',
        b'{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"}]}',
        b'{"type":"result","subtype":"success","is_error":false,"result":"Delegated."}',
    ]
    reader, _, _ = read("claude", lines, 0)
    assert not reader.ended
    reader.feed(b'{"type":"system","subtype":"background_tasks_changed","tasks":[]}')
    assert reader.ended
    reader.feed(b'{"type":"system","subtype":"init","session_id":"s"}')
    assert not reader.ended
