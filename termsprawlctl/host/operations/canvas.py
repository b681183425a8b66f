"""Operations on the canvas."""

from __future__ import annotations

from .. import canvas


def canvas_list(host, session, _args) -> dict:
    document = canvas.load(host.projects.folder(session.project_id))
    return {"projectId": session.project_id, "rev": document.get("rev", 0), "nodes": document["nodes"]}
