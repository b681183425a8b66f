"""Launching agents, and how they are connected."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ...agents.clis.cli import Surroundings
from ...base.errors import CtlError
from ...base.files import write_atomically
from ...base.processes import is_word
from ...base.program import own_argv
from ..canvas import model, project_file
from ..launch import adapters, launching
from ..registry.projects import operator_node
from .binding import Arguments, Caller, HostContext, handles
from .nodes import new_node
from .ordering import InTurn, Later


@handles("agent_launch")
def agent_launch(host: HostContext, caller: Caller, args: Arguments) -> Later:
    agent = args["agent"]
    custom = _custom(host) if agent == "custom" else None
    argv = adapters.find(agent, custom)
    # A custom agent may be one of the known ones, at another place or with arguments.
    program = os.path.basename(argv[0]) if agent == "custom" else agent

    def ask() -> InTurn:
        # It may take seconds to tell nothing.
        text = adapters.probe(argv[0])
        flag = custom.instruction_flag if custom else ""
        return InTurn(lambda: _launch(host, caller, _Program(agent, program, argv, text, flag)))

    return Later(ask)


@dataclass(frozen=True)
class _Program:
    """What is launched: the agent's id, its program's name, how to start it, its help, its option for instructions."""

    agent: str
    name: str
    argv: list[str]
    help_text: str
    instruction_flag: str


def _launch(host: HostContext, caller: Caller, what: _Program) -> dict[str, Any]:
    # Claude's conversations have UUIDs; one that is the node's is found again by it.
    with new_node(host, caller, is_uuid=what.name == "claude") as node:
        environment = host.prepare_node(node.id, caller.project_id)
        folder = os.path.dirname(environment["TERMSPRAWL_SYSTEM_PROMPT_FILE"])
        bridge = own_argv("mcp", "--session", environment["TERMSPRAWL_SESSION_FILE"])
        around = Surroundings(what.argv, what.help_text, bridge, folder, host.overview, os.environ, node.id)
        launch = adapters.plan(what.name, around, what.instruction_flag)
        for name, content in launch.files.items():
            write_atomically(os.path.join(folder, name), content.encode())
        host.sessions.provision(node.id, caller.project_id, launch.status)
        # The PATH of now: the tmux server may have been started with another one.
        environment = {**environment, **launch.environment, "PATH": os.environ.get("PATH", os.defpath)}
        environment, words = launching.fit_into_command(folder, environment, launch.argv)
        host.terminals.open(node.id, caller.project_id, node.folder, environment, words)

        def add(document: dict[str, Any]) -> None:
            model.add_agent(
                document, node.id, what.agent, what.argv[0] if what.agent == "custom" else what.agent, node.folder
            )

        project_file.change(node.folder, add)
    return {"nodeId": node.id}


@handles("agent_status")
def agent_status(host: HostContext, caller: Caller, _args: Arguments) -> list[dict[str, Any]]:
    """Every node of the project with a session, plain shells included: an agent may work in one."""
    alive = host.terminals.alive()
    person = operator_node(caller.project_id)
    return [
        {
            "nodeId": other.node_id,
            "projectId": other.project_id,
            "status": other.status.as_json(),
            "running": other.node_id in alive,
        }
        for other in host.sessions.all()
        if other.project_id == caller.project_id and other.node_id != person
    ]


def _custom(host: HostContext) -> adapters.Custom | None:
    """The user's own agent of preferences.json, or None. Raises CtlError when it is not of the right shape.

    `custom` as the app reads it, else `customAgent`, which takes arguments.
    """
    preferences = host.preferences()
    name = "custom" if preferences.get("custom") is not None else "customAgent"
    found = preferences.get(name)
    if found is None:
        return None
    known = found if isinstance(found, dict) else {}
    executable, flag, words = known.get("executable"), known.get("instructionFlag"), known.get("args", [])
    given = [executable, *words] if isinstance(words, list) else [None]
    if not executable or not all(map(is_word, given)) or not (flag is None or (flag and is_word(flag))):
        raise CtlError(
            f'{name} in preferences.json has to be {{"executable": "..."}}, with "instructionFlag": "..." where '
            'it has an option for instructions, and "args": ["..."] where it needs them.',
            "Correct it there.",
        )
    return adapters.Custom(given, flag or "")
