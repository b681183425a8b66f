"""How an agent is started follows from what its own help says."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
import types

import pytest

from termsprawlctl.agents.clis.cli import Surroundings
from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.launch import adapters, launching
from termsprawlctl.host.operations.session import session_info
from termsprawlctl.host.registry.sessions import SessionStore
from termsprawlctl.host.registry.status import Adapter, Status

BRIDGE = ["/opt/py thon", "-ISB", '/opt/"ctl"', "mcp", "--session", "/data/s.json"]
CLAUDE_HELP = "  --append-system-prompt <prompt>\n  --mcp-config <configs...>\n"
CODEX_HELP = "  mcp   Manage external MCP servers\n  -c, --config <key=value>\n"
OPENCODE_HELP = "  opencode mcp   manage MCP servers\n  --prompt  prompt to use\n"
GEMINI_HELP = "  -i, --prompt-interactive  Execute the provided prompt\n"


def plan(agent: str, help_text: str, environment=None) -> adapters.Launch:
    return adapters.plan(agent, around([f"/bin/{agent}"], help_text, environment))


def around(argv: list[str], help_text: str, environment=None, session_id: str = "") -> Surroundings:
    return Surroundings(argv, help_text, BRIDGE, "/launch", "GUIDE", environment or {}, session_id)


def test_claude_gets_a_config_file_and_the_guide():
    launch = plan("claude", CLAUDE_HELP)
    assert launch.argv == ["/bin/claude", "--mcp-config", "/launch/mcp.json", "--append-system-prompt", "GUIDE"]
    server = json.loads(launch.files["mcp.json"])["mcpServers"]["termsprawl"]
    assert [server["command"], *server["args"]] == BRIDGE
    assert str(launch.status.adapter) == "claude-mcp"
    assert launch.status.state == "needs-setup"


def test_codex_gets_its_server_as_configuration_flags_that_are_toml():
    launch = plan("codex", CODEX_HELP)
    assert launch.argv[1::2] == ["-c", "-c"]
    assert launch.argv[2] == 'mcp_servers.termsprawl.command="/opt/py thon"'
    assert (
        launch.argv[4] == 'mcp_servers.termsprawl.args=["-ISB", "/opt/\\"ctl\\"", "mcp", "--session", "/data/s.json"]'
    )
    assert str(launch.status.adapter) == "codex-mcp"


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
    assert str(launch.status.adapter) == "opencode-cli"
    assert launch.environment == {}
    assert "secret" not in str(launch)


@pytest.mark.parametrize("agent", ["gemini", "antigravity", "agy"])
def test_agents_that_take_a_first_prompt_get_their_instructions_with_it(agent):
    launch = plan(agent, GEMINI_HELP)
    assert launch.argv[:2] == [f"/bin/{agent}", "--prompt-interactive"]
    assert launch.argv[2].startswith("GUIDE")
    assert launch.status.state == "cli-fallback"
    assert str(launch.status.adapter) == f"{agent}-cli"


@pytest.mark.parametrize("usage", ["Usage: grok [options] [PROMPT]", "x\n  usage: openclaude [--a] [prompt...]\nmore"])
def test_a_usage_line_that_ends_with_a_prompt_gets_the_instructions_there(usage):
    launch = plan("grok", usage)
    assert (launch.argv[0], launch.argv[1].startswith("GUIDE")) == ("/bin/grok", True)
    assert (launch.status.state, str(launch.status.adapter)) == ("cli-fallback", "grok-cli")


def test_the_users_own_agent_gets_its_instructions_with_the_option_that_the_user_names():
    launch = adapters.plan("mine", around(["/bin/mine"], ""), "--rules")
    assert launch.argv == ["/bin/mine", "--rules", "GUIDE"]
    assert launch.status.state == "cli-fallback"


def test_claudes_conversation_has_the_nodes_id_where_its_help_offers_that():
    node = "0b2f7f3a-8a43-4c0e-9d5a-6a1de0b8ac11"
    for text, ending in ((CLAUDE_HELP + "  --session-id <uuid>\n", ["--session-id", node]), (CLAUDE_HELP, [])):
        launch = adapters.plan("claude", around(["/c"], text, session_id=node))
        assert launch.argv[5:] == ending


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode", "gemini", "grok", "openclaude", "custom"])
def test_a_name_alone_is_not_enough(agent):
    launch = plan(agent, "usage: something else\n")
    assert launch.argv == [f"/bin/{agent}"]
    assert str(launch.status.adapter) == f"{agent}-unverified"
    assert launch.status.state == "needs-setup"


def test_a_status_becomes_connected_with_the_first_call_of_an_mcp_adapter_only():
    waiting = Status("needs-setup", Adapter("codex", "mcp"), "1.2", "waiting")
    connected = Status("connected", Adapter("codex", "mcp"), "1.2")
    assert waiting.after_a_call() == connected
    assert connected.after_a_call() == connected
    for value in ({"state": "cli-fallback", "adapter": "gemini-cli"}, {}, None, {"adapter": 1, "reason": []}):
        assert Status.parse(value).after_a_call() == Status.parse(value)


@pytest.mark.parametrize(
    ("name", "is_agent", "is_verified"),
    [
        ("shell-cli", False, False),
        ("claude-mcp", True, True),
        ("my-own-cli", True, True),
        ("grok-unverified", True, False),
        ("", True, False),
        ("claude", True, False),
    ],
)
def test_what_a_node_is_stands_in_the_name_of_its_adapter(name, is_agent, is_verified):
    adapter = Adapter.parse(name)
    assert (str(adapter), adapter.is_agent, adapter.is_verified) == (name, is_agent, is_verified)


def test_an_agent_that_is_not_installed_is_named():
    with pytest.raises(CtlError, match="grok is not installed"):
        adapters.find("grok", None, which=lambda _name: None)
    with pytest.raises(CtlError, match="No custom agent is configured"):
        adapters.find("custom", None)
    assert adapters.find("custom", adapters.Custom(["mine", "-x"]), which=lambda name: f"/bin/{name}") == [
        "/bin/mine",
        "-x",
    ]


@pytest.fixture
def program(tmp_path):
    """Makes an executable of a shell script's text."""

    def make(script: str) -> str:
        path = tmp_path / "agent"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


