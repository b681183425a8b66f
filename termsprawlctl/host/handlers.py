"""What each operation does here: functions of (host, session, args) that return the value.

A CtlError is the tool's answer "no"; its text is for the agent.
"""

from __future__ import annotations

import os

from .. import __version__
from ..errors import CtlError
from ..layout import is_id
from ..session import guides
from . import canvas
from .projects import CLI_STATUS, operator_node
from .terminals import DEFAULT_READ_CHARS, MAX_READ_CHARS


class ToolRefusal(CtlError):
    """The operation is understood and refused."""


def session_info(host, session, _args) -> dict:
    return {
        "nodeId": session.node_id,
        "projectId": session.project_id,
        "instanceId": host.instance_id,
        "host": "local",
        "status": session.status,
        "appVersion": f"termsprawlctl {__version__}",
        "preferencesFile": host.paths.preferences,
        "guidesDirectory": host.paths.guides,
        "browserEnabled": False,
        "operations": list(HANDLERS),
    }


def guide_read(_host, _session, args) -> dict:
    return {"topic": args["topic"], "text": guides.read(args["topic"])}


def canvas_list(host, session, _args) -> dict:
    document = canvas.load(host.projects.folder(session.project_id))
    return {"projectId": session.project_id, "rev": document.get("rev", 0), "nodes": document["nodes"]}


def agent_status(host, session, _args) -> dict:
    alive = host.terminals.alive()
    person = operator_node(session.project_id)
    agents = [
        {"nodeId": other.node_id, "status": other.status, "running": other.node_id in alive}
        for other in host.sessions.all()
        if other.project_id == session.project_id and other.node_id != person
    ]
    return {"nodeId": session.node_id, "status": session.status, "agents": agents}


def terminal_open(host, session, args) -> dict:
    folder = host.projects.folder(session.project_id)
    canvas.load(folder)  # a project file that cannot be written to later has to stop this first
    node_id = f"n-{os.urandom(6).hex()}"
    host.sessions.provision(node_id, session.project_id, CLI_STATUS)
    try:
        environment = host.node_environment(node_id, session.project_id)
        host.terminals.open(node_id, session.project_id, folder, environment)
        with canvas.changing(folder) as document:
            canvas.add_terminal(document, node_id, args.get("title") or "Terminal", folder)
    except BaseException:
        host.terminals.kill(node_id)
        host.forget_node(node_id, session.project_id)
        raise
    return {"nodeId": node_id}


def terminal_read(host, session, args) -> dict:
    node_id = _terminal(host, session, args)
    max_chars = args.get("maxChars", DEFAULT_READ_CHARS)
    return {"nodeId": node_id, "output": host.terminals.read(node_id, max(0, min(int(max_chars), MAX_READ_CHARS)))}


def terminal_submit(host, session, args) -> dict:
    node_id = _others_terminal(host, session, args)
    host.terminals.submit(node_id, args["command"])
    return {"nodeId": node_id, "delivered": True}


def terminal_input(host, session, args) -> dict:
    node_id = _others_terminal(host, session, args)
    host.terminals.type(node_id, args["text"])
    return {"nodeId": node_id, "delivered": True}


def terminal_interrupt(host, session, args) -> dict:
    node_id = _others_terminal(host, session, args)
    host.terminals.interrupt(node_id)
    return {"nodeId": node_id, "delivered": True}


def terminal_close(host, session, args) -> dict:
    node_id = _others_terminal(host, session, args, may_have_ended=True)
    # The file first: when it cannot be written, the terminal stays whole.
    with canvas.changing(host.projects.folder(session.project_id)) as document:
        canvas.remove(document, node_id)
    # A project file may name a node of another project (a copied folder does).
    if host.terminals.project_of(node_id) == session.project_id:
        host.terminals.kill(node_id)
    host.forget_node(node_id, session.project_id)
    return {"nodeId": node_id, "closed": True}


# In the table's order. What stands in the table but not here is not supported yet.
HANDLERS = {
    function.__name__: function
    for function in (
        session_info,
        guide_read,
        canvas_list,
        terminal_open,
        terminal_read,
        terminal_submit,
        terminal_input,
        terminal_interrupt,
        terminal_close,
        agent_status,
    )
}


def run(host, session, operation: str, args: dict) -> object:
    """Run a validated operation for a session. Raises CtlError."""
    handler = HANDLERS.get(operation)
    if handler is None and operation.startswith("browser_"):
        raise ToolRefusal("This host has no browser.", "session_info lists the operations that it offers.")
    if handler is None:
        raise ToolRefusal(
            f"{operation} is not supported by this host yet.", "session_info lists the operations that it offers."
        )
    return handler(host, session, args)


def _terminal(host, session, args, *, may_have_ended: bool = False) -> str:
    """The id of a terminal of this project. Raises ToolRefusal."""
    node_id = args["nodeId"]
    if is_id(node_id) and host.terminals.project_of(node_id) == session.project_id:
        return node_id
    node = canvas.find(canvas.load(host.projects.folder(session.project_id)), node_id)
    if node is None:
        raise ToolRefusal(f"Unknown node: {node_id}.", "canvas_list lists the nodes of this project.")
    if node.get("type") != "terminal":
        raise ToolRefusal(f"Node {node_id} is not a terminal.", "canvas_list tells the type of each node.")
    if may_have_ended:
        return node_id
    raise ToolRefusal(
        f"The terminal {node_id} has ended: its tmux session is gone.",
        "Open a new one with terminal_open; terminal_close removes this one.",
    )


def _others_terminal(host, session, args, *, may_have_ended: bool = False) -> str:
    """Like _terminal(), and not the caller's own: an agent may look at itself, not steer itself."""
    if args["nodeId"] == session.node_id:
        raise ToolRefusal(
            "This is your own terminal: you may read it, but not type into it or close it.",
            "Open another one with terminal_open.",
        )
    return _terminal(host, session, args, may_have_ended=may_have_ended)
