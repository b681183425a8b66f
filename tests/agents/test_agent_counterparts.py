"""The real CLIs against a scripted model service, through the built file and the official Python client."""

from __future__ import annotations

import contextlib
import json
import os
import signal

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider
from support.real_agents import FLAGS, RealBox
from support.waiting import until

pytestmark = pytest.mark.counterpart

FIB = (
    "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n\n\nprint(fib(10))\n"
)
CREATE_RUN = {
    "turns": [
        {"text": "Plan: write fib.py, run it.", "calls": [{"do": "create", "path": "fib.py", "content": FIB}]},
        {"text": "Now running it.", "calls": [{"do": "run", "command": "python3 fib.py"}]},
        {"text": "fib(10) = 55"},
    ]
}
SLOW = "python3 -c 'import time; time.sleep(600)' & setsid python3 -c 'import time; time.sleep(600)'; echo never"
HANG = {"turns": [{"text": "Starting something slow.", "calls": [{"do": "run", "command": SLOW}]}]}


@pytest.fixture
def real(ctl, tmp_path, hermetic_env):
    """real(agent, script): a box of the real CLI, with `provider`; nothing of it may outlive the test."""
    opened = []

    def make(agent: str, script: dict) -> RealBox:
        folder = tmp_path / f"{agent}-{len(opened)}"
        folder.mkdir()
        provider = providers.enter_context(FakeProvider(script))
        made = RealBox(ctl, folder, hermetic_env, agent, provider.url)
        made.provider = provider
        opened.append(made)
        return made

    # Closed also when a counterpart is missing, which skips the test in the middle of make().
    with contextlib.ExitStack() as providers:
        yield make
    for made in opened:
        until(lambda made=made: not made.processes(), "the end of all processes of the test")


def messages(result: dict) -> list[str]:
    return [label for _, _, message in result["progress"] for label in message.split(" · ")]


def check_progress(result: dict) -> None:
    counters = [counter for counter, _, _ in result["progress"]]
    assert counters == sorted(set(counters))
    assert {total for _, total, _ in result["progress"]} == {None}


@pytest.mark.parametrize("agent", ["codex", "opencode", "claude", "gemini"])
def test_a_plan_a_new_file_and_a_command_are_answered_shown_and_told(real, agent):
    box = real(agent, CREATE_RUN)
    result = box.run()
    found = result["structured"]
    assert result["isError"] is False, result["text"]
    assert found["answer"] == "fib(10) = 55"
    assert result["text"].startswith("fib(10) = 55\n\n--- Activity (4 steps) ---\n- Plan: write fib.py, run it.\n")
    plan, edit, message, command = found["activity"]
    assert (plan["text"], message["text"]) == ("Plan: write fib.py, run it.", "Now running it.")
    assert (edit["kind"], edit["path"]) == ("edit", "fib.py")
    assert edit["change"] == ("write" if agent == "gemini" else "add")
    assert command["command"].endswith(("python3 fib.py", "python3 fib.py'"))
    assert (command["output"], command.get("exitCode")) == ("55", None if agent == "gemini" else 0)
    assert found["files"]["added"] == ["fib.py"]
    assert found["usage"]["output_tokens"] > 0
    assert found["cwd"] == str(box.project)
    assert (box.project / "fib.py").read_text() == FIB
    check_progress(result)
    told = messages(result)
    assert told[0] == f"Starting {agent}"
    assert told[-1] == "Response ready"
    assert f"Edited: {edit['change']} fib.py" in told
    assert ("Ran: python3 fib.py" if agent == "gemini" else "Ran: python3 fib.py (exit 0)") in told
    assert ("Running: python3 fib.py" in told) == (agent != "opencode")
    assert box.leftovers() == []


