"""Showing files on the canvas."""

from __future__ import annotations

from ..canvas import artifacts, model, project_file
from .nodes import new_id


def artifact_open(host, caller, args) -> dict:
    folder = host.projects.folder(caller.project_id)
    path = artifacts.resolve(args["path"], folder)
    node_id = new_id()
    add = model.add_diff if args.get("view") == "diff" else model.add_editor
    project_file.change(folder, lambda document: add(document, node_id, path))
    return {"nodeId": node_id, "path": path}
