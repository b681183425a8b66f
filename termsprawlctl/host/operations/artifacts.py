"""Showing files on the canvas."""

from __future__ import annotations

from typing import Any

from ..canvas import artifacts, model, project_file
from .binding import Arguments, Caller, HostContext, handles
from .nodes import new_id


@handles("artifact_open")
def artifact_open(host: HostContext, caller: Caller, args: Arguments) -> dict[str, Any]:
    folder = host.projects.folder(caller.project_id)
    as_diff = args.get("view") == "diff"
    path = artifacts.resolve(args["path"], folder, as_diff=as_diff)
    node_id = new_id()
    add = model.add_diff if as_diff else model.add_editor
    project_file.change(folder, lambda document: add(document, node_id, path))
    return {"nodeId": node_id, "path": path}
