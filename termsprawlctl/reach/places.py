"""What is kept here of each destination: one private directory with the layout of a data directory.

<state>/reach/<name>/reach.json               destination, what is there, its projects
<state>/reach/<name>/agent-tools/             endpoint.json and sessions/, as a host writes them
<state>/reach/<name>/ssh, ssh.log             socket and log of the connection
<state>/reach/<name>/keeper/pid               the keeper, which holds a lock on its directory
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

from ..base.errors import CtlError, UsageError
from ..base.files import Explained, lock, private_directory, read_object, write_atomically
from ..base.layout import DataPaths, is_id, state_directory

RECORD = "reach.json"
LOCK_TIMEOUT_S = 180.0  # another `reach` may be sending the file, or waiting for a password
# What ssh_config or a shell of a ProxyCommand could take for more than a name; the rest is left to ssh.
_DESTINATION = re.compile(r"[\w.@:/%+~\[\]-]+")
# Paths over there become words of command lines and of -L.
_PLAIN = re.compile(r"/[A-Za-z0-9_./+@=~-]+")


class Place:
    """The directory of one destination. Raises UsageError for one that no ssh may get."""

    def __init__(self, destination: str, root: str) -> None:
        self.destination = destination
        self.paths = DataPaths(root)
        self.root = self.paths.root

    @classmethod
    def of(cls, destination: str) -> Place:
        """The place of a destination. Raises UsageError."""
        if destination.startswith("-"):
            raise UsageError(f"{destination!r} is an option, not a destination.", "Name what ssh takes: user@host.")
        if not _DESTINATION.fullmatch(destination) or destination.startswith("~"):
            raise UsageError(
                f"{destination!r} has characters that a shell could take for more than a name.",
                "Give it a plain name in ~/.ssh/config: Host NAME, HostName, User.",
            )
        plain = re.sub(r"[^A-Za-z0-9.-]", "_", destination)[:24]
        digest = hashlib.sha256(destination.encode()).hexdigest()[:10]
        return cls(destination, os.path.join(_all(), f"{plain}-{digest}"))

    @classmethod
    def at(cls, root: str) -> Place | None:
        """The place in a directory; None where it is none."""
        record = read_object(os.path.join(root, RECORD), missing={})
        destination = record.get("destination")
        return cls(destination, root) if isinstance(destination, str) else None

    def make(self) -> None:
        """Make the directories. Raises CtlError."""
        with Explained(f"cannot use {self.root}", "Set XDG_STATE_HOME to a directory of yours."):
            for directory in (self.root, self.paths.agent_tools, self.paths.sessions, self.keeper):
                private_directory(directory)

    @property
    def keeper(self) -> str:
        """The keeper's directory."""
        return os.path.join(self.root, "keeper")

    def record(self) -> dict[str, Any]:
        """What reach.json has; {} where there is none."""
        return read_object(os.path.join(self.root, RECORD), missing={})

    def write_record(self, **changes: object) -> None:
        """Change the record. Raises CtlError."""
        content = {**self.record(), "destination": self.destination, **changes}
        with Explained(f"cannot use {self.root}"):
            write_atomically(os.path.join(self.root, RECORD), json.dumps(content).encode())

    def write_session(self, path_there: str, session: dict[str, Any]) -> str:
        """Keep a session of the host there; returns its file here. Raises CtlError where it is none."""
        node = os.path.basename(path_there).rpartition(".")[0]
        if not is_id(node) or session.get("nodeId") != node:
            raise CtlError("the host there sent a session that is none.", "Is it another program?")
        kept = {key: session.get(key) for key in ("nodeId", "projectId", "token", "status")}
        with Explained(f"cannot use {self.root}"):
            write_atomically(self.paths.session(node), json.dumps(kept).encode())
        return self.paths.session(node)

    def write_endpoint(self, port: int, instance: str) -> None:
        """Say where the forwarded port is. Raises CtlError."""
        content = {"url": f"http://127.0.0.1:{port}/call", "instanceId": instance}
        with Explained(f"cannot use {self.root}"):
            write_atomically(self.paths.endpoint, json.dumps(content).encode())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes this connection meanwhile. Raises CtlError."""
        with Explained(f"cannot use {self.root}"):
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if lock(descriptor, LOCK_TIMEOUT_S) is False:
                raise CtlError(f"another `reach {self.destination}` does not end.", "Try again later.")
            yield
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Nothing of it is left here. Raises CtlError."""
        with Explained(f"cannot remove {self.root}"):
            shutil.rmtree(self.root)


def _all() -> str:
    state = state_directory(os.environ)
    if state is None:
        raise UsageError("HOME is not set, so there is no place for a connection.", "Set HOME or XDG_STATE_HOME.")
    return os.path.join(state, "reach")


def places() -> list[Place]:
    """All that are kept here, by name. Raises UsageError."""
    try:
        names = sorted(os.listdir(_all()))
    except OSError:
        return []
    return [place for place in (Place.at(os.path.join(_all(), name)) for name in names) if place is not None]


def plain_path(path: object) -> str:
    """A path over there as it is, where it can be a word of a command line. Raises CtlError."""
    if not isinstance(path, str) or not _PLAIN.fullmatch(path) or len(path) > 4096:
        raise CtlError(
            f"the path {path!r} over there has characters that a shell or ssh could change.",
            "Use one of letters, digits and _./+@=~- there.",
        )
    return path
