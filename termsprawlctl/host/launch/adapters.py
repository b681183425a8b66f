"""How each coding agent is given its tools: chosen by name, and by what its own help says.

Pure, apart from probe(), which runs `EXECUTABLE --help`. A name alone proves nothing:
an older version, or another program of that name, may not know the options.
"""

from __future__ import annotations

import json
from collections import namedtuple

from ...base.errors import CtlError
from ...base.processes import find_program, said_by

PROBE_TIMEOUT_S = 3.0
MAX_HELP_BYTES = 1 << 20  # of a program that never stops talking
# Names under which one and the same kind of program is found.
PROMPT_AGENTS = ("gemini", "antigravity", "agy")
MCP_SERVER = "termsprawl"

# adapter: the name in the session's status; argv: the whole command; environment: what it
# needs besides; files: name -> text to be written to the node's launch folder, whose paths
# argv and environment name already; status: the session's status before it connects.
Launch = namedtuple("Launch", "adapter argv environment files status")


def probe(executable: str) -> str:
    """What the program says of itself, in time; "" when that is nothing. No process of it goes on."""
    try:
        said = said_by([executable, "--help"], timeout_s=PROBE_TIMEOUT_S, max_bytes=MAX_HELP_BYTES)
    except CtlError:
        return ""
    return said.decode("utf-8", "replace")


def find(agent: str, custom: list[str] | None, which=find_program) -> list[str]:
    """The argv that starts an agent, its executable as an absolute path.

    `custom` is the user's own command for the agent "custom". Raises CtlError.
    """
    if agent == "custom" and not custom:
        raise CtlError(
            "No custom agent is configured.",
            'Set "customAgent": {"executable": "...", "args": []} in agent-tools/preferences.json.',
        )
    words = custom if agent == "custom" and custom else [agent]
    path = which(words[0])
    if not path:
        raise CtlError(
            f"{words[0]} is not installed, or not on the host's PATH.", "Install it, or launch another agent."
        )
    return [path, *words[1:]]


def plan(
    agent: str, argv: list[str], help_text: str, bridge: list[str], folder: str, guide: str, environment
) -> Launch:
    """How to start an agent so that it reaches its tools.

    `bridge` is the argv of our MCP server for the node's session, `folder` the node's
    launch folder, `guide` the overview guide, `environment` what the agent would inherit.
    """
    if agent == "claude" and _offers(help_text, "--mcp-config", "--append-system-prompt"):
        path = f"{folder}/mcp.json"
        servers = {"mcpServers": {MCP_SERVER: {"type": "stdio", "command": bridge[0], "args": bridge[1:]}}}
        words = [*argv, "--mcp-config", path, "--append-system-prompt", guide]
        return _with_mcp("claude", words, {}, {"mcp.json": json.dumps(servers)})
    if agent == "codex" and _offers(help_text, "--config", "mcp"):
        # A JSON string is a TOML string, too.
        command = f"mcp_servers.{MCP_SERVER}.command={json.dumps(bridge[0])}"
        args = f"mcp_servers.{MCP_SERVER}.args={json.dumps(bridge[1:])}"
        return _with_mcp("codex", [*argv, "-c", command, "-c", args], {}, {})
    if agent == "opencode" and _offers(help_text, "opencode", "mcp"):
        variable = _free_variable(environment)
        if variable:
            entry = {"type": "local", "command": bridge, "enabled": True}
            text = json.dumps({"mcp": {MCP_SERVER: entry}})
            value = text if variable == "OPENCODE_CONFIG_CONTENT" else f"{folder}/opencode.json"
            return _with_mcp("opencode", argv, {variable: value}, {"opencode.json": text})
    if agent == "opencode" and _offers(help_text, "--prompt"):
        return _with_prompt("opencode", [*argv, "--prompt", _first_prompt(folder)])
    if agent in PROMPT_AGENTS and _offers(help_text, "--prompt-interactive"):
        return _with_prompt(agent, [*argv, "--prompt-interactive", _first_prompt(folder)])
    name = f"{agent}-unverified"
    reason = "Its help names no way to give it tools or instructions; tell it to read TERMSPRAWL_SYSTEM_PROMPT_FILE"
    return Launch(name, argv, {}, {}, {"state": "needs-setup", "adapter": name, "reason": reason})


def connected(status: dict) -> dict | None:
    """The status after a session_info call; None when it does not change."""
    if status.get("state") == "connected" or not str(status.get("adapter", "")).endswith("-mcp"):
        return None
    return {"state": "connected", "adapter": status["adapter"]}


def _offers(help_text: str, *words: str) -> bool:
    return all(word in help_text for word in words)


def _free_variable(environment) -> str | None:
    """A variable of opencode's that the user has no use for; each of them holds one value only.

    The user's own content is never merged into ours: it may hold keys, and a tmux command
    line is readable for all users of the machine.
    """
    for name in ("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"):
        if not environment.get(name):
            return name
    return None


def _with_mcp(agent: str, argv: list[str], environment: dict, files: dict) -> Launch:
    name = f"{agent}-mcp"
    status = {"state": "needs-setup", "adapter": name, "reason": "Waiting for its MCP client to connect"}
    return Launch(name, argv, environment, files, status)


def _with_prompt(agent: str, argv: list[str]) -> Launch:
    name = f"{agent}-cli"
    return Launch(
        name, argv, {}, {}, {"state": "cli-fallback", "adapter": name, "reason": "Use the CLI in TERMSPRAWL_CTL"}
    )


def _first_prompt(folder: str) -> str:
    return (
        f"Read {folder}/termsprawl-system.md: it explains the terminal canvas that you run in. "
        "Then wait for my first task; do nothing else yet."
    )
