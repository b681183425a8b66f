"""The agent CLIs by name; the file of each is imported only when it is needed."""

from __future__ import annotations

import importlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..model.turn import Turn
    from .cli import AgentCli

# One file each in this folder, in the order in which they are shown. The lists are what the
# files say, kept here because a server names its tools before it loads any of them; a test compares.
NAMES = ("codex", "opencode", "claude", "gemini")
ACP_NAMES = ("copilot", "qwen")  # these speak the Agent Client Protocol only
TAKES_EFFORT = ("codex", "claude")
ANY = "acp"  # any agent that speaks it, by its command
VIA = (ANY,)
MAX_NAME = 64


def names() -> list[str]:
    """All that can be run here: ours, the person's own, and `acp`."""
    return [*NAMES, *ACP_NAMES, *own_names(os.environ), ANY]


def agent_cli(name: str, via: str = "", command: list[str] | None = None) -> AgentCli:
    """The record of this name. `command` starts the agent called `acp`. Raises UsageError."""
    from ...base.errors import UsageError

    if name == ANY:
        from .acp import AcpCli

        if not command:
            raise UsageError("acp needs the agent's command.", "Write it behind --, as in: acp -- my-agent --acp")
        return AcpCli(os.path.basename(command[0]), command)
    if name in NAMES or name in ACP_NAMES:
        found: AgentCli = importlib.import_module(f".{name}", __package__).CLI
        if via != ANY or found.conversational:
            return found
        from .acp import AcpCli

        # The executable of an adapter is installed apart from the CLI itself.
        own = found.acp[0] == found.executable
        install = "" if own else f"Install {found.acp[0]}, the adapter of {name} for ACP, with npm."
        return AcpCli(name, list(found.acp), install=install, native=found)
    return own_agent(name, os.environ)


def launchable(name: str) -> AgentCli | None:
    """The record of a program of this name, which may be an alias; None where nothing is known of it."""
    if name in NAMES:
        return agent_cli(name)
    return next((cli for cli in map(agent_cli, NAMES) if name in cli.aliases), None)


def recent_turns(environment: Mapping[str, str], node_id: str, pids: list[int], folder: str) -> list[Turn]:
    """AgentCli.recent_turns() of the first that has a conversation there."""
    for name in NAMES:
        turns = agent_cli(name).recent_turns(environment, node_id, pids, folder)
        if turns:
            return turns
    return []


# --- a person's own: $XDG_CONFIG_HOME/termsprawlctl/agents/NAME.json -----------------------


def own_folder(environment: Mapping[str, str]) -> str:
    """Where the files of a person's own agents are."""
    config = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):
        config = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(config, "termsprawlctl", "agents")


def own_names(environment: Mapping[str, str]) -> list[str]:
    """The names of a person's own agents, whether their files are right or not."""
    try:
        found = sorted(os.listdir(own_folder(environment)))
    except OSError:
        return []
    ours = (*NAMES, *ACP_NAMES, ANY)
    stems = [name[: -len(".json")] for name in found if name.endswith(".json")]
    return [stem for stem in stems if stem not in ours and _is_name(stem)]


def _is_name(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "")
    return bool(plain) and plain.isascii() and plain.isalnum() and text[0].isalnum() and len(text) <= MAX_NAME


def own_agent(name: str, environment: Mapping[str, str]) -> AgentCli:
    """The agent of `{"acp": [WORD...], "env": {NAME: VALUE}}`. Raises UsageError."""
    from ...base.errors import UsageError
    from ...base.files import read_object
    from .acp import AcpCli

    path = os.path.join(own_folder(environment), f"{name}.json")
    shape = '{"acp": ["my-agent", "--acp"], "env": {"NAME": "value"}}'
    try:
        content = read_object(path) if _is_name(name) else {}
    except FileNotFoundError:
        known = ", ".join(names())
        raise UsageError(f"there is no agent {name!r}. Known: {known}.", f"Or write {path}: {shape}") from None
    except (OSError, ValueError) as problem:
        reason = f": {problem.strerror}" if isinstance(problem, OSError) else f" {problem}"
        raise UsageError(f"{path}{reason}.", f"Write it like this: {shape}") from None
    words, variables = content.get("acp"), content.get("env", {})
    if not (isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)):
        raise UsageError(f'{path}: "acp" has to be the command, a list of words.', f"Write it like this: {shape}")
    if not (isinstance(variables, dict) and all(isinstance(value, str) for value in variables.values())):
        raise UsageError(f'{path}: "env" has to be an object of texts.', f"Write it like this: {shape}")
    return AcpCli(name, words, environment=variables)
