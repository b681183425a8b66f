"""Operations on the session itself: who am I, what can I do here, how is it done."""

from __future__ import annotations

import contextlib
from typing import Any

from ... import __version__
from ...base.errors import CtlError
from ...operations import guides
from .binding import Arguments, Caller, HostContext, ToolRefusal, handles


@handles("session_info")
def session_info(host: HostContext, caller: Caller, _args: Arguments) -> dict[str, Any]:
    status = caller.status.after_a_call()
    if status != caller.status:
        try:
            caller = host.sessions.set_status(caller.node_id, status)
        except KeyError:  # another process took the file away since the token was checked
            raise ToolRefusal("This session has just ended.", "Launch a new agent.") from None
    place = {}
    with contextlib.suppress(CtlError):  # the folder is gone; terminal_open says so
        place["projectFolder"] = host.projects.folder(caller.project_id)
    return {
        "nodeId": caller.node_id,
        "projectId": caller.project_id,
        **place,
        "instanceId": host.instance_id,
        "host": "local",
        "status": caller.status.as_json(),
        "appVersion": f"termsprawlctl {__version__}",
        "preferencesFile": host.paths.preferences,
        "guidesDirectory": host.paths.guides,
        "browserEnabled": False,
        "operations": list(host.operations),
    }


@handles("guide_read")
def guide_read(_host: HostContext, _caller: Caller, args: Arguments) -> str:
    return guides.read(args["topic"])
