"""A true account: what a CLI's stream does not tell, or tells wrongly, and where it is found instead."""

from __future__ import annotations

import json

import pytest
from support.scripted_agent import structured, text

from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.clis.codex import complete_account
from termsprawlctl.agents.clis.registry import NAMES, agent_cli
from termsprawlctl.agents.model.steps import Activity, summary
from termsprawlctl.agents.runs.heartbeat import Heartbeat
from termsprawlctl.agents.runs.snapshot import compare_files, look_at_files
from termsprawlctl.agents.runs.status import COMPLETED, INCOMPLETE, Ending, judge

THREAD = "01a231c3-6627-70e3-b4e3-bde14204396c"
REJECTED = (
    "exec_command failed: CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'rm -rf build'` rejected: "
    'rm -f style commands are not permitted. Use a safer approach\\")" }'
)


def entry(kind, **payload):
    return json.dumps({"timestamp": "2026-12-01T13:20:19.305Z", "type": kind, "payload": payload}).encode()


def call(number, command, output=None):
    """What codex writes of a call, and of its end."""
    key = f"call_{number}"
    arguments = json.dumps({"cmd": command, "yield_time_ms": 10000})
    lines = [entry("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=key)]
    if output is not None:
        lines.append(entry("response_item", type="function_call_output", call_id=key, output=output))
    return lines


def ended(code, output=""):
    return f"Chunk ID: 4a073c\nWall time: 0.2 seconds\nProcess exited with code {code}\nOutput:\n{output}"


def said(words):
    content = [{"type": "output_text", "text": words}]
    return entry("response_item", type="message", role="assistant", content=content)


BEGUN = entry("event_msg", type="task_started")
SESSION = [
    *call(7, "from an earlier turn", ended(0)),
    BEGUN,
    said("Go."),
    *call(0, "rm -rf build", REJECTED),
    *call(1, "make", ended(2, "no rule\n")),
    *call(2, "sleep 1000"),
    said("Done it."),
]


def account():
    activity = Activity("/srv/project")
    activity.message("Go.")
    activity.begin("command", 1, command="/bin/bash -lc make")
    activity.end("command", 1, "failed", exitCode=2, output="no rule")
    activity.message("Done it.")
    return activity


def test_a_call_that_no_event_told_of_is_added_in_its_place():
    activity = account()
    complete_account(activity, SESSION)
    first, refused, made = activity.steps(answered=True)
    assert (first["text"], made["exitCode"]) == ("Go.", 2)
    assert (refused["command"], refused["status"]) == ("rm -rf build", "declined")
    assert "rm -f style commands are not permitted" in refused["output"]
    assert activity.answer_parts() == ["Done it."]


def test_a_call_that_stayed_open_in_the_stream_ends_as_the_file_says():
    activity = Activity()
    activity.begin("command", 1, command="/bin/bash -lc make")
    complete_account(activity, [BEGUN, *call(1, "make", ended(2, "no rule\n"))])
    (step,) = activity.steps(answered=False)
    assert (step["status"], step["exitCode"], step["output"]) == ("failed", 2, "no rule")


def test_a_refused_patch_is_told_file_by_file():
    activity = Activity("/srv/project")
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Delete File: old.txt\n*** End Patch"
    output = "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"
    complete_account(
        activity,
        [
            entry("response_item", type="custom_tool_call", name="apply_patch", input=patch, call_id="c"),
            entry("response_item", type="custom_tool_call_output", call_id="c", output=output),
        ],
    )
    assert summary(activity.steps(answered=True))[1:] == [
        "- edited add a.txt -> declined",
        "- edited delete old.txt -> declined",
    ]
    assert activity.files == {}


@pytest.mark.parametrize("end", range(len(SESSION) + 1))
def test_a_session_file_cut_anywhere_adds_nothing_wrong(end):
    activity = account()
    before = activity.steps(answered=True)
    complete_account(activity, SESSION[:end])
    added = [step for step in activity.steps(answered=True) if step not in before]
    assert [step["command"] for step in added if step["status"] == "declined"] in ([], ["rm -rf build"])
    assert len([step for step in activity.steps(answered=True) if step.get("command", "").endswith("make")]) == 1


@pytest.mark.parametrize("junk", [b"", b"null", b"[]", b"{", b'{"payload": 7}', b'{"payload": {"type": []}}', b"\xff"])
def test_a_line_of_the_session_file_that_is_no_entry_is_skipped(junk):
    activity = account()
    complete_account(activity, [junk, *SESSION, junk])
    assert len(activity.steps(answered=True)) == 3


def test_the_session_file_is_found_by_the_thread(box):
    lines = json.dumps([line.decode() for line in SESSION])
    box.script(
        f"""
folder = os.path.join(os.environ["HOME"], ".codex", "sessions", "2026", "12", "01")
os.makedirs(folder)
with open(os.path.join(folder, "rollout-2026-12-01T13-20-18-{THREAD}.jsonl"), "w") as file:
    file.write("\\n".join({lines}) + "\\n")
begin("{THREAD}")
message("Go.")
item("command_execution", id="a", command="/bin/bash -lc make", exit_code=2, status="failed")
end("Done it.")
"""
    )
    with box.server() as server:
        found = structured(server.answer_to(server.call("run", prompt="go")))
    assert [(step["kind"], step.get("status")) for step in found["activity"]] == [
        ("message", None),
        ("command", "declined"),
        ("command", "failed"),
    ]


# --- answers that are not whole, or not there ---------------------------------------------------


def read(cli, *events):
    kind = agent_cli(cli)
    reader = kind.reader("/srv/project")
    for event in events:
        reader.feed(json.dumps(event).encode())
    reader.finish()
    return kind, reader


def opencode_step(reason):
    return {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": reason, "tokens": {}}}


OPENCODE_TEXT = {"type": "text", "sessionID": "ses_1", "part": {"messageID": "m", "text": "Half of it"}}
CUT = {
    "opencode-length": ("opencode", [OPENCODE_TEXT, opencode_step("length")]),
    "opencode-filter": ("opencode", [OPENCODE_TEXT, opencode_step("content-filter")]),
    "claude-turns": (
        "claude",
        [{"type": "result", "subtype": "error_max_turns", "is_error": False, "session_id": "s", "num_turns": 3}],
    ),
    "claude-turns-as-error": ("claude", [{"type": "result", "subtype": "error_max_turns", "is_error": True}]),
    "claude-tokens": (
        "claude",
        [{"type": "result", "subtype": "success", "is_error": False, "result": "Half", "stop_reason": "max_tokens"}],
    ),
    "gemini-loop": (
        "gemini",
        [
            {"type": "message", "role": "assistant", "content": "Half of it", "delta": True},
            {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"},
            {"type": "result", "status": "success"},
        ],
    ),
    "gemini-turns": (
        "gemini",
        [{"type": "result", "status": "error", "error": {"message": "Maximum session turns exceeded"}}],
    ),
}


@pytest.mark.parametrize(("cli", "events"), CUT.values(), ids=CUT)
def test_a_cut_off_answer_is_incomplete(cli, events):
    kind, reader = read(cli, *events)
    status = judge(kind, reader, Ending(0))
    assert (status.name, status.code) == (INCOMPLETE, "cut_off")
    assert status.answered
    assert status.message
    assert status.remedy


EMPTY = {
    "codex": [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.completed", "usage": {}}],
    "opencode": [opencode_step("stop")],
    "claude": [{"type": "result", "subtype": "success", "is_error": False, "result": ""}],
    "gemini": [{"type": "result", "status": "success"}],
}


@pytest.mark.parametrize("cli", NAMES)
def test_an_empty_reply_is_the_same_status_for_all(cli):
    kind, reader = read(cli, *EMPTY[cli])
    status = judge(kind, reader, Ending(0))
    assert (status.name, status.code) == (INCOMPLETE, "no_answer")


def test_the_file_has_the_answer_when_the_finished_stream_gave_none():
    kind, reader = read("codex", {"type": "item.completed", "item": {"type": "answer_v9"}}, *EMPTY["codex"])
    status = judge(kind, reader, Ending(0), lambda: "From the file.")
    assert status.name == COMPLETED
    assert "from its file" in status.note
    assert reader.answer_parts() == ["From the file."]


def test_a_message_that_came_before_the_work_is_marked():
    message = {"type": "item.completed", "item": {"type": "agent_message", "id": "m", "text": "I will do it."}}
    command = {"type": "item.completed", "item": {"type": "command_execution", "id": "c", "command": "make"}}
    kind, reader = read("codex", EMPTY["codex"][0], message, command, EMPTY["codex"][1])
    assert "before the last of the work" in judge(kind, reader, Ending(0)).note
    kind, reader = read("codex", EMPTY["codex"][0], command, message, EMPTY["codex"][1])
    assert judge(kind, reader, Ending(0)).note == ""


def test_a_command_of_claude_in_the_background_is_started_and_has_no_exit_code():
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "serve", "run_in_background": True}}
    ran = {"type": "tool_result", "tool_use_id": "t", "content": "Command running in background with ID: b1."}
    _, reader = read(
        "claude",
        {"type": "assistant", "message": {"id": "m", "content": [use]}},
        {"type": "user", "message": {"content": [ran]}, "tool_use_result": {"backgroundTaskId": "b1"}},
    )
    (line,) = summary(reader.steps(answered=True))[1:]
    assert line.startswith("- ran `serve` -> started")
    assert "exit" not in line


def test_a_retry_that_gemini_tells_on_stderr_alone_is_progress():
    reader = agent_cli("gemini").reader("/srv/project")
    reader.error_line('Attempt 2 failed with status 500. Retrying with backoff... _ApiError: {"error":{"code":500}}')
    reader.error_line("Attempt 10 failed: slow down. Max attempts reached")
    assert reader.activity.take_labels() == ["The model server failed: retry 2 after HTTP 500"]


@pytest.mark.parametrize(
    ("cli", "errors", "code", "message"),
    [
        ("opencode", "Error: Session not found", "unknown_session", "Error: Session not found"),
        ("codex", "You've hit your usage limit.", "rate_limited", None),
        ("claude", "Claude AI usage limit reached|1760000000", "session_limit", None),
        ("gemini", "Error: blocked by safety settings", "content_filter", None),
        (
            "opencode",
            "Error: Model not found: fake/none. Did you mean",
            "unknown_model",
            "the model fake/none is not known",
        ),
        ("gemini", "Error: models/gemini-9 is not found for API version", "unknown_model", None),
        ("gemini", "Error: getaddrinfo ENOTFOUND example.org", "network", None),
    ],
)
def test_exit_0_with_the_reason_on_stderr_is_diagnosed_before_the_version_is_blamed(cli, errors, code, message):
    kind = agent_cli(cli)
    status = judge(kind, kind.reader(""), Ending(0, "", errors))
    assert status.code == code
    assert message in (None, status.message)
    assert status.remedy


@pytest.mark.parametrize(
    ("denied", "remedy"),
    [
        ("patch rejected: writing is blocked by read-only sandbox", "-s workspace-write"),
        ("`rm -rf build` rejected: rm -f style commands are not permitted", "rm -f"),
        ("patch rejected: writing outside of the project; rejected by user approval settings", "writable_roots"),
    ],
)
def test_a_refusal_of_codex_names_what_would_allow_it(denied, remedy):
    text = agent_cli("codex").permission_remedy([denied])
    assert remedy in text
    assert ("workspace-write`" in text) == (remedy == "-s workspace-write")


def test_completing_never_fails_a_run(tmp_path):
    for name in NAMES:
        kind = agent_cli(name)
        reader = kind.reader("")
        reader.session_id = THREAD
        kind.complete(reader, Request("p", str(tmp_path)), {"HOME": str(tmp_path / "nowhere")})
        assert reader.steps(answered=False) == []


# --- the folder ---------------------------------------------------------------------------------


def test_changes_outside_of_git_come_from_a_look_before_and_after(box):
    (box.project / "old.txt").write_text("old")
    (box.project / "gone.txt").write_text("gone")
    box.script(
        """
begin()
os.makedirs("deep/er")
open("deep/er/new.txt", "w").write("new")
open("old.txt", "w").write("changed")
os.unlink("gone.txt")
end("done")
"""
    )
    with box.server() as server:
        found = structured(server.answer_to(server.call("run", prompt="go")))
    assert found["files"] == {"added": ["deep/er/new.txt"], "modified": ["old.txt"], "deleted": ["gone.txt"]}


def test_a_folder_that_is_too_large_is_partial_and_claims_nothing_that_it_did_not_see(tmp_path, monkeypatch):
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text("x")
    whole = look_at_files(str(tmp_path))
    monkeypatch.setattr("termsprawlctl.agents.runs.snapshot.MAX_ENTRIES", 10)
    part = look_at_files(str(tmp_path))
    assert part.partial
    assert not whole.partial
    assert compare_files(part, whole) == compare_files(whole, part) == {}


def test_a_folder_that_cannot_be_used_is_said_at_the_head_of_the_text(box):
    box.script("begin()\nend('done')\n")
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="go", cwd="/no/such/folder"))
        first = text(answer).splitlines()[0]
        assert "/no/such/folder" in first
        assert str(box.project) in first
        assert "does not exist" in structured(answer)["note"]
        assert text(server.answer_to(server.call("run", prompt="go"))).startswith("done")


# --- what goes on -------------------------------------------------------------------------------

LEAVES = """
begin()
child = background("import time; time.sleep(600)", start_new_session=True)
record("child", child.pid)
end("done")
"""


def test_what_was_still_running_at_the_end_is_named(box):
    box.script(LEAVES)
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="go"))
    found = structured(answer)
    (process,) = found["endedProcesses"]
    assert process["pid"] == box.recorded("child")
    assert "time.sleep(600)" in process["command"]
    assert "still running when the agent ended, and was ended with it" in text(answer)
    assert box.processes() == []


