"""Add one MCP server to a client's configuration, or remove it."""

from __future__ import annotations

import copy
import os
from typing import Any

from ..base.errors import CtlError
from .clients import CLIENTS, PROJECT, USER, Place, configuration_file, server_path
from .configfile import ConfigFile, refuse_way_out
from .dialects import Server, command_line

PROGRAM_NAME = "termsprawlctl"
ADD, UPDATE, KEEP, REMOVE, ABSENT = "add", "update", "keep", "remove", "absent"


class Plan:
    """What has to be done to one file. Making one changes nothing; `carry_out()` does.

    action: one of the constants above; entry: what stands, or would stand, under the
    server's name; path: the keys down to it. The constructors raise CtlError, and then
    name the file.
    """

    def __init__(self, client_name: str, name: str, scope: str, place: Place, path: str | None) -> None:
        self.client = CLIENTS[client_name]
        self.name = name
        chosen = path or configuration_file(client_name, scope, place)
        if scope == PROJECT and not path:
            refuse_way_out(chosen, place.folder)
        self.file = ConfigFile(chosen, private=scope == USER)
        self._text = self.client.dialect.text
        with _Reading(self.file):
            self.path = server_path(self.client.dialect, self.file.text, name)
            self._content: object = self._text.read(self.file.text, ()) if self.file.text else {}
            self._there = self._text.read(self.file.text, self.path)
        self.action = ABSENT
        self.entry: dict = {}
        self._new = self.file.text

    @classmethod
    def install(cls, server: Server, *where, more: dict | None = None) -> Plan:
        """Have the server there, whatever stands under its name, if that is one of ours.

        `more`: further keys of its entry.
        """
        plan = cls(*where)
        plan.entry = {**plan.client.dialect.make(server), **(more or {})}
        if plan._there is not None:
            plan._require_ours()
        with _Changing(plan.file):
            plan._new = plan._text.put(plan.file.text, plan.path, plan.entry)
            if plan._there is None:
                plan.action = ADD
            else:
                plan.action = KEEP if plan._new == plan.file.text else UPDATE
            plan._check({**plan._there, **plan.entry} if isinstance(plan._there, dict) else plan.entry)
        return plan

    @classmethod
    def uninstall(cls, *where) -> Plan:
        """Have no server of this name there."""
        plan = cls(*where)
        if plan._there is None:
            return plan
        plan._require_ours()
        plan.action = REMOVE
        plan.entry = plan._there if isinstance(plan._there, dict) else {}
        with _Changing(plan.file):
            plan._new = plan._without_empty_container(plan._text.remove(plan.file.text, plan.path))
            plan._check(None)
        return plan

    @property
    def changes(self) -> bool:
        """Whether there is something to write."""
        return self.action in (ADD, UPDATE, REMOVE)

    def carry_out(self) -> None:
        """Write the file, if there is something to write. Raises CtlError."""
        if self.action == REMOVE and self._undo():
            return
        if self.changes:
            # The backup is the file as it was before any entry of ours.
            self.file.write(self._new, backed_up=not self._has_ours())

    def written(self) -> Server:
        """The server that the file names now. Raises CtlError."""
        file = ConfigFile(self.file.path, private=True)
        with _Reading(file):
            server = self.client.dialect.read(self._text.read(file.text, self.path))
        if server is None:
            raise CtlError(f"{file.path} does not hold {self.name} any more: another program changed it.", "Try again.")
        return server

    def snippet(self) -> str:
        """The entry as it would stand in a file of its own."""
        return self._text.shown(self.path, self.entry)

    def _undo(self) -> bool:
        """Put back what was there before, where our change is all that has happened since; whether that is so."""
        try:
            # Read once: what is compared is what is put back, or what has to be gone (None: no file).
            before = self.file.backup_text()
            is_undo = self._text.put(before or "", self.path, self.entry) == self.file.text
        except (CtlError, ValueError):
            return False
        if is_undo:
            self.file.restore(before)
        return is_undo

    def _without_empty_container(self, text: str) -> str:
        """Without the object around our entry, where that came with it and holds no words of the user's."""
        container = self.path[:-1]
        try:
            had_it = self._text.read(self.file.backup_text() or "", container) is not None
        except CtlError:
            had_it = True  # not known; an empty one does no harm
        if had_it or not self._text.is_bare(text, container):
            return text
        return self._text.remove(text, container)

    def _has_ours(self) -> bool:
        entries = self._text.read(self.file.text, self.path[:-1])
        return isinstance(entries, dict) and any(_is_ours(self.client.dialect.read(one)) for one in entries.values())

    def _require_ours(self) -> None:
        server = self.client.dialect.read(self._there)
        if not _is_ours(server):
            shown = f" ({command_line(server)})" if server else ""
            raise CtlError(
                f"{self.file.path} has another server under the name {self.name}{shown}; it was left as it is.",
                "Choose another --name, or take that server out first.",
            )

    def _check(self, entry: object) -> None:
        """Raise unless the new text says the same as the old one but for our entry: a last net."""
        expected, actual = copy.deepcopy(self._content), self._text.read(self._new, ())
        holders: list[Any] = [expected]
        for key in self.path[:-1]:
            holders.append(holders[-1].setdefault(key, {}))
        holders[-1].pop(self.path[-1], None)
        if entry is not None:
            holders[-1][self.path[-1]] = entry
        elif self._text.read(self._new, self.path[:-1]) is None:
            holders[-2].pop(self.path[-2], None)
        if expected != actual:
            raise CtlError(f"{self.file.path} is written in a way that cannot be changed safely.", "Change it by hand.")


def _is_ours(server: Server | None) -> bool:
    return server is not None and os.path.basename(server.argv[0]) == PROGRAM_NAME and server.argv[1:2] == ["mcp"]


class _Reading:
    """Turns what is wrong with a file's text into an error that names the file."""

    failure = "read as its client reads it"

    def __init__(self, file: ConfigFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, _, error, __) -> None:
        if isinstance(error, ValueError):
            raise CtlError(
                f"{self._file.path} cannot be {self.failure}: {error}.",
                "It was left as it is; fix it first, or add the server by hand.",
            ) from None


class _Changing(_Reading):
    """The same for a text that could be read, but is written in a way that has no place for the change."""

    failure = "changed safely"
