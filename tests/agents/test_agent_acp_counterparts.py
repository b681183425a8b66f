"""Six real agents over ACP against a scripted model service, and questions that a real MCP client answers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

import pytest
from support import agent_clis, counterparts
from support.fake_provider import FakeProvider
from support.real_agents import CLIENT_S, DRIVER, RealBox
from support.scripted_agent import structured
from support.waiting import until

pytestmark = pytest.mark.counterpart

AGENTS = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"]
# By default these ask before they change a file or run a command.
ASKING = ["claude", "copilot", "gemini", "qwen"]
ALLOW = ("--permissions", "allow")
ASK = ("--permissions", "ask")
FIB = "print(55)\n"
WORK = [
    {"text": "Plan: write fib.py, run it.", "calls": [{"do": "create", "path": "fib.py", "content": FIB}]},
    {"text": "Now running it.", "calls": [{"do": "run", "command": "python3 fib.py"}]},
    {"text": "And something that fails.", "calls": [{"do": "run", "command": "echo oops; exit 3"}]},
    {"text": "fib(10) = 55"},
]
RUN = [{"text": "Running it.", "calls": [{"do": "run", "command": "touch made"}]}, {"text": "All done."}]
SLOW = "python3 -c 'import time; time.sleep(600)'"
HANG = [{"text": "Starting something slow.", "calls": [{"do": "run", "command": SLOW}]}]


@pytest.fixture
def real(ctl, tmp_path, hermetic_env):
    """real(agent, turns): a box of the real agent; nothing of it may outlive the test."""
    opened = []

    def make(agent: str, turns: list) -> RealBox:
        if agent == "qwen":
            turns = [{"text": "Hello."}, *turns]  # it opens with a preamble of its own
        folder = tmp_path / f"{agent}-{len(opened)}"
        folder.mkdir()
        provider = providers.enter_context(FakeProvider({"turns": turns}))
        made = RealBox(ctl, folder, hermetic_env, agent, provider.url, acp=True)
        opened.append(made)
        return made

    with contextlib.ExitStack() as providers:
        yield make
    for made in opened:
        until(lambda made=made: not made.processes(), "the end of all processes of the test")


def steps(found: dict, kind: str) -> list[dict]:
    return [step for step in found["activity"] if step["kind"] == kind]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_file_and_commands_that_end_well_and_badly_are_told(real, agent):
    box = real(agent, WORK)
    (result,) = box.calls({}, words=ALLOW)
    found = result["structured"]
    assert (found["status"], found["answer"]) == ("completed", "fib(10) = 55"), result["text"]
    assert [step["path"] for step in steps(found, "edit")] == ["fib.py"]
    well, badly = steps(found, "command")
    assert well["command"].endswith(("python3 fib.py", "python3 fib.py'"))
    assert well.get("exitCode") in (0, None)
    if agent == "gemini":  # it shows neither output nor exit code
        assert "exitCode" not in badly
    else:
        assert (badly["exitCode"], badly["status"]) == (3, "failed")
        assert "oops" in badly["output"]
    assert found["files"]["added"] == ["fib.py"]
    assert (box.project / "fib.py").read_text() == FIB
    assert box.leftovers() == []


@pytest.mark.parametrize("agent", ASKING)
def test_what_is_refused_is_named_with_the_flag_that_would_allow_it(real, agent):
    box = real(agent, RUN)
    (result,) = box.calls({})
    assert not (box.project / "made").exists()
    assert "touch made" in result["text"]
    assert "--permissions allow" in result["text"]
    assert [step["status"] for step in steps(result["structured"], "command")] == ["declined"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_that_is_cancelled_leaves_nothing_running(real, agent):
    box = real(agent, HANG)
    with box.real(*ALLOW) as server:
        server.initialize()
        key = server.call("run", prompt="go", background=True)
        run_id = structured(server.answer_to(key))["runId"]
        until(lambda: any("time.sleep(600)" in words for words in _commands(box)), "the command of the agent", 60)
        server.answer_to(server.call("run_cancel", runId=run_id))
        found = structured(server.answer_to(server.call("run_result", runId=run_id, waitMs=30_000)))
    assert found["status"] == "cancelled"
    assert box.processes() == []


def _commands(box) -> list[str]:
    found = []
    for pid in box.processes():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            found.append(file.read().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "opencode", "qwen"])  # gemini: see the contract
def test_a_session_is_continued_in_a_second_process(real, agent):
    box = real(agent, [{"text": "First answer."}, {"text": "Second answer."}])
    first, second = box.calls({}, {"sessionId": "{sessionId}"}, words=ALLOW)
    assert first["structured"]["status"] == second["structured"]["status"] == "completed", second["text"]
    assert second["structured"]["sessionId"] == first["structured"]["sessionId"]
    assert second["structured"]["activity"] == []


# --- a person behind a real client answers a real agent -------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "choice", "mode"),
    [
        ("gemini", "allow_once", "legacy"),
        ("gemini", "", "legacy"),
        ("gemini", "reject_once", "2026-07-28"),
        ("gemini", "", "2026-07-28"),
        ("claude", "allow_once", "2026-07-28"),
    ],
)
def test_a_person_behind_the_official_python_client_is_asked(real, agent, choice, mode):
    box = real(agent, RUN)
    (result,) = box.calls({}, words=ASK, mode=mode, choose=choice)
    (asked,) = result["asked"]
    assert asked.endswith(f"wants to run this command in {box.project}:\n\ntouch made")
    assert (box.project / "made").exists() == (choice == "allow_once")
    assert result["structured"]["status"] == "completed"
    assert ("touch made" in result["structured"].get("note", "")) == (choice != "allow_once")


@pytest.mark.parametrize(
    ("choice", "mode"),
    [("allow_once", "1.x"), ("allow_once", "legacy"), ("reject_once", "legacy"), ("allow_once", "pin")],
)
def test_a_person_behind_the_official_typescript_clients_is_asked(real, choice, mode):
    box = real("gemini", RUN)
    folder = counterparts.package("@modelcontextprotocol/" + ("sdk" if mode == "1.x" else "client"))
    server = started_in_its_own_environment(box)
    done = subprocess.run(
        [
            *(counterparts.node(), DRIVER.parent / "typescript_client.mjs", folder, mode),
            *("run", json.dumps({"prompt": "go"}), *server),
        ],
        env={**os.environ, "CHOOSE": choice},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CLIENT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found = json.loads(done.stdout)
    assert len(found["asked"]) == 1
    assert "touch made" in found["asked"][0]
    assert (box.project / "made").exists() == (choice == "allow_once")
    assert found["structured"]["status"] == "completed"


def started_in_its_own_environment(box: RealBox) -> list[str]:
    """The command of a server that asks; a client hands over little environment, or its own."""
    program = box.bin.parent / "start"
    program.write_text("\n".join(["#!/bin/sh", *(f"export {key}='{box.env[key]}'" for key in box.env), 'exec "$@"']))
    program.chmod(0o755)
    return [str(program), *box.argv(*ASK, *box.flags, agent=box.agent)]


@pytest.mark.parametrize("choice", ["allow_once", "reject_once"])
def test_a_person_behind_claude_code_is_asked(real, tmp_path, hermetic_env, choice):
    box = real("gemini", RUN)
    server = started_in_its_own_environment(box)
    turns = [{"calls": [{"mcp": "termsprawl", "tool": "run", "args": {"prompt": "go"}}]}, {"text": "Done."}]
    with FakeProvider({"turns": turns}) as provider:
        client = agent_clis.Claude(tmp_path / "client", hermetic_env, provider.url, server)
        # Its hook for questions stands for the dialog that it shows in a terminal.
        answer = {"hookEventName": "Elicitation", "action": "accept", "content": {"decision": choice}}
        heard = tmp_path / "heard"
        hook = tmp_path / "hook"
        hook.write_text(f"#!/bin/sh\ncat > {heard}\necho '{json.dumps({'hookSpecificOutput': answer})}'\n")
        hook.chmod(0o755)
        (client.home / ".claude").mkdir()
        hooks = {"Elicitation": [{"hooks": [{"type": "command", "command": str(hook)}]}]}
        (client.home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
        done = client.run()
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert "touch made" in json.loads(heard.read_text())["message"]
    assert (box.project / "made").exists() == (choice == "allow_once")


def test_without_a_way_to_ask_a_real_agent_is_refused(real):
    box = real("gemini", RUN)
    (result,) = box.calls({}, words=ASK)
    assert "nobody can be asked here" in result["structured"]["note"]
    assert not (box.project / "made").exists()
