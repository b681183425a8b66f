"""Which graphical displays can be reached from here: what DISPLAY and WAYLAND_DISPLAY name.

A variable may outlive its display (a tmux server keeps the one it was started with), so
each is tried: a connection is opened and closed at once.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass

from ..app.peer import owner_of_listener
from ..base.ownership import peer_of, roots
from .emulators import WAYLAND, X11

CONNECT_TIMEOUT_S = 1.0  # local sockets answer at once; a full queue must not hold us
_FIRST_X11_PORT = 6000
_X11_SOCKETS = "/tmp/.X11-unix/X"  # noqa: S108 - the fixed place of X11's sockets
_DISPLAY = re.compile(r"(?P<host>.*):(?P<number>[0-9]{1,5})(?:\.[0-9]+)?", re.DOTALL)
_VARIABLES = {X11: "DISPLAY", WAYLAND: "WAYLAND_DISPLAY"}


@dataclass(frozen=True)
class Displays:
    """What an environment names.

    kinds: those that can be used; dead: variables that name nothing; problem: why there is no
    kind at all, without a full stop, None where there is one.
    """

    kinds: frozenset[str]
    dead: tuple[str, ...]
    problem: str | None


class ForeignServer(Exception):
    """Another user listens where a display is said to be."""


def usable(environment, connect=None) -> Displays:
    """Look at the displays that an environment names.

    `connect(family, address)` opens and closes a connection, and raises OSError.
    """
    connect = connect or _connect
    kinds, dead, problems = set(), [], []
    for kind, check in ((WAYLAND, _check_wayland), (X11, _check_x11)):
        variable = _VARIABLES[kind]
        value = environment.get(variable)
        if not value:
            continue
        problem = check(value, environment, connect)
        if problem is None:
            kinds.add(kind)
        else:
            dead.append(variable)
            problems.append(f"{variable} is {value}, but {problem}")
    if kinds:
        return Displays(frozenset(kinds), tuple(dead), None)
    return Displays(
        frozenset(), tuple(dead), "; ".join(problems) or "there is no display: DISPLAY and WAYLAND_DISPLAY are not set"
    )


def _check_wayland(value: str, environment, connect) -> str | None:
    if not os.path.isabs(value):
        runtime = environment.get("XDG_RUNTIME_DIR")
        if not runtime:
            return "XDG_RUNTIME_DIR, where its socket would be, is not set"
        value = os.path.join(runtime, value)
    return _first_problem(connect, [(socket.AF_UNIX, value)])


def _check_x11(value: str, _environment, connect) -> str | None:
    match = _DISPLAY.fullmatch(value)
    if not match:
        return "that is not the name of a display"
    host, number = match["host"], match["number"]
    if host in ("", "unix"):
        path = _X11_SOCKETS + number
        # On Linux servers listen under the same name in the abstract space, too.
        return _first_problem(connect, [(socket.AF_UNIX, path), (socket.AF_UNIX, "\0" + path)])
    if host.startswith("/"):  # macOS: the socket's path, the number is part of its name
        return _first_problem(connect, [(socket.AF_UNIX, f"{host}:{number}")])
    if host in ("localhost", "127.0.0.1"):  # a display that came over ssh
        return _first_problem(connect, [(socket.AF_INET, ("127.0.0.1", _FIRST_X11_PORT + int(number)))])
    return None  # on another machine: the emulator will see


def _first_problem(connect, addresses) -> str | None:
    problem, reached = None, False
    for family, address in addresses:
        try:
            connect(family, address)
        except ForeignServer as stranger:
            # Also where another address is fine: programs try them in an order of their own.
            return str(stranger)
        except (OSError, OverflowError) as error:
            problem = problem or (getattr(error, "strerror", None) or "it does not answer")
        else:
            reached = True
    return None if reached else f"nothing can be reached there ({problem})"


def _connect(family: int, address) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(CONNECT_TIMEOUT_S)
        sock.connect(address)
        owner = _server_of(sock)
    if owner not in {None, os.getuid(), *roots()}:
        # The places of X11's sockets are open to all users, and a server reads and types what it likes
        # in the windows that it shows.
        raise ForeignServer(f"its server belongs to another user, uid {owner}")


def _server_of(sock: socket.socket) -> int | None:
    """The user id of who listens at the other end; None where the system does not tell."""
    if sock.family == socket.AF_INET:
        return owner_of_listener(sock.getpeername()[1], sock.getsockname()[1])
    peer = peer_of(sock)
    return peer and peer[1]
