"""The MCP clients: where each keeps its servers, in which dialect, and its own commands for them.

Pure. Checked with the clients' own commands where there are any (Codex, Claude Code,
Gemini CLI, OpenCode), else against their documentation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable

from ..base.errors import UsageError
from . import dialects, jsonc
from .allow import Rule
from .dialects import Dialect, JsonText, Server, TomlText

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)


@dataclass(frozen=True)
class Place:
    """Where to look: the environment, the system by its `uname` name, the project's folder."""

    environment: Mapping[str, str]
    system: str
    folder: str

    @property
    def home(self) -> str:
        """Raises UsageError when it is not set."""
        home = self.environment.get("HOME") or self.environment.get("USERPROFILE")
        if not home or not os.path.isabs(home):
            raise UsageError("HOME is not set, so the user's configuration cannot be found.", "Name it with --file.")
        return home

    def below(self, variable: str, *default: str) -> str:
        """A directory that a variable may name, else one below the home directory."""
        named = self.environment.get(variable)
        return named if named and os.path.isabs(named) else os.path.join(self.home, *default)

    def application(self, *names: str) -> str:
        """A folder of a desktop application, by the system's custom."""
        if self.system == "Darwin":
            base = os.path.join(self.home, "Library", "Application Support")
        elif self.system == "Windows":
            base = self.below("APPDATA", "AppData", "Roaming")
        else:
            base = self.below("XDG_CONFIG_HOME", ".config")
        return os.path.join(base, *names)


Paths = Callable[[Place], "list[str]"]


@dataclass(frozen=True)
class Client:
    """One row of the table.

    title: as its makers write it; user, project: the candidate paths, the preferred one first
    (project: None where the client has no such file); adds: argv of the client's own command
    that does the same; lists: argv of its own list of servers; note: what else the user has to do.
    What has it call tools without asking: allowed gives keys of the server's entry for the tools'
    names, rule what stands elsewhere, for (name, tools, scope, place, the entry's file).
    """

    title: str
    dialect: Dialect
    user: Paths
    project: Paths | None = None
    adds: Callable[[str, Server, str], list[str]] | None = None
    lists: list[str] | None = None
    note: str = ""
    allowed: Callable[[list[str]], dict] | None = None
    rule: Callable[[str, list[str], str, Place, str], Rule] | None = None


def _entries(container: str, make: Callable[[Server], dict], syntax: jsonc.Syntax = jsonc.STRICT) -> Dialect:
    return Dialect((container,), make, dialects.read_split, JsonText(syntax))


def _in_home(*names: str) -> Paths:
    return lambda place: [os.path.join(place.home, *names)]


def _in_project(*names: str) -> Paths:
    return lambda place: [os.path.join(place.folder, *names)]


def _opencode(*folders: Callable[[Place], str]) -> Paths:
    return lambda place: [
        os.path.join(folder(place), name) for folder in folders for name in ("opencode.json", "opencode.jsonc")
    ]


def _codex_add(name: str, server: Server, _scope: str) -> list[str]:
    pairs = [word for key, value in server.environment.items() for word in ("--env", f"{key}={value}")]
    return ["codex", "mcp", "add", name, *pairs, "--", *server.argv]


def _claude_add(name: str, server: Server, scope: str) -> list[str]:
    pairs = [word for key, value in server.environment.items() for word in ("-e", f"{key}={value}")]
    return ["claude", "mcp", "add", name, "--scope", scope, *pairs, "--", *server.argv]


def _gemini_add(name: str, server: Server, scope: str) -> list[str]:
    pairs = [word for key, value in server.environment.items() for word in ("-e", f"{key}={value}")]
    # It would take its own options out of our arguments where no -- keeps them apart.
    return ["gemini", "mcp", "add", *pairs, "-s", scope, name, server.argv[0], "--", *server.argv[1:]]


def _claude_rule(name: str, tools: list[str], scope: str, place: Place, _file: str) -> Rule:
    folder = place.below("CLAUDE_CONFIG_DIR", ".claude") if scope == USER else os.path.join(place.folder, ".claude")
    items = [f"mcp__{name}__{tool}" for tool in tools]
    file = os.path.join(folder, "settings.json")
    return Rule(file, JsonText(jsonc.STRICT), ("permissions", "allow"), items, private=scope == USER)


