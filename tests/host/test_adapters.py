"""How an agent is started follows from what its own help says."""

from __future__ import annotations

import json
import stat

import pytest

from termsprawlctl.errors import CtlError
from termsprawlctl.host import adapters

BRIDGE = ["/opt/py thon", "-ISB", '/opt/"ctl"', "mcp", "--session", "/data/s.json"]
CLAUDE_HELP = "  --append-system-prompt <prompt>\n  --mcp-config <configs...>\n"
CODEX_HELP = "  mcp   Manage external MCP servers\n  -c, --config <key=value>\n"
OPENCODE_HELP = "  opencode mcp   manage MCP servers\n  --prompt  prompt to use\n"
GEMINI_HELP = "  -i, --prompt-interactive  Execute the provided prompt\n"


def plan(agent: str, help_text: str, environment=None) -> adapters.Launch:
    return adapters.plan(agent, [f"/bin/{agent}"], help_text, BRIDGE, "/launch", "GUIDE", environment or {})


def test_claude_gets_a_config_file_and_the_guide():
    launch = plan("claude", CLAUDE_HELP)
    assert launch.argv == ["/bin/claude", "--mcp-config", "/launch/mcp.json", "--append-system-prompt", "GUIDE"]
    server = json.loads(launch.files["mcp.json"])["mcpServers"]["termsprawl"]
    assert [server["command"], *server["args"]] == BRIDGE
    assert launch.status["adapter"] == "claude-mcp"
    assert launch.status["state"] == "needs-setup"


def test_codex_gets_its_server_as_configuration_flags_that_are_toml():
    launch = plan("codex", CODEX_HELP)
    assert launch.argv[1::2] == ["-c", "-c"]
    assert launch.argv[2] == 'mcp_servers.termsprawl.command="/opt/py thon"'
    assert (
        launch.argv[4] == 'mcp_servers.termsprawl.args=["-ISB", "/opt/\\"ctl\\"", "mcp", "--session", "/data/s.json"]'
    )
    assert launch.adapter == "codex-mcp"


def test_opencode_gets_its_server_through_a_variable_that_the_user_does_not_use():
    entry = {"mcp": {"termsprawl": {"type": "local", "command": BRIDGE, "enabled": True}}}
    launch = plan("opencode", OPENCODE_HELP)
    assert launch.environment == {"OPENCODE_CONFIG": "/launch/opencode.json"}
    assert json.loads(launch.files["opencode.json"]) == entry
    launch = plan("opencode", OPENCODE_HELP, {"OPENCODE_CONFIG": "/mine"})
    assert json.loads(launch.environment["OPENCODE_CONFIG_CONTENT"]) == entry
    launch = plan(
        "opencode", OPENCODE_HELP, {"OPENCODE_CONFIG": "/mine", "OPENCODE_CONFIG_CONTENT": '{"key": "secret"}'}
    )
    assert launch.adapter == "opencode-cli"
    assert launch.environment == {}
    assert "secret" not in str(launch)


@pytest.mark.parametrize("agent", ["gemini", "antigravity", "agy"])
def test_agents_that_take_a_first_prompt_are_told_where_to_read(agent):
    launch = plan(agent, GEMINI_HELP)
    assert launch.argv[:2] == [f"/bin/{agent}", "--prompt-interactive"]
    assert "/launch/termsprawl-system.md" in launch.argv[2]
    assert launch.status["state"] == "cli-fallback"
    assert launch.adapter == f"{agent}-cli"


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode", "gemini", "grok", "openclaude", "custom"])
def test_a_name_alone_is_not_enough(agent):
    launch = plan(agent, "usage: something else\n")
    assert launch.argv == [f"/bin/{agent}"]
    assert launch.adapter == f"{agent}-unverified"
    assert launch.status["state"] == "needs-setup"


def test_a_status_becomes_connected_with_the_first_call_of_an_mcp_adapter_only():
    waiting = {"state": "needs-setup", "adapter": "codex-mcp", "reason": "waiting"}
    assert adapters.connected(waiting) == {"state": "connected", "adapter": "codex-mcp"}
    assert adapters.connected({"state": "connected", "adapter": "codex-mcp"}) is None
    assert adapters.connected({"state": "cli-fallback", "adapter": "gemini-cli"}) is None
    assert adapters.connected({}) is None


def test_an_agent_that_is_not_installed_is_named():
    with pytest.raises(CtlError, match="grok is not installed"):
        adapters.find("grok", None, which=lambda _name: None)
    with pytest.raises(CtlError, match="No custom agent is configured"):
        adapters.find("custom", None)
    assert adapters.find("custom", ["mine", "-x"], which=lambda name: f"/bin/{name}") == ["/bin/mine", "-x"]


def test_a_program_that_hangs_at_help_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(adapters, "PROBE_TIMEOUT_S", 0.2)
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert adapters.probe(str(program)) == ""
