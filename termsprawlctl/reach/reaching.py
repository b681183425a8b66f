"""The steps from a destination to a session file that works here, and back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import socket
from collections.abc import Callable
from typing import Any

from ..app import transport
from ..base.errors import CtlError, UsageError
from ..base.files import read_small, remove_quietly
from ..base.processes import find_program
from ..base.program import program_file
from ..base.tmux import OLDEST, version
from . import keeper
from .carrier import StepError, ask
from .places import Place, places, plain_path
from .ssh import Connection

MAX_FILE_BYTES = 16 << 20
MIN_FREE_BYTES = 16 << 20
CALL_S = 20.0

# Takes a step's name, what was found, and what to do about it ("": nothing).
Report = Callable[[str, str, str], None]


def reach(place: Place, project: str | None, *, batch: bool, restart: bool = False) -> str:
    """Have a host over there that serves the project; returns the session file here. Raises StepError, CtlError."""
    place.make()
    try:
        with place.locked():
            session = establish(place, project, batch=batch, restart=restart)
    except BaseException:
        if not place.record():
            place.remove()  # it never came to anything
        raise
    keeper.have(place)
    return session


def establish(place: Place, project: str | None, *, batch: bool, restart: bool = False) -> str:
    """The same for whoever holds the place's lock; starts no keeper."""
    connection = Connection(place)
    master = connection.pid()
    if master is None:
        remove_quietly(place.paths.endpoint)  # its port was the old connection's, and may be anybody's by now
        connection.open(batch=batch)
        master = connection.pid()
    facts = with_file(connection.client("-T"), "reach", cwd=place.root, project=project or "", restart=restart)
    path = plain_path(facts.get("socket"))
    session = place.write_session(str(facts.get("sessionFile")), facts["session"])
    if place.record().get("socket") != path or not transport.call(session, "session_info", deadline_s=CALL_S)["ok"]:
        place.write_endpoint(connection.forward(path), str(facts.get("instanceId", "")))
        _prove(place, connection, session)
    projects = {**place.record().get("projects", {}), os.path.basename(session): facts.get("project")}
    kept = {name: plain_path(facts.get(name)) for name in ("file", "data", "python")}
    place.write_record(socket=path, ssh=master, projects=projects, **kept)
    return session


def renew(place: Place) -> None:
    """Make a lost connection again, for each of its projects. Raises CtlError."""
    for project in place.record().get("projects", {}).values():
        establish(place, project, batch=True)


def _prove(place: Place, connection: Connection, session: str) -> None:
    result = transport.call(session, "session_info", deadline_s=CALL_S)
    if result["ok"]:
        return
    remove_quietly(place.paths.endpoint)
    if connection.has_refused():  # the host is up: it was just started, and answered over there
        raise _prohibited()
    raise StepError("call", f"the host there does not answer: {result['error']}", "Try --update, which restarts it.")


def with_file(carrier: list[str], action: str, *, cwd: str | None = None, **request: Any) -> dict[str, Any]:
    """What guest.py answers, once it has a copy of this file. Raises StepError, CtlError."""
    data = own_file()
    digest = hashlib.sha256(data).hexdigest()
    answer = ask(carrier, action, cwd=cwd, sha256=digest, **request)
    if answer.get("needs") == "file":
        answer = ask(carrier, action, data=data, cwd=cwd, sha256=digest, **request)
    if answer.get("needs"):
        raise StepError("copy", "the copy of this file there is another one than was sent.", "Try again.")
    return answer


def own_file() -> bytes:
    """This file. Raises CtlError where the code runs from its sources, or the file is away."""
    try:
        return read_small(program_file(), MAX_FILE_BYTES)
    except OSError as error:
        raise CtlError(f"cannot read this program's own file: {error.strerror}.", "Start it anew.") from None


