"""`mcp agent` with a scripted CLI: what it is given, what is made of what it prints."""

from __future__ import annotations

import json
import os
import stat

import pytest
from support.scripted_agent import labels, structured, text

CREATE_AND_RUN = """\
begin()
message("Plan: write fib.py, run it.")
path = os.path.join(os.getcwd(), "fib.py")
open(path, "w").write("print(55)")
item("file_change", id="i1", changes=[{"path": path, "kind": "add"}], status="completed")
item("command_execution", "started", id="i2", command="/bin/bash -lc 'python3 fib.py'", status="in_progress")
item("command_execution", id="i2", command="/bin/bash -lc 'python3 fib.py'", aggregated_output="55\\n", exit_code=0)
end("fib(10) = 55")
"""


def test_a_run_gives_the_answer_and_a_true_account_of_it(box):
    box.script(CREATE_AND_RUN)
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="go", token="t"))
        assert answer["result"]["isError"] is False
        assert text(answer) == (
            "fib(10) = 55\n\n"
            "--- Activity (3 steps) ---\n"
            "- Plan: write fib.py, run it.\n"
            "- edited add fib.py\n"
            "- ran `/bin/bash -lc 'python3 fib.py'` -> exit 0 | 55\n"
            "Session: 11111111-2222-4333-8444-555555555555 (pass it as sessionId to continue)"
        )
        found = structured(answer)
        assert found.pop("durationMs") > 0
        assert found == {
            "status": "completed",
            "answer": "fib(10) = 55",
            "exitCode": 0,
            "sessionId": "11111111-2222-4333-8444-555555555555",
            "cwd": str(box.project),
            "usage": {"input_tokens": 10, "output_tokens": 5},
            "files": {"added": ["fib.py"], "modified": [], "deleted": []},
            "activity": [
                {"kind": "message", "text": "Plan: write fib.py, run it."},
                {"kind": "edit", "change": "add", "path": "fib.py", "status": "completed"},
                {
                    "kind": "command",
                    "command": "/bin/bash -lc 'python3 fib.py'",
                    "status": "completed",
                    "exitCode": 0,
                    "output": "55",
                },
            ],
        }
        told = labels(server)
        for label in (
            "Starting codex",
            "Thinking…",
            "Edited: add fib.py",
            "Running: python3 fib.py",
            "Ran: python3 fib.py (exit 0)",
            "Response ready",
        ):
            assert label in told
        counts = [note["params"]["progress"] for note in server.notifications]
        assert counts == sorted(set(counts))
        assert all("total" not in note["params"] for note in server.notifications)


def test_no_progress_is_sent_to_a_caller_that_did_not_ask(box):
    box.script(CREATE_AND_RUN)
    with box.server(HEARTBEAT_MS="20") as server:
        server.answer_to(server.call("run", prompt="go"))
        assert server.notifications == []


@pytest.mark.parametrize(
    "prompt",
    [
        "--help",
        "line one\nline two\r\n\ttabbed",
        "quotes \" ' ` and $(touch x) ; rm -rf / & | > <",
        "{{}}%s\\n\\0",
        "🦀 hé 文件 \u2028 \u2029 \x85",
        "nul \0 inside",
        "x" * 1_000_000,
    ],
    ids=["help", "newlines", "shell", "escapes", "unicode", "nul", "1 MB"],
)
def test_the_prompt_reaches_the_cli_on_stdin_byte_for_byte_and_stdin_ends(box, prompt):
    box.script('data = sys.stdin.buffer.read()\nrecord("seen", [sys.argv[1:], data.hex()])\nbegin()\nend("ok")\n')
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt=prompt)))["status"] == "completed"
    argv, data = box.recorded("seen")
    assert bytes.fromhex(data).decode() == prompt
    assert not any(prompt in word for word in argv if word not in ("--json", "-"))
    assert not os.path.exists(box.project / "x")


