"""The agent CLIs by name; the file of each is imported only when it is needed."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cli import AgentCli

# One file each in this folder, in the order in which they are shown. Both lists are what the
# files say, kept here because a server names its tools before it loads any of them; a test compares.
NAMES = ("codex", "opencode", "claude", "gemini")
TAKES_EFFORT = ("codex", "claude")


def agent_cli(name: str) -> AgentCli:
    """The record of this name: what its file calls CLI."""
    found: AgentCli = importlib.import_module(f".{name}", __package__).CLI
    return found


def launchable(name: str) -> AgentCli | None:
    """The record of a program of this name, which may be an alias; None where nothing is known of it."""
    if name in NAMES:
        return agent_cli(name)
    return next((cli for cli in map(agent_cli, NAMES) if name in cli.aliases), None)
