"""How each coding agent is given its tools: chosen by name, and by what its own help says.

Pure, apart from probe(), which runs `EXECUTABLE --help`. A name alone proves nothing:
an older version, or another program of that name, may not know the options.
"""

from __future__ import annotations

from collections import namedtuple

from ...agents.clis.cli import LaunchPlan, Surroundings
from ...agents.clis.registry import launchable
from ...base.errors import CtlError
from ...base.processes import find_program, said_by

PROBE_TIMEOUT_S = 3.0
MAX_HELP_BYTES = 1 << 20  # of a program that never stops talking

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
    cli = launchable(agent)
    found = cli and cli.launch(Surroundings(argv, help_text, bridge, folder, guide, environment))
    if found:
        return _with_mcp(agent, found) if found.mcp else _with_prompt(agent, found)
    name = f"{agent}-unverified"
    reason = "Its help names no way to give it tools or instructions; tell it to read TERMSPRAWL_SYSTEM_PROMPT_FILE"
    return Launch(name, argv, {}, {}, {"state": "needs-setup", "adapter": name, "reason": reason})


def connected(status: dict) -> dict | None:
    """The status after a session_info call; None when it does not change."""
    if status.get("state") == "connected" or not str(status.get("adapter", "")).endswith("-mcp"):
        return None
    return {"state": "connected", "adapter": status["adapter"]}


def _with_mcp(agent: str, found: LaunchPlan) -> Launch:
    name = f"{agent}-mcp"
    status = {"state": "needs-setup", "adapter": name, "reason": "Waiting for its MCP client to connect"}
    return Launch(name, found.argv, found.environment, found.files, status)


def _with_prompt(agent: str, found: LaunchPlan) -> Launch:
    name = f"{agent}-cli"
    status = {"state": "cli-fallback", "adapter": name, "reason": "Use the CLI in TERMSPRAWL_CTL"}
    return Launch(name, found.argv, found.environment, found.files, status)
