"""Launching agents, and how they are connected."""

from __future__ import annotations

import os
from typing import Any

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
    argv = adapters.find(agent, _custom_command(host))
    # A custom agent may be one of the known ones, at another place or with arguments.
    program = os.path.basename(argv[0]) if agent == "custom" else agent

    def ask() -> InTurn:
        # It may take seconds to tell nothing.
        text = adapters.probe(argv[0])
        return InTurn(lambda: _launch(host, caller, agent, program, argv, text))

    return Later(ask)


def _launch(
    host: HostContext, caller: Caller, agent: str, program: str, argv: list[str], help_text: str
) -> dict[str, Any]:
    with new_node(host, caller) as node:
        environment = host.prepare_node(node.id, caller.project_id)
        folder = os.path.dirname(environment["TERMSPRAWL_SYSTEM_PROMPT_FILE"])
        bridge = own_argv("mcp", "--session", environment["TERMSPRAWL_SESSION_FILE"])
        launch = adapters.plan(program, argv, help_text, bridge, folder, host.overview, os.environ)
        for name, content in launch.files.items():
            write_atomically(os.path.join(folder, name), content.encode())
        host.sessions.provision(node.id, caller.project_id, launch.status)
        # The PATH of now: the tmux server may have been started with another one.
        environment = {**environment, **launch.environment, "PATH": os.environ.get("PATH", os.defpath)}
        environment, words = launching.fit_into_command(folder, environment, launch.argv)
        host.terminals.open(node.id, caller.project_id, node.folder, environment, words)

        def add(document: dict[str, Any]) -> None:
            model.add_agent(document, node.id, agent, argv[0] if agent == "custom" else agent, node.folder)

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


def _custom_command(host: HostContext) -> list[str] | None:
    """The user's own agent of preferences.json, or None. Raises CtlError when it is not of the right shape."""
    custom = host.preferences().get("customAgent")
    if custom is None:
        return None
    executable = custom.get("executable") if isinstance(custom, dict) else None
    words = custom.get("args", []) if isinstance(custom, dict) else None
    if (
        not isinstance(executable, str)
        or not executable
        or not isinstance(words, list)
        or not all(map(is_word, [executable, *words]))
    ):
        raise CtlError('customAgent in preferences.json has to be {"executable": "...", "args": ["..."]}.')
    return [executable, *words]
