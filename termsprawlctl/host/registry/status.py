"""How a node's program is connected to its tools, as its session says it: read in one place, spelled in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace

CONNECTED, CLI_FALLBACK, NEEDS_SETUP = "connected", "cli-fallback", "needs-setup"
# How a program is given its tools: as an MCP server, by instructions alone, or in no way that its help proved.
MCP, CLI, UNVERIFIED = "mcp", "cli", "unverified"
SHELL = "shell"  # the program of a plain terminal


@dataclass(frozen=True)
class Adapter:
    """What runs in a node and how it gets its tools. `program`: claude, codex … or SHELL, "" where that is unknown."""

    program: str
    way: str

    @classmethod
    def parse(cls, name: object) -> Adapter:
        """The adapter of this name, `<program>-<way>`."""
        program, _, way = name.rpartition("-") if isinstance(name, str) else ("", "", "")
        return cls(program, way)

    def __str__(self) -> str:
        return f"{self.program}-{self.way}" if self.program else self.way

    @property
    def is_agent(self) -> bool:
        """Whether the node was launched as an agent, so that its prompt is no shell's."""
        return self.program != SHELL

    @property
    def is_verified(self) -> bool:
        """Whether it is an agent by its own help, too, so that no shell reads what is typed there."""
        return self.is_agent and self.way in (MCP, CLI)


@dataclass(frozen=True)
class Status:
    """What a session says of its connection; version and reason are "" where there is nothing to say."""

    state: str
    adapter: Adapter
    version: str = ""
    reason: str = ""

    @classmethod
    def parse(cls, value: object) -> Status:
        """What a session file has; whatever is no text there counts as nothing said."""
        known = value if isinstance(value, dict) else {}
        state, version, reason = (_text(known.get(key)) for key in ("state", "version", "reason"))
        return cls(state, Adapter.parse(known.get("adapter")), version, reason)

    def as_json(self) -> dict[str, str]:
        """As it stands in the session file and in answers."""
        return {"state": self.state, "adapter": str(self.adapter), "version": self.version, "reason": self.reason}

    def after_a_call(self) -> Status:
        """The status once its program has called: only one with an MCP client of its own is connected by that."""
        if self.adapter.way != MCP:
            return self
        return replace(self, state=CONNECTED, reason="")


# What the app says of a node that was given instructions but no MCP connection.
SHELL_STATUS = Status(CLI_FALLBACK, Adapter(SHELL, CLI), reason="Use the CLI in TERMSPRAWL_CTL")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
