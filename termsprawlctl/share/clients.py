"""tmux's clients and sessions as data: read from format strings, told apart for good.

tmux recycles terminal names, and session ids start at $0 with each server: so a client
is its name together with its process and start, and a session's public id carries the
server's.
"""

from __future__ import annotations

import hashlib
import re
from collections import namedtuple

from ..base.errors import UsageError

# Which client: the name changes hands, the three together do not.
ClientKey = namedtuple("ClientKey", "name pid created")
# One row of list-clients. activity: whole seconds of the epoch at which its user last did
# something. overlay-like states that formats do not tell are asked for apart.
Client = namedtuple("Client", "key server control suspended activity prefix mode session window pane")

# Names last: they may hold whatever a user likes, but no tab (tmux escapes it).
CLIENT_FORMAT = "\t".join(
    f"#{{{name}}}"
    for name in (
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
        "client_name",
    )
)
SESSION_FORMAT = "#{pid}\t#{start_time}\t#{session_id}\t#{session_name}"
ID_DIGITS = 26
_SECONDS = re.compile("[0-9]{1,18}", re.ASCII)


def parse_client(line: str) -> Client | None:
    """A row in CLIENT_FORMAT; None for what is none."""
    words = line.split("\t", 12)
    if len(words) != 13:
        return None
    server_pid, server_start, pid, created, activity, control, flags, prefix, mode, session, window, pane, name = words
    return Client(
        key=ClientKey(name, pid, created),
        server=(server_pid, server_start),
        control=control == "1",
        suspended="suspended" in flags.split(","),
        activity=int(activity) if _SECONDS.fullmatch(activity) else 0,
        prefix=prefix == "1",
        mode=mode not in ("", "0"),
        session=session,
        window=window,
        pane=pane,
    )


def parse_clients(lines: list[str]) -> list[Client]:
    """All clients out of the lines of list-clients."""
    return [client for client in map(parse_client, lines) if client]


def parse_sessions(lines: list[str]) -> dict[str, tuple[str, str]]:
    """Public id: (tmux's own id, name), in tmux's order, out of lines in SESSION_FORMAT."""
    found = {}
    for line in lines:
        words = line.split("\t", 3)
        if len(words) == 4:
            found[public_id((words[0], words[1]), words[2])] = (words[2], words[3])
    return found


def public_id(server: tuple[str, str], session: str) -> str:
    """The id of a session that others get to know: the same as long as the server lives, never used again."""
    digest = hashlib.sha256(" ".join((*server, session)).encode()).hexdigest()
    return "ses_" + digest[:ID_DIGITS]


def choose(clients: list[Client], *, named: str | None, pane: tuple[set[str], str] | None) -> Client:
    """The client to share: the named one, else the one that shows our own pane, else the only one.

    `pane` is (sessions, window) of the pane that we run in, None outside tmux. Raises
    UsageError when none or several fit, and lists those.
    """
    people = [client for client in clients if not client.control and client.session]
    if named is not None:
        fitting = [client for client in people if client.key.name == named]
        if not fitting:
            raise UsageError(f"tmux has no client {named}.", _listed(people))
        return fitting[0]
    fitting = people
    if pane is not None:
        sessions, window = pane
        there = [client for client in people if client.session in sessions]
        fitting = [client for client in there if client.window == window] or there
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise UsageError("no client is attached that could be shared.", "Attach one first: tmux attach")
    raise UsageError(f"{len(fitting)} clients could be shared.", "Name one with --client. " + _listed(fitting))


def _listed(clients: list[Client]) -> str:
    if not clients:
        return "None is attached."
    return "Attached: " + ", ".join(client.key.name for client in clients) + "."
