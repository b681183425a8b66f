"""A node's terminal over there: in the terminal that this runs in, or in a window of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..base.errors import CtlError
from ..base.layout import DataPaths, default_data_directory
from ..base.processes import find_program
from ..base.program import own_argv
from ..windows.node_terminal import Client, Node, NodeTerminal, need_terminal
from .places import Place, plain_path
from .reaching import with_file
from .ssh import Connection


class NodeThere(Node):
    """The session of a node of a reached host. What it has to be there is looked at over there, by this same file."""

    def __init__(self, place: Place, node_id: str) -> None:
        super().__init__(place.root, node_id)
        self._place = place

    @property
    def preferences(self) -> str:
        return DataPaths(default_data_directory(os.environ)).preferences

    def check(self) -> None:
        self.clients()

    def clients(self) -> list[Client]:
        connection = self._connection()
        facts = with_file(connection.client("-T"), "clients", cwd=self._place.root, node=self.node_id, at=self._data())
        return [Client(**row) for row in facts["clients"]]

    def attach_argv(self) -> list[str]:
        return own_argv("attach", self.node_id, "--data", self.paths.root)

    def attach(self, environment: Mapping[str, str]) -> None:
        need_terminal(self.node_id)
        connection = self._connection()
        record = self._place.record()
        python, file = (plain_path(record.get(name)) for name in ("python", "file"))
        words = [python, "-ISBXutf8", file, "attach", self.node_id, "--data", self._data()]
        ssh = find_program("ssh") or "ssh"
        try:
            os.chdir(self._place.root)
            os.execve(ssh, [*connection.client("-t", "-q"), *words], environment)  # noqa: S606 - an argv, no shell
        except OSError as error:
            raise CtlError(f"cannot run {ssh}: {error.strerror}.", "Install the OpenSSH client again.") from None

    def _data(self) -> str:
        return plain_path(self._place.record().get("data"))

    def _connection(self) -> Connection:
        connection = Connection(self._place)
        if connection.pid() is None:
            where = self._place.destination
            raise CtlError(f"{where} is not connected.", f"Run: termsprawlctl reach {where}")
        return connection


def node_of(data: str, node_id: str) -> Node:
    """The node that a data directory here leads to, on this machine or another. Raises UsageError, CtlError."""
    place = Place.at(data)
    return NodeThere(place, node_id) if place else NodeTerminal(data, node_id)