def test_codex_a_failing_command_an_edit_a_deletion_a_search_and_reasoning(real):
    box = real(
        "codex",
        {
            "turns": [
                {"reasoning": "**Looking**\n\nI should look first.", "calls": [{"do": "search", "pattern": "TODO"}]},
                {"calls": [{"do": "run", "command": "echo oops >&2; exit 3"}]},
                {"calls": [{"do": "edit", "path": "notes.txt", "old": "TODO: two", "new": "done"}]},
                {"calls": [{"do": "delete", "path": "old.txt"}]},
                {"text": "All done."},
            ]
        },
    )
    (box.project / "notes.txt").write_text("one\nTODO: two\n")
    (box.project / "old.txt").write_text("old\n")
    found = box.run()["structured"]
    assert found["answer"] == "All done."
    assert found["files"] == {"added": [], "modified": ["notes.txt"], "deleted": ["old.txt"]}
    kinds = [(step["kind"], step.get("status"), step.get("exitCode"), step.get("change")) for step in found["activity"]]
    assert kinds == [
        ("reasoning", None, None, None),
        ("command", "completed", 0, None),
        ("command", "failed", 3, None),
        ("edit", "completed", None, "modify"),
        ("edit", "completed", None, "delete"),
    ]
    assert "TODO: two" in found["activity"][1]["output"]


def test_opencode_a_failing_command_an_edit_a_search_and_reasoning(real):
    box = real(
        "opencode",
        {
            "turns": [
                {"reasoning": "I should look first.", "calls": [{"do": "run", "command": "echo oops >&2; exit 3"}]},
                {"calls": [{"do": "read", "path": "notes.txt"}, {"do": "find", "pattern": "*.txt"}]},
                {"calls": [{"do": "edit", "path": "notes.txt", "old": "TODO: two", "new": "done"}]},
                {"text": "All done."},
            ]
        },
    )
    (box.project / "notes.txt").write_text("one\nTODO: two\n")
    found = box.run()["structured"]
    assert found["answer"] == "All done."
    assert found["files"]["modified"] == ["notes.txt"]
    kinds = [(step["kind"], step.get("exitCode")) for step in found["activity"]]
    assert kinds[:2] == [("reasoning", None), ("command", 3)]
    assert sorted(kinds[2:4]) == [("read", None), ("search", None)]
    assert kinds[4:] == [("edit", None)]
    assert found["activity"][1]["status"] == "failed"


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        ({"error": {"status": 401, "message": "scripted: bad api key"}}, "not_logged_in"),
        ({"error": {"status": 429, "message": "scripted: slow down"}}, "rate_limited"),
        ({"error": {"status": 500, "message": "scripted trouble"}}, "provider_error"),
        ({"text": "An answer that is cut off", "cut": True}, "network"),
        ({"text": "Half an answer", "stream_error": "scripted failure"}, "network"),
    ],
    ids=["401", "429", "500", "cut", "stream error"],
)
def test_codex_an_error_of_the_provider_is_named_with_what_to_do(real, turn, code):
    result = real("codex", {"turns": [turn]}).run()
    assert result["isError"] is True
    assert result["structured"]["error"]["code"] == code
    assert result["structured"]["error"]["remedy"]
    assert result["text"].startswith("codex failed (exit 1): ")
    assert "--- end of stdout ---" in result["text"]


def test_opencode_an_error_of_the_provider_is_named_with_what_to_do(real):
    result = real("opencode", {"turns": [{"error": {"status": 401, "message": "scripted: bad api key"}}]}).run()
    assert result["structured"]["error"]["code"] == "not_logged_in"
    assert "scripted: bad api key" in result["text"].splitlines()[0]


def test_opencode_an_unknown_model_is_told_from_its_log(real):
    result = real("opencode", {"turns": []}).run(model="fake/no-such-model")
    assert result["isError"] is True
    assert "the model fake/no-such-model is not known" in result["text"].splitlines()[0]
    assert result["structured"]["error"]["code"] == "unknown_model"


