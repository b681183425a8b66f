"""Operations on the canvas."""

from __future__ import annotations

from .. import canvas


def canvas_list(host, caller, _args) -> dict:
    document = canvas.load(host.projects.folder(caller.project_id))
    return {"projectId": caller.project_id, "rev": document.get("rev", 0), "nodes": document["nodes"]}