def test_what_a_call_says_goes_before_flags_and_these_before_variables(box, tmp_path):
    box.script('record("argv", [sys.argv[1:], os.getcwd(), os.environ["PWD"]])\nbegin()\nend("ok")\n')
    other = tmp_path / "other"
    other.mkdir()

    def seen(*flags, **call):
        with box.server(*flags, MODEL="from-variable", EFFORT="low", CWD="/") as server:
            server.answer_to(server.call("run", prompt="p", **call))
        return box.recorded("argv")

    argv, cwd, pwd = seen("--model", "from-flag", "--effort", "high")
    assert "--model=from-flag" in argv
    assert 'model_reasoning_effort="high"' in argv
    assert cwd == pwd == str(box.project)
    argv, cwd, pwd = seen("--model", "from-flag", model="from-call", effort="minimal", cwd=str(other))
    assert "--model=from-call" in argv
    assert 'model_reasoning_effort="minimal"' in argv
    assert cwd == pwd == str(other)
    argv, _, _ = seen()
    assert "--model=from-variable" in argv
    assert 'model_reasoning_effort="low"' in argv


def test_arguments_after_two_dashes_go_to_the_cli_before_the_word_resume(box):
    box.script('record("argv", sys.argv[1:])\nbegin()\nend("ok")\n')
    with box.server("--", "-s", "workspace-write", "--session") as server:
        server.answer_to(server.call("run", prompt="p", sessionId="0123-abcd"))
    argv = box.recorded("argv")
    at = argv.index("-s")
    assert argv[at : at + 3] == ["-s", "workspace-write", "--session"]
    assert argv[-3:] == ["resume", "0123-abcd", "-"]
    assert at < argv.index("resume")


def test_a_model_that_looks_like_a_flag_stays_a_model(box):
    box.script('record("argv", sys.argv[1:])\nbegin()\nend("ok")\n')
    with box.server() as server:
        server.answer_to(server.call("run", prompt="p", model="--dangerously-bypass-approvals-and-sandbox"))
    assert "--model=--dangerously-bypass-approvals-and-sandbox" in box.recorded("argv")
    assert "--dangerously-bypass-approvals-and-sandbox" not in box.recorded("argv")


def test_a_folder_that_does_not_exist_is_a_warning_and_the_next_in_order_is_used(box):
    box.script("begin()\nend(os.getcwd())\n")
    with box.server() as server:
        for cwd in ("/no/such/folder", "relative", "   "):
            assert structured(server.answer_to(server.call("run", prompt="p", cwd=cwd)))["answer"] == str(box.project)
        assert "'/no/such/folder' does not exist" in server.log()
        assert "'relative' is not absolute" in server.log()


def test_without_any_folder_runs_share_one_workspace_that_goes_when_it_is_empty(box):
    box.script("begin()\nend(os.getcwd())\n")
    argv = [box.ctl, "mcp", "agent", "codex"]
    from support.mcp_client import McpServer

    with McpServer(argv, box.env) as server:
        server.initialize()
        first = structured(server.answer_to(server.call("run", prompt="p")))["answer"]
        assert structured(server.answer_to(server.call("run", prompt="p", cwd=" ")))["answer"] == first
        assert stat.S_IMODE(os.stat(first).st_mode) == 0o700
        server.close()
        assert server.exit_status() == 0
    assert not os.path.exists(first)


def test_a_workspace_with_work_in_it_stays(box):
    box.script('begin()\nopen("work", "w")\nend(os.getcwd())\n')
    from support.mcp_client import McpServer

    with McpServer([box.ctl, "mcp", "agent", "codex"], box.env) as server:
        server.initialize()
        workspace = structured(server.answer_to(server.call("run", prompt="p")))["answer"]
        server.close()
        assert server.exit_status() == 0
    assert os.listdir(workspace) == ["work"]


def test_secrets_and_settings_of_the_server_are_not_passed_on(box):
    box.script('record("env", dict(os.environ))\nbegin()\nend("ok")\n')
    with box.server(MODEL="m", SECRET_TOKEN="hidden", TIMEOUT_MS="60000") as server:
        server.answer_to(server.call("run", prompt="p"))
    names = box.recorded("env")
    assert not [name for name in names if name.startswith("AGENT_CLI_MCP_")]
    assert "hidden" not in json.dumps(names)
    assert names["HOME"] == str(box.home)


def test_what_the_cli_writes_to_stderr_goes_to_ours_and_not_to_the_protocol(box):
    box.script('sys.stderr.write("a progress line\\n")\nbegin()\nend("ok")\n')
    with box.server() as server:
        server.answer_to(server.call("run", prompt="p"))
        assert "[codex] a progress line" in server.log()


