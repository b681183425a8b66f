"""tmux's clients and sessions as data: which server, which client, and what a row of it says.

tmux recycles terminal names, and session ids start at $0 with each server: so a client
is its name together with its process and start, and a session's public id carries the
server's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...base.errors import CtlError, UsageError
from ...base.tmux import Tmux, TmuxError, find, refuse_foreign_socket


@dataclass(frozen=True)
class ClientKey:
    """Which client: the name changes hands, the three together do not."""

    name: str
    pid: str
    created: str


@dataclass(frozen=True)
class Server:
    """Which tmux server: its process and when that started."""

    pid: str
    start: str


@dataclass(frozen=True)
class Shown:
    """What a client shows, by tmux's own ids."""

    session: str
    window: str
    pane: str


@dataclass(frozen=True)
class Client:
    """One row of list-clients.

    `activity`, `session_activity`: whole seconds of the epoch at which the client's user, any user of the
    session, last did something. Prompts and menus no format tells; they are asked for apart.
    """

    key: ClientKey
    server: Server
    shown: Shown
    control: bool
    suspended: bool
    activity: int
    session_activity: int
    prefix: bool
    mode: bool
    moves: str  # changes with each move inside tmux that can be told afterwards
    cursor_column: int
    cursor_row: int
    width: int
    tty: str  # of the pane
    destroyed_without: str  # what the option destroy-unattached is for the session
    session_attached: int
    group_size: int
    version: str
    command: str


@dataclass(frozen=True)
class Session:
    """tmux's own id of a session, and its name."""

    id: str
    name: str


# Names last: they may hold whatever a user likes, but no tab (tmux escapes it).
_CLIENT_FIELDS = (
    "pid",
    "start_time",
    "client_pid",
    "client_created",
    "client_activity",
    "client_control_mode",
    "client_flags",
    "client_prefix",
    "pane_in_mode",
    "session_id",
    "window_id",
    "pane_id",
    "session_activity",
    "client_last_session",
    "session_stack",
    "session_windows",
    "window_panes",
    "cursor_x",
    "cursor_y",
    "pane_width",
    "pane_tty",
    "destroy-unattached",
    "session_attached",
    "session_group_size",
    "version",
    "pane_current_command",
    "client_name",
)
CLIENT_FORMAT = "\t".join(f"#{{{name}}}" for name in _CLIENT_FIELDS)
SESSION_FORMAT = "#{pid}\t#{start_time}\t#{session_id}\t#{session_name}"
ID_DIGITS = 26
_NUMBER = re.compile("[0-9]{1,18}", re.ASCII)


def parse_client(line: str) -> Client | None:
    """A row in CLIENT_FORMAT; None for what is none."""
    words = line.split("\t", len(_CLIENT_FIELDS) - 1)
    if len(words) != len(_CLIENT_FIELDS):
        return None
    row = dict(zip(_CLIENT_FIELDS, words))
    moves = ("client_last_session", "session_stack", "session_windows", "window_panes")
    return Client(
        key=ClientKey(row["client_name"], row["client_pid"], row["client_created"]),
        server=Server(row["pid"], row["start_time"]),
        shown=Shown(row["session_id"], row["window_id"], row["pane_id"]),
        control=row["client_control_mode"] == "1",
        suspended="suspended" in row["client_flags"].split(","),
        activity=number(row["client_activity"]),
        session_activity=number(row["session_activity"]),
        prefix=row["client_prefix"] == "1",
        mode=row["pane_in_mode"] not in ("", "0"),
        moves="\t".join(row[name] for name in moves),
        cursor_column=number(row["cursor_x"]),
        cursor_row=number(row["cursor_y"]),
        width=number(row["pane_width"]),
        tty=row["pane_tty"],
        destroyed_without=row["destroy-unattached"],
        session_attached=number(row["session_attached"]),
        group_size=number(row["session_group_size"]),
        version=row["version"],
        command=row["pane_current_command"],
    )


def number(text: str) -> int:
    """A number as tmux writes it; 0 for what is none."""
    return int(text) if _NUMBER.fullmatch(text) else 0


def parse_clients(lines: list[str]) -> list[Client]:
    """All clients out of the lines of list-clients."""
    return [client for client in map(parse_client, lines) if client]


def parse_sessions(lines: list[str]) -> dict[str, Session]:
    """Sessions by their public id, in tmux's order, out of lines in SESSION_FORMAT."""
    found = {}
    for line in lines:
        words = line.split("\t", 3)
        if len(words) == 4:
            found[public_id(Server(words[0], words[1]), words[2])] = Session(words[2], words[3])
    return found