def test_opencode_a_permission_that_nobody_can_give_is_named(real):
    turns = [{"text": "Reading outside.", "calls": [{"name": "read", "args": {"filePath": "/etc/hostname"}}]}]
    box = real("opencode", {"turns": [*turns, {"text": "Read it."}]})
    result = box.run()
    assert result["structured"]["error"]["code"] == "permission_rejected"
    assert "external_directory" in result["text"].splitlines()[0]
    allowed = box.calls({}, flags=[*FLAGS["opencode"], "--", "--auto"])[0]
    assert allowed["structured"]["answer"] == "Read it."


TRICKY = ["--help", "line one\nline \"two\" 'three'", "$(touch x); `touch x`", "x" * 1_000_000]


def test_codex_every_prompt_reaches_the_model_as_it_is(real):
    box = real("codex", {"turns": [{"text": "ok"}]})
    results = box.calls(*({"prompt": prompt} for prompt in TRICKY))
    assert [result["structured"].get("answer") for result in results] == ["ok"] * len(TRICKY)
    asked = [json.dumps(body) for body in box.provider.asked()]
    for prompt, body in zip(TRICKY, asked):
        assert json.dumps(prompt) in body
    assert os.listdir(box.project) == []


def test_opencode_a_prompt_reaches_the_model_as_it_is(real):
    box = real("opencode", {"turns": [{"text": "ok"}]})
    prompt = "\n".join(TRICKY)
    assert box.run(prompt=prompt)["structured"]["answer"] == "ok"
    assert json.dumps(prompt)[1:-1] in json.dumps(box.provider.asked()[0])
    assert os.listdir(box.project) == []


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_five_megabytes_of_output_and_what_is_no_plain_text_are_read(real, agent):
    command = r"printf '\033[31mred\033[0m \360\237\246\200 h\303\251 \377 end\n'"
    box = real(
        agent,
        {
            "turns": [
                {"calls": [{"do": "run", "command": "python3 -c \"print('0123456789abcdef ' * 320000)\""}]},
                {"calls": [{"do": "run", "command": command}]},
                {"calls": [{"do": "create", "path": "naïve 文件 🚀.txt", "content": "héllo\n"}]},
                {"text": "Fertig ✅ — 你好, \u2028line separator."},
            ]
        },
    )
    result = box.run()
    found = result["structured"]
    assert found["answer"].startswith("Fertig ✅ — 你好, \u2028line")
    assert len(json.dumps(found, ensure_ascii=False)) < 12_000
    big, coloured, edit = found["activity"]
    assert big["output"].startswith("0123456789abcdef")
    assert coloured["output"] == "red 🦀 hé \ufffd end"
    assert edit["path"] == "naïve 文件 🚀.txt"


def test_codex_an_answer_of_five_megabytes_is_kept_whole_in_a_file(real):
    unit = "0123456789abcdef "
    box = real("codex", {"turns": [{"text": "Long: ", "repeat": {"unit": unit, "times": 300_000}}]})
    result = box.run()
    assert len(result["text"]) < 12_000
    with open(result["structured"]["fullOutput"], encoding="utf-8") as file:
        assert file.read().startswith("Long: " + unit * 300_000)


def test_new_files_are_found_outside_of_any_repository_and_inside_one(real):
    import subprocess

    box = real("codex", {"turns": [{"calls": [{"do": "run", "command": "echo x > made.txt"}]}, {"text": "ok"}]})
    outside = box.run()["structured"]
    assert (outside["status"], outside["files"]["added"]) == ("completed", ["made.txt"])
    (box.project / "made.txt").unlink()
    subprocess.run(["git", "init", "-q", str(box.project)], check=True)
    assert box.run()["structured"]["files"]["added"] == ["made.txt"]


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_two_first_runs_at_once_both_answer(real, agent):
    box = real(agent, {"turns": [{"calls": [{"do": "run", "command": "echo hi"}]}, {"text": "ok"}]})
    results = box.calls({}, {}, at_once=True)
    assert [result["structured"].get("answer") for result in results] == ["ok", "ok"], results


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_a_session_goes_on_where_it_stopped(real, agent):
    box = real(agent, {"turns": [{"text": "First answer."}, {"text": "Second answer, same session."}]})
    first, second = box.calls({"prompt": "first question"}, {"prompt": "second", "sessionId": "{sessionId}"})
    assert first["structured"]["answer"] == "First answer."
    assert second["structured"]["answer"] == "Second answer, same session."
    assert second["structured"]["sessionId"] == first["structured"]["sessionId"]
    assert "first question" in json.dumps(box.provider.asked()[-1])