def processes_with(word: str) -> list[str]:
    listing = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, check=True, text=True).stdout
    return [line for line in listing.splitlines() if word in line and not line.startswith("Z")]


@pytest.mark.process
def test_both_outputs_of_a_help_are_taken_whatever_its_status(program):
    text = adapters.probe(program("echo --config; echo mcp >&2; seq 20000; exit 3"))
    assert text.startswith("--config\nmcp\n1\n")
    assert text.endswith("\n20000\n")
    assert adapters.probe("/no/such/agent") == ""


def test_a_program_that_hangs_at_help_ends_with_all_its_children_and_what_it_said_counts(program, monkeypatch):
    monkeypatch.setattr(adapters, "PROBE_TIMEOUT_S", 0.5)
    assert adapters.probe(program("echo --config mcp; sleep 600.25 & sleep 600.25")) == "--config mcp\n"
    assert processes_with("sleep 600.25") == []


def test_what_a_help_leaves_in_the_background_is_not_waited_for_and_ended(program, monkeypatch):
    monkeypatch.setattr(adapters, "PROBE_TIMEOUT_S", 600.0)  # longer than the test may take
    assert adapters.probe(program("sleep 600.75 & echo --config mcp")) == "--config mcp\n"
    assert processes_with("sleep 600.75") == []


@pytest.mark.process
def test_a_help_without_end_is_cut_off(program, monkeypatch):
    monkeypatch.setattr(adapters, "PROBE_TIMEOUT_S", 600.0)
    text = adapters.probe(program("exec yes"))
    assert adapters.MAX_HELP_BYTES <= len(text) < 2 * adapters.MAX_HELP_BYTES


def test_a_help_that_closes_its_outputs_is_heard_to_the_end(program, monkeypatch):
    monkeypatch.setattr(adapters, "PROBE_TIMEOUT_S", 600.0)
    assert adapters.probe(program("echo mcp; exec >&- 2>&-; sleep 600.5")) == "mcp\n"
    assert processes_with("sleep 600.5") == []


def test_what_fits_into_a_command_of_tmux_stays_as_it_is(tmp_path):
    environment = {"PATH": "/bin", "A": "b"}
    assert launching.fit_into_command(str(tmp_path), environment, ["/bin/x", "y"]) == (environment, ["/bin/x", "y"])
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_for_a_command_of_tmux_arrives_all_the_same(tmp_path):
    odd = 'it\'s $HOME `x` "y"\n\\ é \udcff;'
    environment = {"PATH": "/bin:/usr/bin:" + "/long" * 4000, "ODD": odd * 100, "SMALL": "s"}
    argv = [
        sys.executable,
        "-c",
        "import os, sys; os.write(1, ascii([sys.argv[1:], dict(os.environ)]).encode())",
        odd,
        "",
    ]
    small, words = launching.fit_into_command(str(tmp_path), environment, argv)
    assert small == {"SMALL": "s"}
    assert sum(map(len, words)) < 1000
    assert stat.S_IMODE(os.stat(words[-1]).st_mode) == 0o600
    done = subprocess.run(words, env=small, capture_output=True, check=True)
    arguments, variables = ast.literal_eval(done.stdout.decode())
    assert arguments == [odd, ""]
    assert {name: variables[name] for name in environment} == environment


def test_a_session_that_is_taken_away_while_it_connects_is_told_so(tmp_path):
    store = SessionStore(DataPaths(str(tmp_path)))
    caller = store.provision("n-1", "p-1", Status("needs-setup", Adapter("claude", "mcp")))
    os.unlink(tmp_path / "agent-tools" / "sessions" / "n-1.json")
    with pytest.raises(CtlError, match="just ended"):
        session_info(types.SimpleNamespace(sessions=store), caller, {})