def public_id(server: Server, session: str) -> str:
    """The id of a session that others get to know: the same as long as the server lives, never used again."""
    digest = hashlib.sha256(f"{server.pid} {server.start} {session}".encode()).hexdigest()
    return "ses_" + digest[:ID_DIGITS]


def would_end(client: Client) -> bool:
    """Whether tmux destroys the session that the client leaves (its option destroy-unattached)."""
    if client.session_attached > 1 or client.destroyed_without in ("", "0", "off"):
        return False
    if client.destroyed_without == "keep-last":
        return client.group_size > 1
    if client.destroyed_without == "keep-group":
        return client.group_size == 1
    return True


@dataclass(frozen=True)
class Here:
    """Where our own pane is: the sessions that have it, and its window."""

    sessions: frozenset[str]
    window: str


def choose(clients: list[Client], *, named: str | None, pane: Here | None) -> Client:
    """The client to share: the named one, else the one that shows our own pane, else the only one.

    `pane`: None outside tmux. Raises UsageError when none or several fit, and lists those.
    """
    people = [client for client in clients if not client.control and client.shown.session]
    if named is not None:
        fitting = [client for client in people if client.key.name == named]
        if not fitting:
            raise UsageError(f"tmux has no client {named}.", _listed(people))
        return fitting[0]
    fitting = people
    if pane is not None:
        there = [client for client in people if client.shown.session in pane.sessions]
        fitting = [client for client in there if client.shown.window == pane.window] or there
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise UsageError("no client is attached that could be shared.", "Attach one first: tmux attach")
    raise UsageError(f"{len(fitting)} clients could be shared.", "Name one with --client. " + _listed(fitting))


def _listed(clients: list[Client]) -> str:
    if not clients:
        return "None is attached."
    return "Attached: " + ", ".join(client.key.name for client in clients) + "."


# Asking a server.


def open_server(socket_path: str | None, server_name: str | None, environment: Mapping[str, str] | None = None) -> Tmux:
    """The named server, else the one that this runs in, else the user's default one.

    It is not asked anything. Raises UsageError without a tmux that will do, and for another
    user's server.
    """
    environment = os.environ if environment is None else environment
    if socket_path is None:
        around = None if server_name is not None else surrounding_socket(environment)
        socket_path = around or _named_socket(server_name or "default", environment)
    path = os.path.abspath(socket_path)
    try:
        binary = find()
        refuse_foreign_socket(path)
    except CtlError as error:
        raise UsageError(error.message, error.remedy) from None
    return Tmux(binary, "-S", path)


def _named_socket(name: str, environment: Mapping[str, str]) -> str:
    # As tmux does it for -L; it would not see TMUX_TMPDIR, which we do not pass on.
    folder = environment.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108 - refuse_foreign_socket() looks at it
    return os.path.join(os.path.realpath(folder), f"tmux-{os.getuid()}", name)


def surrounding_socket(environment: Mapping[str, str]) -> str | None:
    """The socket of the server in whose pane this runs, out of TMUX (socket,pid,session; the path may hold commas)."""
    return environment.get("TMUX", "").rsplit(",", 2)[0] or None


def find_client(tmux: Tmux, named: str | None, pane: str | None) -> Client:
    """The client to share; `pane` is the id of the pane that this runs in, if any.

    Raises UsageError where there is no server, no client, or more than one and none named.
    """
    rows = parse_clients(_lines(tmux, "list-clients", "-F", CLIENT_FORMAT))
    return choose(rows, named=named, pane=_here(tmux, pane) if pane else None)


def list_sessions(tmux: Tmux) -> dict[str, Session]:
    """All sessions by public id. Raises UsageError where there is no server."""
    return parse_sessions(_lines(tmux, "list-sessions", "-F", SESSION_FORMAT))


def _here(tmux: Tmux, pane: str) -> Here | None:
    # TMUX says where the process was born; its pane may have been moved since.
    rows = [row.split(" ") for row in _lines(tmux, "list-panes", "-a", "-F", "#{pane_id} #{session_id} #{window_id}")]
    here = [row for row in rows if row[0] == pane]
    return Here(frozenset(row[1] for row in here), here[0][2]) if here else None


def _lines(tmux: Tmux, *command: str) -> list[str]:
    try:
        text = tmux.run(*command)
    except TmuxError as error:
        raise UsageError(
            f"no tmux server answers: {error.message}.", "Name one with --socket-path or --server-name."
        ) from None
    # Names may hold U+2028 and its like, at which splitlines() cuts, too.
    return text.removesuffix("\n").split("\n") if text else []