def test_a_person_may_let_it_go_on(box):
    import os
    import signal

    box.script(LEAVES)
    with box.server("--keep-background") as server:
        answer = server.answer_to(server.call("run", prompt="go"))
    child = box.recorded("child")
    try:
        assert "and goes on" in text(answer)
        assert child in box.processes()
    finally:
        os.kill(child, signal.SIGKILL)


SILENT = """
begin()
{}
time.sleep(600)
"""


def test_a_silent_cli_is_ended_but_not_while_a_command_of_it_runs(box):
    box.script(SILENT.format(""))
    with box.server("--idle-timeout", "0.5") as server:
        found = structured(server.answer_to(server.call("run", prompt="go")))
    assert (found["status"], found["error"]["code"]) == ("timed_out", "idle")
    box.script(
        """
begin()
item("command_execution", phase="started", id="a", command="make")
background("import time; time.sleep(2)", start_new_session=True).wait()
end("built")
"""
    )
    with box.server("--idle-timeout", "0.5") as server:
        found = structured(server.answer_to(server.call("run", prompt="go")))
    assert (found["status"], found["answer"]) == ("completed", "built")


def test_progress_says_for_how_long_nothing_has_come():
    sent, now = [], [0.0]
    heartbeat = Heartbeat(sent.append, 10.0, lambda: now[0])
    heartbeat("Thinking…")
    for now[0], silent_s in ((9.0, 9.0), (10.0, 10.0), (130.0, 130.0), (140.0, 0.0)):
        heartbeat.beat(silent_s)
    assert sent == ["Thinking…", "Thinking…", "Thinking… (no output for 2 min)", "Thinking…"]


