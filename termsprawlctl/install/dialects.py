"""How a client writes one MCP server down. Pure.

An entry is what stands under the server's name; every dialect makes one from an argv and
an environment, and finds both again in one.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Callable

from . import jsonedit, tomledit
from .jsonc import Syntax


@dataclass(frozen=True)
class Server:
    """What a client starts: its argv, and variables that it sets, often none."""

    argv: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Dialect:
    """container: the keys above the servers' names; read gives None for an entry that starts no program."""

    container: tuple[str, ...]
    make: Callable[[Server], dict]
    read: Callable[[object], Server | None]
    text: JsonText | TomlText


class JsonText:
    """Reads and changes JSON with the liberties of one client."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax

    def read(self, text: str, path: tuple[str, ...]) -> object:
        return jsonedit.read(text, self._syntax, path)

    def put(self, text: str, path: tuple[str, ...], entry: dict) -> str:
        """Keys of an entry that is there and that `entry` does not name stay as they are."""
        there = self.read(text, path)
        if not isinstance(there, dict):
            return jsonedit.put(text, self._syntax, path, entry)
        for key, value in entry.items():
            if there.get(key) != value:
                text = jsonedit.put(text, self._syntax, (*path, key), value)
        return text

    def remove(self, text: str, path: tuple[str, ...]) -> str:
        return jsonedit.remove(text, self._syntax, path)

    def add_items(self, text: str, path: tuple[str, ...], items: list[str]) -> str:
        return jsonedit.add_items(text, self._syntax, path, items)

    def remove_items(self, text: str, path: tuple[str, ...], items: list[str]) -> str:
        return jsonedit.remove_items(text, self._syntax, path, items)

    def is_bare(self, text: str, path: tuple[str, ...]) -> bool:
        return jsonedit.is_bare(text, self._syntax, path)

    def shown(self, path: tuple[str, ...], entry: object) -> str:
        """A whole file with nothing else in it."""
        for key in reversed(path):
            entry = {key: entry}
        return json.dumps(entry, ensure_ascii=False, indent=2)


class TomlText:
    """Reads and changes TOML."""

    read = staticmethod(tomledit.read)
    put = staticmethod(tomledit.put)
    remove = staticmethod(tomledit.remove)
    is_bare = staticmethod(tomledit.is_bare)
    shown = staticmethod(tomledit.shown)


def split_entry(server: Server, **first: str) -> dict:
    """`{command, args}` and `env` where there is one, behind the given keys."""
    entry = {**first, "command": server.argv[0], "args": server.argv[1:]}
    return {**entry, "env": server.environment} if server.environment else entry


def read_split(entry: object) -> Server | None:
    """The server of `{command, args, env}`."""
    if not isinstance(entry, dict):
        return None
    argv = [entry.get("command"), *(entry.get("args") or [])] if isinstance(entry.get("args") or [], list) else [None]
    return _server(argv, entry.get("env"))


def typed_entry(server: Server) -> dict:
    """With `type`, as Claude Code and VS Code have it."""
    return split_entry(server, type="stdio")


def zed_entry(server: Server) -> dict:
    """With `source`, which tells Zed that no extension brings this server."""
    return split_entry(server, source="custom")


def local_entry(server: Server) -> dict:
    """OpenCode: one array for the whole argv, and `environment`."""
    entry = {"type": "local", "command": server.argv, "enabled": True}
    return {**entry, "environment": server.environment} if server.environment else entry


def read_local(entry: object) -> Server | None:
    """The server of `{command: [...], environment}`."""
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), list):
        return None
    return _server(entry["command"], entry.get("environment"))


def command_line(server: Server) -> str:
    """The argv for people to read."""
    return shlex.join(server.argv)


def _server(argv: list, environment: object) -> Server | None:
    if not argv or not all(isinstance(word, str) for word in argv):
        return None
    pairs = environment if isinstance(environment, dict) else {}
    return Server(argv, {key: value for key, value in pairs.items() if isinstance(value, str)})
