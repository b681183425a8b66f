"""Operations on the session itself: who am I, what can I do here, how is it done."""

from __future__ import annotations

from ... import __version__
from ...operations import guides
from ..launch import adapters
from .nodes import ToolRefusal


def session_info(host, caller, _args) -> dict:
    status = adapters.connected(caller.status)
    if status is not None:
        try:
            caller = host.sessions.set_status(caller.node_id, status)
        except KeyError:  # another process took the file away since the token was checked
            raise ToolRefusal("This session has just ended.", "Launch a new agent.") from None
    return {
        "nodeId": caller.node_id,
        "projectId": caller.project_id,
        "instanceId": host.instance_id,
        "host": "local",
        "status": caller.status,
        "appVersion": f"termsprawlctl {__version__}",
        "preferencesFile": host.paths.preferences,
        "guidesDirectory": host.paths.guides,
        "browserEnabled": False,
        "operations": list(host.operations),
    }


def guide_read(_host, _caller, args) -> dict:
    return {"topic": args["topic"], "text": guides.read(args["topic"])}