@pytest.mark.parametrize("agent", ["codex", "claude", "gemini"])
def test_a_session_that_does_not_exist_is_named(real, agent):
    result = real(agent, {"turns": [{"text": "ok"}]}).run(sessionId="00000000-0000-4000-8000-000000000001")
    assert result["isError"] is True
    assert result["structured"]["error"]["code"] == "unknown_session"


@pytest.mark.parametrize(
    ("agent", "how"),
    [("codex", "cancel"), ("codex", "time-out"), ("codex", "SIGKILL"), ("opencode", "cancel"), ("opencode", "SIGKILL"),
     ("claude", "cancel"), ("gemini", "SIGTERM")],
)  # fmt: skip
def test_a_run_that_hangs_in_a_command_ends_with_everything_it_started(real, agent, how):
    box = real(agent, HANG)

    def slow():
        return [pid for pid in box.family() if b"time.sleep(600)" in command_line(pid).split(b"\0")[-2:][0]]

    limit = {"TIMEOUT_MS": "3000"} if how == "time-out" else {}
    with box.real(**limit) as server:
        server.initialize()
        call = server.call("run", prompt="please do the task")
        until(lambda: len(slow()) >= 2, "the slow command", 60)
        if how == "cancel":
            server.cancel(call)
        elif how == "time-out":
            answer = server.answer_to(call)
            assert answer["result"]["structuredContent"]["status"] == "timed_out"
            assert box.processes() == [server.process.pid]
        else:
            server.signal(getattr(signal, how))
        expected = [server.process.pid] if how in ("cancel", "time-out") else []
        until(lambda: box.processes() == expected, "the end of the run")
    until(lambda: box.leftovers() == [], "the removal of the run's files")


def test_codex_a_model_that_never_answers_is_ended_by_the_idle_time_out(real):
    box = real("codex", {"turns": [{"hang": "connect"}]})
    result = box.calls({}, words=["--idle-timeout", "3"])[0]
    assert result["structured"]["status"] == "timed_out"
    assert result["structured"]["error"]["code"] == "idle"


def test_codex_plain_output_without_the_event_stream(real):
    box = real("codex", {"turns": [{"calls": [{"do": "run", "command": "echo hi"}]}, {"text": "The answer is 42."}]})
    result = box.calls({}, variables={"AGENT_CLI_MCP_STRUCTURED": "0"})[0]
    assert result["text"] == "The answer is 42."
    assert len(result["progress"]) > 1


@pytest.mark.parametrize(("client", "agent"), [("claude", "codex"), ("codex", "claude")])
def test_one_agent_gives_a_task_to_another_and_reads_its_answer_and_what_it_did(
    real, hermetic_env, tmp_path, client, agent
):
    box = real(agent, CREATE_RUN)
    variables = [f"{name}={value}" for name, value in box.env.items()]
    server = ["env", "-i", *variables, *box.argv(*FLAGS[agent], agent=agent)]
    call = {"mcp": "termsprawl", "tool": "run", "args": {"prompt": "compute fib(10)"}}
    with FakeProvider({"turns": [{"calls": [call]}, {"text": "The other agent says 55."}]}) as provider:
        done = agent_clis.ALL[client](tmp_path / "client", hermetic_env, provider.url, server).run()
        assert done.returncode == 0, done.stderr.decode()
        asked = provider.asked()
    assert b"The other agent says 55." in done.stdout
    assert "compute fib(10)" in json.dumps(box.provider.asked()[0])
    told = json.dumps(asked[1])
    assert "fib(10) = 55" in told
    assert "python3 fib.py" in told
    assert (box.project / "fib.py").read_text() == FIB


def command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
