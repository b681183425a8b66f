"""The bridge, and other commands that are on their way, when something around them breaks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults import Marked, command_line
from support.host_faults import FAULTY, LONG, FaultyHost
from support.mcp_app import StandInApp
from support.mcp_client import McpServer
from support.session_files import TOKEN
from support.waiting import until

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "canvas_list", "arguments": {}}}
LINES = b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, LIST, CALL))


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path) as running:
        yield running


@pytest.fixture
def host(ctl, tmp_path_factory, hermetic_env):
    one = FaultyHost(ctl, tmp_path_factory.mktemp("b"), hermetic_env)
    one.plan()
    assert one.run()
    yield one
    one.close()


@pytest.fixture
def bridge(host):
    with McpServer([host.ctl, "mcp", "--session", host.session], host.marked.env) as server:
        server.initialize()
        yield server


def result(bridge, name: str, **arguments) -> dict:
    """The ToolResult of a call."""
    return outcome(bridge.answer_to(bridge.call(name, **arguments)))


def outcome(answer: dict) -> dict:
    return json.loads(answer["result"]["content"][0]["text"])


# --- the host goes away -------------------------------------------------------------------


def test_a_call_whose_host_is_killed_gets_an_answer_and_the_next_one_finds_the_next_host(bridge, host):
    node = result(bridge, "terminal_open")["value"]["nodeId"]
    asked = bridge.call("terminal_run", nodeId=node, command="echo begun; sleep 60", timeoutMs=60_000)
    until(
        lambda: "begun" in host.call("terminal_read", nodeId=node)["value"]["output"].splitlines(), "it has not begun"
    )
    host.end(signal.SIGKILL)
    answer = outcome(bridge.answer_to(asked))
    assert not answer["ok"]
    assert "Mutations are not automatically retried" in answer["error"]
    assert not result(bridge, "session_info")["ok"]
    host.plan()
    assert host.run()
    assert result(bridge, "session_info")["ok"]
    assert result(bridge, "terminal_interrupt", nodeId=node)["ok"]
    assert host.end() == 0


def test_a_bridge_that_stood_still_answers_everything_it_was_asked(bridge):
    os.kill(bridge.process.pid, signal.SIGSTOP)
    asked = [bridge.call("session_info") for _ in range(20)]
    os.kill(bridge.process.pid, signal.SIGCONT)
    # Calls that only read run at once: their answers come in any order.
    answers = [bridge.read() for _ in asked]
    assert {answer["id"] for answer in answers} == set(asked)
    assert all(outcome(answer)["ok"] for answer in answers)


def test_a_host_that_stands_still_holds_nothing_up_but_its_calls(bridge, host):
    os.kill(host.process.pid, signal.SIGSTOP)
    asked = bridge.call("session_info")
    assert bridge.request("ping")["result"] == {}
    assert bridge.request("tools/list")["result"]["tools"]
    os.kill(host.process.pid, signal.SIGCONT)
    assert outcome(bridge.answer_to(asked))["ok"]


@pytest.mark.parametrize("what", ["session", "endpoint"])
@pytest.mark.parametrize("change", ["gone", "half", "folder", "other"])
def test_files_that_change_under_a_bridge_count_from_the_next_call_on(bridge, host, what, change):
    path = Path(host.session) if what == "session" else host.data / "agent-tools" / "endpoint.json"
    whole = path.read_bytes()
    path.unlink()
    if change == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif change == "folder":
        path.mkdir()
    elif change == "other":
        path.write_text(json.dumps({**json.loads(whole), "token": "0" * 64, "url": "http://127.0.0.1:1/call"}))
    refused = result(bridge, "session_info")
    # A file with another token is the node's session from then on.
    assert refused["ok"] == ((what, change) == ("session", "other"))
    if change == "folder":
        path.rmdir()
    new = path.with_suffix(".new")
    new.write_bytes(whole)
    new.replace(path)
    assert what == "endpoint" or result(bridge, "session_info")["ok"]


# --- the client goes away -----------------------------------------------------------------

CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(open(sys.argv[1], "rb").read())
server.stdin.flush()
for _ in range(2):
    server.stdout.readline()
print("asked", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_that_is_killed_takes_its_bridge_along_whatever_it_waits_for(ctl, app, hermetic_env, tmp_path, number):
    app.hold("canvas_list")
    marked = Marked(hermetic_env)
    lines = tmp_path / "lines"
    lines.write_bytes(LINES)
    argv = [sys.executable, "-c", CLIENT, str(lines), ctl, "mcp", "--session", str(app.session)]
    client = subprocess.Popen(argv, env=marked.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert client.stdout.readline() == b"asked\n"
        app.wait_for("canvas_list")
        client.send_signal(number)
        client.communicate(timeout=30)
        marked.assert_gone()
    finally:
        client.kill()
        marked.end()


# --- the system is short of something -----------------------------------------------------


def run_faulty(ctl, app, env, tmp_path, plan: dict) -> tuple[int, list[dict], str]:
    """(exit status, lines of the protocol, what it said) of a bridge with a fault that is asked for three things."""
    plan_path, trace = tmp_path / "plan.json", tmp_path / "trace"
    trace.write_bytes(b"")
    plan_path.write_text(json.dumps({"roots": [str(tmp_path)], "threads": "all", "trace": str(trace), **plan}))
    done = subprocess.run(
        [sys.executable, "-ISBXutf8", str(FAULTY), str(plan_path), ctl, "mcp", "--session", str(app.session)],
        env=env,
        input=LINES,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


@pytest.mark.parametrize("name", ["EMFILE", "ENOMEM", "MemoryError", "thread"])
def test_a_shortage_at_any_step_of_a_bridge_is_an_answer_or_an_end_and_never_a_hang(
    ctl, app, hermetic_env, tmp_path, name
):
    kinds = ["thread"] if name == "thread" else ["open-read", "open-write", "pipe", "socket", "list"]
    run_faulty(ctl, app, hermetic_env, tmp_path, {"step": 0, "kinds": kinds})
    count = len((tmp_path / "trace").read_text().splitlines())
    assert count
    for number in range(1, count + 1, 1 if LONG or name == "thread" else 2):
        status, answers, said = run_faulty(
            ctl, app, hermetic_env, tmp_path, {"step": number, "do": name, "kinds": kinds}
        )
        assert "Traceback" not in said, said
        assert TOKEN not in said
        assert status in (0, 1)
        if status == 0:
            assert {answer["id"] for answer in answers} == {1, 2, 3}, (number, answers, said)
        else:
            assert said.startswith("termsprawlctl: "), said


# Not of the address space: where Python's own imports run out of memory, they now and then wait for each other.
@pytest.mark.parametrize("limits", [{"NOFILE": 14}, {"NOFILE": 17}], ids=str)
def test_a_bridge_under_real_limits_answers_or_ends(ctl, app, hermetic_env, limits):
    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    done = subprocess.run(
        [ctl, "mcp", "--session", str(app.session)],
        env=hermetic_env,
        input=LINES,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=limit,
    )
    said = done.stderr.decode()
    assert "Traceback" not in said, said
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1 or {answer["id"] for answer in answers} == {1, 2, 3}, said


# --- other commands on their way ----------------------------------------------------------

# An emulator that never shows a window, or an agent.
PROGRAM = """\
#!/bin/sh
echo $$ > "$0.started"
case "$*" in *help*) sleep 0.5; echo "mcp --config"; exit; esac
echo ready; exec sleep 600
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_window_that_has_not_come_up_ends_with_the_command_that_waits_for_it(host, number):
    program = host.root / "slow"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    node = host.call("terminal_open")["value"]["nodeId"]
    preferences = {"externalTerminal": {"executable": str(program), "args": ["{command}"]}}
    (host.data / "agent-tools" / "preferences.json").write_text(json.dumps(preferences))
    child = on_its_way(host, "external", node)
    started = program.with_name("slow.started")
    pid = int(until(lambda: started.exists() and started.read_text(), "it does not start the emulator"))
    child.send_signal(number)
    assert child.wait(timeout=30) == (130 if number == signal.SIGINT else -number)
    until(lambda: not command_line(pid), "the emulator is left")
    assert host.end() == 0
    host.assert_next_works()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_whose_launch_is_cut_off_is_one_like_any_other_or_none(host, number):
    programs = host.root / "bin"
    programs.mkdir()
    (programs / "codex").write_text(PROGRAM)
    (programs / "codex").chmod(0o755)
    host.marked.env["PATH"] = f"{programs}:{host.marked.env['PATH']}"
    host.end()
    host.plan()
    assert host.run()  # the host looks the program up
    child = on_its_way(host, "launch", "codex")
    until((programs / "codex.started").exists, "it does not ask the agent what it can do")
    child.send_signal(number)
    child.wait(timeout=30)
    answer = host.call("session_info")
    assert answer["ok"], answer
    # The host goes on with what it was asked for: its answer has nobody to go to.
    # A node that comes to the canvas is whole; agent_status shows it before.
    nodes = until(lambda: host.call("canvas_list")["value"], "the host has forgotten it")
    (agent,) = host.call("agent_status")["value"]
    assert (agent["nodeId"], agent["running"]) == (nodes[0]["id"], True)
    closed = host.call("terminal_close", nodeId=agent["nodeId"])
    assert closed["ok"], closed
    assert host.end() == 0
    host.assert_next_works()


def on_its_way(host, *words: str) -> subprocess.Popen:
    """A command that runs in the background and says nothing."""
    null = subprocess.DEVNULL
    argv = [host.ctl, *words, "--data", str(host.data)]
    env = {**host.marked.env, "DISPLAY": ":99"}
    return subprocess.Popen(argv, env=env, cwd=host.project, stdin=null, stdout=null, stderr=null)
