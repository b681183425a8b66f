"""Which tmux server and which of its clients a command means."""

from __future__ import annotations

import os

from ..base.errors import CtlError, UsageError
from ..base.tmux import Tmux, TmuxError, find, refuse_foreign_socket
from . import clients


def open_server(socket_path: str | None, server_name: str | None, environment=None) -> Tmux:
    """The named server, else the one that this runs in, else the user's default one.

    It is not asked anything. Raises UsageError without a tmux that will do, and for another
    user's server.
    """
    environment = os.environ if environment is None else environment
    try:
        binary = find()
    except CtlError as error:
        raise UsageError(error.message, error.remedy) from None
    if socket_path is not None:
        return _server_at(binary, os.path.abspath(socket_path))
    if server_name is not None:
        return Tmux(binary, "-L", server_name)
    around = surrounding_socket(environment)
    return _server_at(binary, around) if around else Tmux(binary)


def _server_at(binary: str, path: str) -> Tmux:
    try:
        refuse_foreign_socket(path)
    except CtlError as error:
        raise UsageError(error.message, error.remedy) from None
    return Tmux(binary, "-S", path)


def surrounding_socket(environment) -> str | None:
    """The socket of the server in whose pane this runs, out of TMUX (socket,pid,session; the path may hold commas)."""
    return environment.get("TMUX", "").rsplit(",", 2)[0] or None


def find_client(tmux: Tmux, named: str | None, pane: str | None) -> clients.Client:
    """The client to share; `pane` is the id of the pane that this runs in, if any.

    Raises UsageError where there is no server, no client, or more than one and none named.
    """
    rows = clients.parse_clients(_lines(tmux, "list-clients", "-F", clients.CLIENT_FORMAT))
    return clients.choose(rows, named=named, pane=_place_of(tmux, pane) if pane else None)


def list_sessions(tmux: Tmux) -> dict[str, tuple[str, str]]:
    """Public id: (tmux's id, name). Raises UsageError where there is no server."""
    return clients.parse_sessions(_lines(tmux, "list-sessions", "-F", clients.SESSION_FORMAT))


def _place_of(tmux: Tmux, pane: str) -> tuple[set[str], str] | None:
    # TMUX says where the process was born; its pane may have been moved since.
    rows = [row.split(" ") for row in _lines(tmux, "list-panes", "-a", "-F", "#{pane_id} #{session_id} #{window_id}")]
    here = [(session, window) for found, session, window in rows if found == pane]
    return ({session for session, _ in here}, here[0][1]) if here else None


def _lines(tmux: Tmux, *command: str) -> list[str]:
    try:
        text = tmux.run(*command)
    except TmuxError as error:
        raise UsageError(
            f"no tmux server answers: {error.message}.", "Name one with --socket-path or --server-name."
        ) from None
    # Names may hold U+2028 and its like, at which splitlines() cuts, too.
    return text.removesuffix("\n").split("\n") if text else []
