"""Operations on the canvas: they change the project file, which is all that there is to see here."""

from __future__ import annotations

from ..canvas import model, project_file
from .nodes import new_id


def canvas_list(host, caller, _args) -> dict:
    document = project_file.load(host.projects.folder(caller.project_id))
    return {"projectId": caller.project_id, "rev": document.get("rev", 0), "nodes": document["nodes"]}


def canvas_select(host, caller, args) -> dict:
    _change(host, caller, lambda document: model.select(document, args["nodeIds"]))
    return {"nodeIds": list(dict.fromkeys(args["nodeIds"]))}


def canvas_move(host, caller, args) -> dict:
    position = _change(host, caller, lambda document: model.move(document, args["nodeId"], args["x"], args["y"]))
    return {"nodeId": args["nodeId"], "position": position}


def canvas_resize(host, caller, args) -> dict:
    size = _change(host, caller, lambda document: model.resize(document, args["nodeId"], args["width"], args["height"]))
    return {"nodeId": args["nodeId"], "style": size}


def canvas_group(host, caller, args) -> dict:
    group_id = new_id("g")
    title = args.get("title") or "Group"
    frame = _change(host, caller, lambda document: model.group(document, group_id, args["nodeIds"], title))
    return {"nodeId": group_id, "position": frame["position"], "style": frame["style"]}


def sticky_open(host, caller, args) -> dict:
    node_id = new_id()
    _change(host, caller, lambda document: model.add_sticky(document, node_id, args["text"]))
    return {"nodeId": node_id}


def _change(host, caller, edit):
    return project_file.change(host.projects.folder(caller.project_id), edit)
