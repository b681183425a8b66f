"""Operations on the canvas: they change the project file, which is all that there is to see here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..canvas import model, project_file
from .binding import Arguments, Caller, Encoded, HostContext, handles
from .nodes import new_id


@handles("canvas_list")
def canvas_list(host: HostContext, caller: Caller, _args: Arguments) -> Encoded:
    """The nodes as they stand in the file; a terminal that another program runs, or that has ended, says so."""
    ours = {one.node_id for one in host.sessions.all() if one.project_id == caller.project_id}
    return Encoded(project_file.snapshot(host.projects.folder(caller.project_id)).answer(ours, host.ended_nodes()))


@handles("canvas_select")
def canvas_select(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    """Nothing is written: a selection is part of a view, and there is none here."""
    document = project_file.load(host.projects.folder(caller.project_id))
    return {"nodeIds": [node["id"] for node in model.nodes(document, args["nodeIds"])]}


@handles("canvas_move")
def canvas_move(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    position = _change(host, caller, lambda document: model.move(document, args["nodeId"], args["x"], args["y"]))
    return {"nodeId": args["nodeId"], "position": position}


@handles("canvas_resize")
def canvas_resize(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    size = _change(host, caller, lambda document: model.resize(document, args["nodeId"], args["width"], args["height"]))
    return {"nodeId": args["nodeId"], "style": size}


@handles("canvas_group")
def canvas_group(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    group_id = new_id("g")
    title = args.get("title") or "group"
    frame = _change(host, caller, lambda document: model.group(document, group_id, args["nodeIds"], title))
    members = list(dict.fromkeys(args["nodeIds"]))
    return {"nodeId": group_id, "nodeIds": members, "position": frame["position"], "style": frame["style"]}


@handles("sticky_open")
def sticky_open(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    node_id = new_id()
    _change(host, caller, lambda document: model.add_sticky(document, node_id, args["text"]))
    return {"nodeId": node_id}


def _change(host: HostContext, caller: Caller, edit: Callable[[dict[str, Any]], Any]) -> Any:
    return project_file.change(host.projects.folder(caller.project_id), edit, is_synced=False)
