"""How each coding agent is given its tools: chosen by name, and by what its own help says.

Pure, apart from probe(), which runs `EXECUTABLE --help`. A name alone proves nothing:
an older version, or another program of that name, may not know the options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...agents.clis.cli import LaunchPlan, Surroundings
from ...agents.clis.registry import launchable
from ...base.errors import CtlError
from ...base.processes import find_program, said_by
from ..registry.status import CLI, CLI_FALLBACK, MCP, NEEDS_SETUP, UNVERIFIED, Adapter, Status

PROBE_TIMEOUT_S = 3.0
MAX_HELP_BYTES = 1 << 20  # of a program that never stops talking


@dataclass(frozen=True)
class Launch:
    """How an agent is started: the whole argv, what else its environment needs, and its status before it connects.

    `files` are names and texts to be written to the node's launch folder, whose paths argv and environment name.
    """

    argv: list[str]
    status: Status
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def probe(executable: str) -> str:
    """What the program says of itself, in time; "" when that is nothing. No process of it goes on."""
    try:
        output = said_by([executable, "--help"], timeout_s=PROBE_TIMEOUT_S, max_bytes=MAX_HELP_BYTES)
    except CtlError:
        return ""
    return output.decode("utf-8", "replace")


def find(agent: str, custom: list[str] | None, which: Callable[[str], str | None] = find_program) -> list[str]:
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
    program: str,
    argv: list[str],
    help_text: str,
    bridge: list[str],
    folder: str,
    guide: str,
    environment: Mapping[str, str],
) -> Launch:
    """How to start an agent so that it reaches its tools.

    `bridge` is the argv of our MCP server for the node's session, `folder` the node's
    launch folder, `guide` the overview guide, `environment` what the agent would inherit.
    """
    cli = launchable(program)
    found = cli and cli.launch(Surroundings(argv, help_text, bridge, folder, guide, environment))
    if found:
        return _as_planned(program, found)
    reason = "Its help names no way to give it tools or instructions; tell it to read TERMSPRAWL_SYSTEM_PROMPT_FILE"
    return Launch(argv, Status(NEEDS_SETUP, Adapter(program, UNVERIFIED), reason=reason))


def _as_planned(program: str, found: LaunchPlan) -> Launch:
    if found.mcp:
        status = Status(NEEDS_SETUP, Adapter(program, MCP), reason="Waiting for its MCP client to connect")
    else:
        status = Status(CLI_FALLBACK, Adapter(program, CLI), reason="Use the CLI in TERMSPRAWL_CTL")
    return Launch(found.argv, status, found.environment, found.files)
