"""Which nodes a caller may use: its project's, and its own only to look at."""

from __future__ import annotations

from ...errors import CtlError
from ...layout import is_id
from .. import canvas


class ToolRefusal(CtlError):
    """The operation is understood and refused; the text is for the agent."""


def terminal(host, session, args, *, may_have_ended: bool = False) -> str:
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


def others_terminal(host, session, args, *, may_have_ended: bool = False) -> str:
    """Like terminal(), and not the caller's own: an agent may look at itself, not steer itself."""
    if args["nodeId"] == session.node_id:
        raise ToolRefusal(
            "This is your own terminal: you may read it, but not type into it or close it.",
            "Open another one with terminal_open.",
        )
    return terminal(host, session, args, may_have_ended=may_have_ended)
