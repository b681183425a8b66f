"""Which nodes a caller may use: its project's, and its own only to look at."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.errors import CtlError
from ...base.layout import is_id
from ...operations.schema import InvalidCall
from ..canvas import model, project_file
from ..registry.projects import operator_node
from ..terminals.panes import ended
from .binding import Arguments, Caller, HostContext, ToolRefusal


@dataclass(frozen=True)
class NewNode:
    """A node that is being made: its id, and its project's folder."""

    id: str
    folder: str


def new_id(kind: str = "n") -> str:
    """An id that no other node has."""
    return f"{kind}-{os.urandom(6).hex()}"


@contextlib.contextmanager
def new_node(host: HostContext, caller: Caller, *, is_uuid: bool = False) -> Iterator[NewNode]:
    """A NewNode to start something in; whatever fails in the block leaves nothing of it behind."""
    folder = host.projects.folder(caller.project_id)
    project_file.load(folder)  # a project file that cannot be written to later has to stop this first
    node_id = str(uuid.uuid4()) if is_uuid else new_id()
    try:
        yield NewNode(node_id, folder)
    except BaseException:
        try:
            host.terminals.kill(node_id)
        except CtlError as error:  # tmux does not answer, for example; the next host ends it
            host.log(f"terminal {node_id}, which was not wanted in the end, could not be ended ({error.message})")
        host.forget_node(node_id, caller.project_id)
        raise


def is_agent(host: HostContext, node_id: str) -> bool:
    """Whether a node was launched as an agent, so that its prompt is no shell's."""
    return any(one.node_id == node_id and one.status.adapter.is_agent for one in host.sessions.all())


def other_sessions(host: HostContext, caller: Caller) -> list[Caller]:
    """The sessions of the other nodes of the caller's project; a person is no node."""
    person = operator_node(caller.project_id)
    return [
        other
        for other in host.sessions.all()
        if other.project_id == caller.project_id and other.node_id not in (person, caller.node_id)
    ]


def terminal(host: HostContext, caller: Caller, args: Arguments, *, may_have_ended: bool = False) -> str:
    """The id of a terminal of this project. Raises ToolRefusal."""
    node_id = args["nodeId"]
    is_here = is_id(node_id) and host.terminals.project_of(node_id) == caller.project_id
    try:
        node = model.find(project_file.load(host.projects.folder(caller.project_id)), node_id)
    except CtlError:
        if is_here:  # it runs, whatever became of the project file
            return node_id
        raise
    ours = {node_id} if is_here else {one.node_id for one in host.sessions.all() if one.project_id == caller.project_id}
    if model.is_elsewhere(node, ours):
        raise ToolRefusal(
            f"The terminal {node_id} is run by another program (the app, for example) or for another project.",
            "Use it there; terminal_open opens one for this project.",
        )
    if is_here:
        return node_id
    if node is None:
        raise ToolRefusal(f"Unknown node: {node_id}.", "canvas_list lists the nodes of this project.")
    if node.get("type") != "terminal":
        raise ToolRefusal(f"Node {node_id} is not a terminal.", "canvas_list tells the type of each node.")
    if may_have_ended:
        return node_id
    raise ended(node_id)


def others_terminal(host: HostContext, caller: Caller, args: Arguments, *, may_have_ended: bool = False) -> str:
    """Like terminal(), and not the caller's own: an agent may look at itself, not steer itself."""
    if args["nodeId"] == caller.node_id:
        raise ToolRefusal(
            "This is your own terminal: you may read it, but not type into it or close it.",
            "Open another one with terminal_open.",
        )
    return terminal(host, caller, args, may_have_ended=may_have_ended)


def typed_text(args: Arguments, name: str) -> str:
    """An argument that a program will read as UTF-8; "" where it is not given.

    Raises InvalidCall for a lone surrogate, which JSON can hold and UTF-8 cannot: what
    was typed would not be what was asked for.
    """
    text: str = args.get(name, "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidCall(f"Invalid {name}") from None
    return text
