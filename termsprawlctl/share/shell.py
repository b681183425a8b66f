"""The bodies of `termsprawlctl tui ...`: one function an action, from arguments to exit status."""

from __future__ import annotations

import os
import uuid

from ..base import console, jsontext
from ..base.errors import FAILED, OK, UsageError
from . import client, endpoint, wire


def context(args) -> int:
    """Print the answer to get_view_context as JSON."""
    endpoint.load(args.endpoint)
    return _print(client.call(args.endpoint, wire.GetViewContext()))


def select(args) -> int:
    """Read the view, then ask for the session; prints the answer with the requestId that was used."""
    if not wire.is_session_id(args.session_id):
        raise UsageError(f"{args.session_id} is no session id.", "Take one from `termsprawlctl tui sessions`: ses_...")
    endpoint.load(args.endpoint)
    seen = client.call(args.endpoint, wire.GetViewContext())
    if seen["status"] == wire.REJECTED:
        return _print(seen)
    view = seen["context"]
    request_id = str(uuid.uuid4())
    # Before it is sent: whoever has to find out later what came of it needs the id.
    console.err(f"requestId {request_id}, from revision {view['revision']}")
    answer = client.call(
        args.endpoint,
        wire.SelectSession(request_id, view["instanceId"], view["generation"], view["revision"], args.session_id),
    )
    status = _print({**answer, "requestId": request_id})
    if answer.get("code") in (wire.TIMEOUT_UNKNOWN, wire.OUTCOME_UNKNOWN):
        console.err(
            "It is not known whether the session was switched. Look before you select again: "
            f"termsprawlctl tui context --endpoint {args.endpoint} (done when its sessionId is {args.session_id})"
        )
    return status


def share(args) -> int:
    """Share a tmux client until it is revoked or ends."""
    endpoint.require_posix()
    from . import process, tmux_server

    tmux = tmux_server.open_server(args.socket_path, args.server_name)
    here = args.socket_path is None and args.server_name is None
    pane = os.environ.get("TMUX_PANE") if here and tmux_server.surrounding_socket(os.environ) else None
    return process.run(tmux, tmux_server.find_client(tmux, args.client, pane), with_bar=args.bar)


def sessions(args) -> int:
    """Print id and name of each session, one a line or as JSON."""
    endpoint.require_posix()
    from . import tmux_server

    found = tmux_server.list_sessions(tmux_server.open_server(args.socket_path, args.server_name))
    if args.json:
        console.out(jsontext.pretty([{"sessionId": key, "name": name} for key, (_, name) in found.items()]) + "\n")
    else:
        console.out("".join(f"{key}\t{name}\n" for key, (_, name) in found.items()))
    return OK


def revoke(args) -> int:
    """End a share; also clears away what a killed one left."""
    endpoint.require_posix()
    from . import directory

    path = os.path.abspath(args.path)
    console.out(
        "revoked\n" if directory.revoke(path) else "nobody was sharing there any more; its directory is removed\n"
    )
    return OK


def bar(args) -> int:
    """The process in the bar's pane."""
    from . import bar as the_bar
    from .tmux_server import open_server

    tmux = open_server(args.socket_path, None)
    was = "" if args.mouse_was == "unset" else args.mouse_was
    return the_bar.run(args.path, tmux, os.environ.get("TMUX_PANE"), the_bar.MouseOption(tmux, args.in_session, was))


def _print(answer: dict) -> int:
    console.out(jsontext.pretty(answer) + "\n")
    return FAILED if answer["status"] == wire.REJECTED else OK