def test_a_missing_cli_says_what_to_install(box):
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert answer["result"]["isError"] is True
        assert "codex is not installed" in text(answer)
        assert "npm install -g @openai/codex" in text(answer)


def test_a_cli_that_cannot_be_executed_is_told_as_that(box):
    (box.bin / "codex").write_bytes(b"\x7fELF not really")
    (box.bin / "codex").chmod(0o755)
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert text(answer).startswith("codex failed: cannot start codex: Exec format error")
        assert structured(answer)["error"]["code"] == "not_started"
    assert box.leftovers() == []


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ('sys.stderr.write("Not logged in. Please run codex login\\n")\nsys.exit(1)', "not_logged_in", "codex login"),
        ('sys.stderr.write("error: unexpected argument --json\\n")\nsys.exit(2)', "wrong_version", "option"),
        (
            'begin()\nsay({"type": "turn.failed", "error": {"message": "429 slow down"}})\nsys.exit(1)',
            "rate_limited",
            "429",
        ),
        ('print("Hello")', "wrong_version", "AGENT_CLI_MCP_STRUCTURED=0"),
        ("begin()\nos.kill(os.getpid(), 11)", "ended_early", "killed by signal 11"),
        ("begin()\nsys.exit(3)", "ended_early", "exit 3"),
        ('begin()\nsay({"type": "turn.failed", "error": {"message": "boom"}})\nsys.exit(1)', "failed", "start `codex`"),
    ],
    ids=["login", "flag", "limit", "no events", "crash", "exit", "unknown"],
)
def test_a_failure_is_named_and_says_what_to_do(box, body, code, said):
    box.script(body)
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert answer["result"]["isError"] is True
        assert structured(answer)["error"]["code"] == code
        assert said in text(answer).splitlines()[0]
        assert structured(answer)["error"]["remedy"]


def test_a_permission_that_nobody_could_give_is_named_with_the_setting_that_allows_it(box):
    box.script(
        "sys.stderr.write('\\x1b[93m! \\x1b[0mpermission requested: bash (rm -rf x); auto-rejecting\\n')\n"
        'state = {"status": "error", "input": {}, "error": "The user rejected permission to use this"}\n'
        'part = {"type": "tool", "tool": "bash", "state": state}\n'
        'say({"type": "tool_use", "sessionID": "ses_1", "part": part})\n'
        'say({"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "tool-calls"}})\n',
        name="opencode",
    )
    with box.server("--model", "a/b", agent="opencode") as server:
        answer = server.answer_to(server.call("run", prompt="p"))
    assert structured(answer)["error"]["code"] == "permission_rejected"
    assert "bash (rm -rf x)" in text(answer)
    assert "opencode.json" in text(answer)
    assert "--auto" in text(answer)


def test_plain_output_is_the_answer_and_stderr_the_progress_without_an_event_stream(box):
    box.script('record("argv", sys.argv[1:])\nsys.stderr.write("working on it\\n")\nprint("The answer.")\n')
    with box.server(STRUCTURED="0") as server:
        answer = server.answer_to(server.call("run", prompt="p", token="t"))
        assert text(answer) == "The answer."
        assert "working on it" in labels(server)
        assert "--json" not in box.recorded("argv")
    box.script('sys.stderr.write("it broke\\n")\nprint("half")\nsys.exit(4)\n')
    with box.server(STRUCTURED="0") as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert answer["result"]["isError"] is True
        assert text(answer).startswith("codex failed (exit 4): it broke.")
        assert "--- end of stdout ---\nhalf" in text(answer)


def test_of_a_flood_on_stderr_the_latest_line_is_the_progress(box):
    box.script('sys.stderr.write("noise\\n" * 300_000 + "the latest\\n")\nprint("The answer.")\n')
    with box.server(STRUCTURED="0") as server:
        assert text(server.answer_to(server.call("run", prompt="p", token="t"))) == "The answer."
        assert "the latest" in labels(server)


def test_without_trace_there_is_the_answer_alone(box):
    box.script(CREATE_AND_RUN)
    with box.server(TRACE="0") as server:
        assert text(server.answer_to(server.call("run", prompt="p"))) == "fib(10) = 55"