def send(via: str) -> list[str]:
    """Have this file where a command leads to; returns the words that start it there. Raises StepError, CtlError."""
    try:
        words = shlex.split(via)
    except ValueError as error:
        raise UsageError(f"--via {via!r}: {error}.", "Quote it as for a shell.") from None
    program = find_program(words[0]) if words else None
    if program is None:
        raise UsageError(f"--via {via!r} begins with no program on PATH.", "For example: --via 'ssh box'")
    carrier = [program, *words[1:]]
    return [*carrier, plain_path(with_file(carrier, "send").get("file"))]


def stop(place: Place, *, everything: bool) -> None:
    """End the connection and its keeper; with `everything` also the host there, and its copy. Raises CtlError."""
    connection = Connection(place)
    keeper.end(place)
    with place.locked():
        try:
            if everything:
                if connection.pid() is None:
                    connection.open(batch=True)
                record = os.path.basename(os.path.dirname(place.record().get("file", "")))
                digest = record if re.fullmatch("[0-9a-f]{64}", record) else hashlib.sha256(own_file()).hexdigest()
                ask(connection.client("-T"), "leave", cwd=place.root, sha256=digest)
        finally:
            connection.close()
        place.remove()


def listing() -> list[dict[str, Any]]:
    """What is kept here: [{destination, connected, keeper, sessions: [{sessionFile, project}]}]. Raises CtlError."""
    found = []
    for place in places():
        sessions = [
            {"sessionFile": os.path.join(place.paths.sessions, name), "project": project}
            for name, project in sorted(place.record().get("projects", {}).items())
        ]
        try:
            is_up = Connection(place).pid() is not None
        except StepError:
            is_up = False
        found.append(
            {"destination": place.destination, "connected": is_up, "keeper": keeper.runs(place), "sessions": sessions}
        )
    return found


def check(place: Place, report: Report, *, batch: bool) -> None:
    """Try each step without changing anything there; `report` gets what went well. Raises StepError, CtlError."""
    known = bool(place.record())
    place.make()
    connection = Connection(place)
    report("ssh", "OpenSSH is installed here", "")
    try:
        with place.locked():
            was_up = connection.pid() is not None
            if not was_up:
                connection.open(batch=batch)
            try:
                report("connect", f"connected to {place.destination}", "")
                _check_there(place, connection, report)
            finally:
                if not was_up:
                    connection.close()
    finally:
        if not known:
            place.remove()


def _check_there(place: Place, connection: Connection, report: Report) -> None:
    facts = ask(connection.client("-T"), "look", cwd=place.root)
    report("python", f"Python {facts['python']}", "")
    tmux = str(facts.get("tmux"))
    if not tmux or version(tmux) < OLDEST:
        raise StepError(
            "tmux",
            f"{tmux} is too old for a host." if tmux else "tmux is not installed there, or not on PATH.",
            f"Install tmux {OLDEST[0]}.{OLDEST[1]} or newer there.",
        )
    report("tmux", tmux, "")
    if facts["free"] < MIN_FREE_BYTES:
        raise StepError("disk", f"the home directory there has {facts['free'] >> 20} MiB left.", "Make room there.")
    report("disk", f"{facts['free'] >> 20} MiB are free in the home directory", "")
    if not _knock(connection.forward(plain_path(facts["door"]))):
        raise _prohibited()
    report("forward", "the ssh server there forwards to sockets", "")
    if not facts["host"]:
        report("host", "no host runs there yet", "")
    elif hashlib.sha256(own_file()).hexdigest() in facts["host"]:
        report("host", "a host of this version runs there", "")
    else:
        report("host", f"a host runs there from another file ({facts['host']})", "reach DESTINATION --update")


def _knock(port: int) -> bool:
    """Whether a forwarded port leads to the door that guest.py has opened."""
    with contextlib.suppress(OSError), socket.create_connection((transport.HOST, port), CALL_S) as knocking:
        knocking.settimeout(CALL_S)
        return knocking.recv(1) == b"!"
    return False


def _prohibited() -> StepError:
    return StepError(
        "forward",
        "the ssh server there forwards nothing.",
        "Its sshd_config needs AllowTcpForwarding and AllowStreamLocalForwarding, and no DisableForwarding; "
        "authorized_keys no restrict and no no-port-forwarding.",
    )