def _opencode_rule(name: str, tools: list[str], scope: str, _place: Place, file: str) -> Rule:
    items = [f"{name}_{tool}" for tool in tools]
    text = JsonText(jsonc.JSONC)
    return Rule(file, text, ("permission",), items, "allow", private=scope == USER, shared=True)


CLIENTS = {
    "claude": Client(
        "Claude Code",
        _entries("mcpServers", dialects.typed_entry),
        lambda place: [os.path.join(place.below("CLAUDE_CONFIG_DIR"), ".claude.json")],
        _in_project(".mcp.json"),
        _claude_add,
        ["claude", "mcp", "list"],
        rule=_claude_rule,
    ),
    "codex": Client(
        "Codex",
        Dialect(("mcp_servers",), dialects.split_entry, dialects.read_split, TomlText()),
        lambda place: [os.path.join(place.below("CODEX_HOME", ".codex"), "config.toml")],
        None,
        _codex_add,
        ["codex", "mcp", "list"],
        allowed=lambda tools: {"tools": {tool: {"approval_mode": "approve"} for tool in tools}},
    ),
    "opencode": Client(
        "OpenCode",
        Dialect(("mcp",), dialects.local_entry, dialects.read_local, JsonText(jsonc.JSONC)),
        _opencode(lambda place: os.path.join(place.below("XDG_CONFIG_HOME", ".config"), "opencode")),
        _opencode(lambda place: place.folder, lambda place: os.path.join(place.folder, ".opencode")),
        None,
        ["opencode", "mcp", "list"],
        rule=_opencode_rule,
    ),
    "gemini": Client(
        "Gemini CLI",
        _entries("mcpServers", dialects.split_entry, jsonc.WITH_COMMENTS),
        lambda place: [os.path.join(place.below("GEMINI_CLI_HOME"), ".gemini", "settings.json")],
        _in_project(".gemini", "settings.json"),
        _gemini_add,
        ["gemini", "mcp", "list"],
        "Gemini starts no servers in a folder that it does not trust; it asks when it is started there.",
        allowed=lambda _tools: {"trust": True},
    ),
    "cursor": Client(
        "Cursor",
        _entries("mcpServers", dialects.split_entry),
        _in_home(".cursor", "mcp.json"),
        _in_project(".cursor", "mcp.json"),
    ),
    "vscode": Client(
        "VS Code",
        _entries("servers", dialects.typed_entry, jsonc.JSONC),
        lambda place: [place.application("Code", "User", "mcp.json")],
        _in_project(".vscode", "mcp.json"),
        note="VS Code asks whether to trust the server when it starts it for the first time.",
    ),
    "windsurf": Client(
        "Windsurf",
        _entries("mcpServers", dialects.split_entry),
        _in_home(".codeium", "windsurf", "mcp_config.json"),
        note="Refresh the list of servers in Windsurf's settings, or restart it.",
    ),
    "zed": Client(
        "Zed",
        _entries("context_servers", dialects.zed_entry, jsonc.JSONC),
        lambda place: [os.path.join(place.below("XDG_CONFIG_HOME", ".config"), "zed", "settings.json")],
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        _entries("mcpServers", dialects.split_entry),
        lambda place: [place.application("Claude", "claude_desktop_config.json")],
        note="Restart Claude Desktop: it reads the file only when it starts.",
    ),
}


def configuration_file(name: str, scope: str, place: Place, exists=os.path.exists) -> str:
    """The file to change: the first candidate that is there, else the first.

    Raises UsageError where the client has no file of this scope.
    """
    client = CLIENTS[name]
    find = client.user if scope == USER else client.project
    if find is None:
        raise UsageError(f"{client.title} keeps its servers per user only.", "Leave --scope out.")
    candidates = find(place)
    return next(filter(exists, candidates), candidates[0])


def server_path(dialect: Dialect, text: str, name: str) -> tuple[str, ...]:
    """The keys down to a server's entry in this text.

    The second version of OpenCode keeps its servers one level deeper, in `mcp.servers`.
    Raises ValueError where the text cannot be read.
    """
    if dialect.container == ("mcp",):
        deeper = dialect.text.read(text, ("mcp", "servers"))
        if isinstance(deeper, dict) and "type" not in deeper and "command" not in deeper:
            return ("mcp", "servers", name)
    return (*dialect.container, name)