def test_heartbeats_repeat_the_last_step_while_nothing_happens(box):
    box.script(
        "begin()\n"
        'item("command_execution", "started", id="i", command="sleep 1000")\n'
        'while not os.path.exists(os.path.join(os.environ["HOME"], "go")):\n'
        "    time.sleep(0.01)\n"
        'item("command_execution", id="i", command="sleep 1000", exit_code=0)\nend("ok")\n'
    )
    with box.server(HEARTBEAT_MS="200") as server:
        call = server.call("run", prompt="p", token=0)
        beats = 0
        while beats < 3:
            note = server.read()
            assert note["params"]["progressToken"] == 0
            beats += note["params"]["message"] == "Running: sleep 1000"
        (box.home / "go").write_text("")
        assert structured(server.answer_to(call))["status"] == "completed"


def test_the_answer_is_taken_from_the_last_message_file_if_the_stream_changes_its_shape(box):
    box.script(
        'say({"type": "session", "v": 9})\n'
        'open(sys.argv[sys.argv.index("-o") + 1], "w").write("From the file.")\n'
        'say({"type": "done"})\n'
    )
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        assert structured(answer)["answer"] == "From the file."
        assert "unknown shape" in structured(answer)["note"]


def test_changes_that_no_event_tells_of_are_seen_where_the_folder_is_a_repository(box):
    import subprocess

    subprocess.run(["git", "init", "-q", str(box.project)], check=True)
    (box.project / "old.txt").write_text("old")
    box.script('begin()\nopen("new.txt", "w").write("x")\nos.unlink("old.txt")\nend("ok")\n')
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
    assert structured(answer)["files"] == {"added": ["new.txt"], "modified": [], "deleted": ["old.txt"]}


def test_an_answer_too_long_for_clients_is_shortened_and_kept_whole_in_a_private_file(box):
    box.script('begin()\nend("start " + "é🦀 line\\n" * 500_000 + "finish")\n')
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p"))
        path = structured(answer)["fullOutput"]
        assert f"Full output: {path}" in text(answer)
        assert len(json.dumps(structured(answer), ensure_ascii=False).encode()) < 12_000
        assert len(text(answer).encode()) < 12_000
        assert text(answer).startswith("start é🦀 line")
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    assert whole.startswith("start " + "é🦀 line\n" * 500_000 + "finish\n\n--- Activity")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert path.startswith(str(box.home))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "prompt is missing"),
        ({"prompt": 7}, "prompt has to be a string"),
        ({"prompt": "p", "colour": "red"}, "run has no field 'colour'"),
        ({"prompt": "p", "effort": "extreme"}, "effort is 'extreme', but can only be minimal, low, medium, high"),
    ],
)
def test_bad_arguments_are_answered_by_naming_the_field_and_nothing_is_started(box, arguments, said):
    box.script('record("started", 1)\n')
    with box.server() as server:
        answer = server.answer_to(server.call("run", **arguments))
        assert answer["result"]["isError"] is True
        assert said in text(answer)
    assert not (box.home / "started").exists()


def test_a_bad_variable_is_one_warning_and_the_default_is_used(box):
    box.script("begin()\nend('ok')\n")
    with box.server(TIMEOUT_MS="soon", TRACE="maybe") as server:
        assert structured(server.answer_to(server.call("run", prompt="p")))["status"] == "completed"
        assert server.log().count("AGENT_CLI_MCP_TIMEOUT_MS") == 1
        assert server.log().count("AGENT_CLI_MCP_TRACE") == 1


def test_listing_the_tools_starts_and_makes_nothing(box):
    with box.server() as server:
        tools = server.request("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["run", "run_status", "run_result", "run_cancel"]
        for tool in tools:
            assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
            assert all(isinstance(value["type"], str) for value in tool["inputSchema"]["properties"].values())
            assert len(tool["annotations"]) == 4
        with open(f"/proc/{server.process.pid}/maps", encoding="utf-8", errors="replace") as file:
            assert "_posixsubprocess" not in file.read()
        server.close()
        assert server.exit_status() == 0
        assert server.log() == ""
    assert box.leftovers() == []
    assert os.listdir(box.home) == []
