"""Agents started by a running host: stand-ins that print how they were started."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from support.waiting import until

# Stands in for a coding agent: says in its help what it can take, shows its argv, then waits.
STAND_IN = """\
#!/bin/sh
case $1 in --help) printf '%s\\n' '{help}'; exit 0 ;; esac
printf 'started with:'; printf ' <%s>' "$@"; echo; echo "node $TERMSPRAWL_NODE_ID"
"$TERMSPRAWL_CTL" call session_info --field value.nodeId
exec cat
"""
HELPS = {
    "claude": "--mcp-config --append-system-prompt",
    "codex": "--config mcp",
    "gemini": "--prompt-interactive",
    "grok": "nothing we know",
}


@pytest.fixture
def agents(host, tmp_path):
    """The host again, with stand-ins for agents first on its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in HELPS.items():
        (folder / name).write_text(STAND_IN.format(help=text))
        (folder / name).chmod(0o755)
    host.stop()
    host.env["PATH"] = os.pathsep.join([str(folder), host.env["PATH"]])
    host.start()
    return host


@pytest.mark.parametrize(
    ("agent", "adapter", "state"),
    [
        ("claude", "claude-mcp", "connected"),
        ("codex", "codex-mcp", "connected"),
        ("gemini", "gemini-cli", "cli-fallback"),
        ("grok", "grok-unverified", "needs-setup"),
    ],
)
def test_an_agent_runs_in_a_terminal_of_its_own_and_reaches_its_session(agents, agent, adapter, state):
    node = agents.value("agent_launch", agent=agent)["nodeId"]
    output = agents.wait_for_text(node, f"node {node}\n{node}")
    assert "started with:" in output
    listed = {one["nodeId"]: one for one in agents.value("agent_status")}
    assert listed[node]["status"]["adapter"] == adapter
    assert listed[node]["status"]["state"] == state
    assert listed[node]["running"]
    (canvas_node,) = agents.value("canvas_list")
    assert canvas_node["data"]["command"] == agent
    folder = agents.data / "agent-tools" / "launch" / node
    skill = (folder / "skills" / "termsprawl-terminal" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: termsprawl-terminal\ndescription: ")
    assert (folder / "termsprawl-system.md").stat().st_mode & 0o777 == 0o600


def test_a_path_of_many_kilobytes_is_no_obstacle(agents):
    agents.stop("--kill-sessions")
    agents.env["PATH"] += ":/nowhere" * 2200
    agents.start()
    node = agents.value("agent_launch", agent="claude")["nodeId"]
    agents.wait_for_text(node, f"node {node}\n{node}")
    listed = {one["nodeId"]: one for one in agents.value("agent_status")}
    assert listed[node]["status"]["adapter"] == "claude-mcp"
    assert agents.value("terminal_open")["nodeId"]


def test_a_help_that_takes_long_holds_up_nobody_else(agents, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    grok = tmp_path / "bin" / "grok"
    grok.write_text(f'#!/bin/sh\n[ "$1" = --help ] || exec cat\necho asked >{gate}; cat {gate}\n')
    launches: list[dict] = []
    launch = threading.Thread(target=lambda: launches.append(agents.call("agent_launch", agent="grok")))
    launch.start()
    assert gate.read_text() == "asked\n"  # from here on it waits to be let go
    note = agents.value("sticky_open", text="meanwhile")["nodeId"]
    gate.write_text("usage: grok\n")
    launch.join(60)
    (result,) = launches
    assert result["ok"], result
    assert [node["id"] for node in agents.value("canvas_list")] == [note, result["value"]["nodeId"]]


def test_a_shell_command_is_never_typed_into_an_agents_prompt(agents):
    node = agents.value("agent_launch", agent="grok")["nodeId"]
    assert "is an agent's prompt, not a shell" in agents.call("terminal_submit", nodeId=node, command="ls")["error"]
    assert agents.value("terminal_input", nodeId=node, text="hello\n")["delivered"]


def test_the_bridge_that_an_agent_is_given_runs(agents):
    node = agents.value("agent_launch", agent="claude")["nodeId"]
    config = json.loads((agents.data / "agent-tools" / "launch" / node / "mcp.json").read_text())
    server = config["mcpServers"]["termsprawl"]
    assert Path(server["command"]).is_absolute()
    assert str(agents.data / "agent-tools" / "sessions" / f"{node}.json") in server["args"]
    assert agents.token() not in json.dumps(config)


def test_an_agent_that_is_missing_or_unconfigured_leaves_nothing_behind(agents):
    before = sorted((agents.data / "agent-tools" / "sessions").iterdir())
    assert agents.call("agent_launch", agent="openclaude")["error"].startswith("openclaude is not installed")
    assert agents.call("agent_launch", agent="custom")["error"].startswith("No custom agent is configured")
    assert sorted((agents.data / "agent-tools" / "sessions").iterdir()) == before
    assert agents.value("canvas_list") == []


def test_a_custom_agent_comes_from_the_preferences(agents):
    preferences = agents.data / "agent-tools" / "preferences.json"
    for broken in (
        "{",
        '{"customAgent": "x"}',
        '{"customAgent": {"executable": ""}}',
        '{"customAgent": {"executable": "x", "args": [1]}}',
    ):
        preferences.write_text(broken)
        assert not agents.call("agent_launch", agent="custom")["ok"]
    preferences.write_text('{"customAgent": {"executable": "grok", "args": ["--deep", "a b;"]}}')
    node = agents.value("agent_launch", agent="custom")["nodeId"]
    agents.wait_for_text(node, "started with: <--deep> <a b;>")
    preferences.write_text('{"customAgent": {"executable": "claude", "args": ["--resume"]}}')
    node = agents.value("agent_launch", agent="custom")["nodeId"]
    agents.wait_for_text(node, "started with: <--resume> <--mcp-config>")


def test_an_agent_that_exits_is_reported_as_ended(agents):
    node = agents.value("agent_launch", agent="grok")["nodeId"]
    agents.value("terminal_interrupt", nodeId=node)
    until(lambda: not agents.call("terminal_read", nodeId=node)["ok"], "the end of the agent")
    assert not agents.value("agent_status")[0]["running"]


def test_launch_starts_host_and_agent_and_prints_the_node(agents):
    agents.stop()
    done = agents.run("launch", "codex", "--data", str(agents.data), "--project", str(agents.project))
    assert done.returncode == 0, done.stderr.decode()
    node = done.stdout.decode().strip()
    assert f"attach {node}" in done.stderr.decode()
    agents.wait_for_text(node, "mcp_servers.termsprawl.command=")
    refused = agents.run("launch", "openclaude", "--data", str(agents.data), "--project", str(agents.project))
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert "openclaude is not installed" in refused.stderr.decode()
    unknown = agents.run("launch", "nobody", "--data", str(agents.data))
    assert unknown.returncode == 2
