"""How each coding agent is given its tools: chosen by name, and by what its own help says.

Pure, apart from probe(), which runs `EXECUTABLE --help`. A name alone proves nothing:
an older version, or another program of that name, may not know the options.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ...agents.clis.cli import LaunchPlan, Surroundings
from ...agents.clis.registry import launchable
from ...base.errors import CtlError
from ...base.processes import find_program, output_of
from ..registry.status import CLI, CLI_FALLBACK, MCP, NEEDS_SETUP, UNVERIFIED, Adapter, Status

# Gemini needs 2 s of computing for its help, on a busy machine several times that; clients wait 45 s.
PROBE_TIMEOUT_S = 15.0
# A usage line that ends with a first prompt: `Usage: grok [options] [PROMPT]`.
_TAKES_PROMPT = re.compile(r"^\s*usage:.*\[prompt(?:\.\.\.)?\](?:\.\.\.)?\s*$", re.IGNORECASE | re.MULTILINE)
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
        output = output_of([executable, "--help"], timeout_s=PROBE_TIMEOUT_S, max_bytes=MAX_HELP_BYTES)
    except CtlError:
        return ""
    return output.decode("utf-8", "replace")


@dataclass(frozen=True)
class Custom:
    """The user's own agent: its command, and the option that it takes instructions with, or ""."""

    command: list[str]
    instruction_flag: str = ""


def find(agent: str, custom: Custom | None, which: Callable[[str], str | None] = find_program) -> list[str]:
    """The argv that starts an agent, its executable as an absolute path.

    `custom` is the user's own command for the agent "custom". Raises CtlError.
    """
    if agent == "custom" and not custom:
        raise CtlError(
            "No custom agent is configured.",
            'Set "custom": {"executable": "..."} in agent-tools/preferences.json.',
        )
    words = custom.command if agent == "custom" and custom else [agent]
    path = which(words[0])
    if not path:
        raise CtlError(
            f"{words[0]} is not installed, or not on the host's PATH.", "Install it, or launch another agent."
        )
    return [path, *words[1:]]


def plan(program: str, around: Surroundings, instruction_flag: str = "") -> Launch:
    """How to start an agent so that it reaches its tools.

    `instruction_flag` is the option that the user says it takes instructions with.
    """
    cli = launchable(program)
    found = cli and cli.launch(around)
    if not found and instruction_flag:
        found = LaunchPlan([*around.argv, instruction_flag, around.guide], mcp=False)
    if not found and _TAKES_PROMPT.search(around.help_text):
        found = LaunchPlan([*around.argv, around.first_prompt()], mcp=False)
    if found:
        return _as_planned(program, found)
    reason = "Its help names no way to give it tools or instructions; tell it to read TERMSPRAWL_SYSTEM_PROMPT_FILE"
    return Launch(around.argv, Status(NEEDS_SETUP, Adapter(program, UNVERIFIED), reason=reason))


def _as_planned(program: str, found: LaunchPlan) -> Launch:
    if found.mcp:
        status = Status(NEEDS_SETUP, Adapter(program, MCP), reason="Waiting for its MCP client to connect")
    else:
        status = Status(CLI_FALLBACK, Adapter(program, CLI), reason="Use the CLI in TERMSPRAWL_CTL")
    return Launch(found.argv, status, found.environment, found.files)