@pytest.mark.parametrize(
    "wait",
    [
        "sys.stderr.write('Waiting for approval of: rm -r build\\n')",
        "print('Do you want to proceed? [y/N] ', flush=True)",
        "say({'type': 'exec_approval_request', 'command': ['rm', '-r', 'build']})",
    ],
)
def test_a_cli_that_waits_for_an_approval_nobody_can_give_is_ended_and_the_setting_named(box, wait):
    box.script(f"begin()\n{wait}\nsys.stderr.flush()\ntime.sleep(600)\n")
    with box.server() as server:
        found = structured(server.answer_to(server.call("run", prompt="p")))
    assert (found["status"], found["error"]["code"]) == ("failed", "permission_rejected")
    assert "that nobody could give" in found["error"]["message"]
    assert "-s workspace-write" in found["error"]["remedy"]


@pytest.mark.parametrize("line", ["permission requested: edit (a.py); auto-rejecting", "approval required: denied"])
def test_an_approval_that_is_decided_already_is_not_waited_for(line):
    reader = agent_cli("codex").reader("/srv")
    reader.hear(line)
    assert reader.waits_for == ""
    reader.hear("Waiting for confirmation")
    assert reader.waits_for
    reader.feed(b'{"type": "turn.started"}')
    assert reader.waits_for == ""


def test_a_file_that_went_with_the_run_is_not_named(box):
    box.script(
        "begin()\npath = os.path.join(os.environ['TMPDIR'], 'gemini-client-error.json')\n"
        "sys.stderr.write(f'Error when talking to the API. Full report available at: {path}\\n')\nsys.exit(1)\n",
        "gemini",
    )
    with box.server(agent="gemini") as server:
        answer = server.answer_to(server.call("run", prompt="p"))
    assert "termsprawlctl-run-" not in json.dumps(answer)
    assert "a temporary file, which is gone" in structured(answer)["error"]["stderr"]
