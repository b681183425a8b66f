"""Operations on the session itself: who am I, what can I do here, how is it done."""

from __future__ import annotations

from ... import __version__
from ...session import guides
from ..projects import operator_node


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
        "operations": list(host.operations),
    }


def guide_read(_host, _session, args) -> dict:
    return {"topic": args["topic"], "text": guides.read(args["topic"])}


def agent_status(host, session, _args) -> dict:
    alive = host.terminals.alive()
    person = operator_node(session.project_id)
    agents = [
        {"nodeId": other.node_id, "status": other.status, "running": other.node_id in alive}
        for other in host.sessions.all()
        if other.project_id == session.project_id and other.node_id != person
    ]
    return {"nodeId": session.node_id, "status": session.status, "agents": agents}
