"""Defaults of a server: from launch flags, from the environment, built in."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .types import Json, Report


PERMISSIONS = ("reject", "allow-edits", "allow", "ask")  # of agents that are spoken to over ACP
EFFORTS = ("minimal", "low", "medium", "high")
PREFIX = "AGENT_CLI_MCP_"
# Built in, in milliseconds as the variables are.
TIMEOUT_MS = 1_800_000
HEARTBEAT_MS = 10_000
IDLE_S = 600.0
ASK_S = 300.0
MAX_MS = 7 * 24 * 3600 * 1000  # a longer limit is a slip of the keyboard
MAX_DIGITS = 20  # leading zeros allowed for
MAX_RUNS = 4
# Codex shows its model about 12 kB of a result and cuts what is longer in the middle;
# other clients keep more.
RESULT_BYTES = 11_000


class Settings:
    """What holds for all runs of a server; times in seconds, empty strings for unset."""

    __slots__ = (
        "acp_command",
        "arguments",
        "ask_s",
        "cwd",
        "effort",
        "heartbeat_s",
        "idle_s",
        "keep_background",
        "max_runs",
        "mcp_servers",
        "mode",
        "model",
        "permissions",
        "result_bytes",
        "structured",
        "timeout_s",
        "trace",
        "via",
    )

    def __init__(self) -> None:
        self.model = ""
        self.effort = ""
        self.cwd = ""
        self.arguments: list[str] = []
        self.timeout_s = TIMEOUT_MS / 1000
        self.heartbeat_s = HEARTBEAT_MS / 1000
        self.idle_s = IDLE_S  # 0: off; see Run
        # Of agents that are spoken to over ACP.
        self.via = ""  # "acp": even where the agent has a stream of its own
        self.acp_command: list[str] = []  # of the agent `acp`
        self.mode = ""
        self.permissions = "reject"
        self.ask_s = ASK_S  # how long a question for permission waits for a person
        self.mcp_servers: list[Json] = []
        self.keep_background = False  # what outlives the CLI goes on
        self.structured = True
        self.trace = True
        self.max_runs = MAX_RUNS
        self.result_bytes = RESULT_BYTES


def from_environment(environment: Mapping[str, str], warn: Report) -> Settings:
    """The settings that variables make; warn(line) is told of each bad value, whose default then holds."""
    settings = Settings()

    def value(name: str) -> str:
        return environment.get(PREFIX + name, "").strip()

    def milliseconds(name: str, default_s: float) -> float:
        text = value(name)
        if not text:
            return default_s
        # isdigit() alone takes what int() does not: superscripts, and more digits than it reads.
        if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and 0 < int(text) <= MAX_MS:
            return int(text) / 1000
        rule = f"is not a number of milliseconds from 1 to {MAX_MS}"
        warn(f"{PREFIX}{name}={text[:40]!r} {rule}; using {default_s * 1000:.0f}.")
        return default_s

    def switch(name: str) -> bool:
        text = value(name)
        if text not in ("", "0", "1"):
            warn(f"{PREFIX}{name}={text[:40]!r} is neither 0 nor 1; using 1.")
        return text != "0"

    settings.timeout_s = milliseconds("TIMEOUT_MS", settings.timeout_s)
    settings.heartbeat_s = milliseconds("HEARTBEAT_MS", settings.heartbeat_s)
    settings.structured = switch("STRUCTURED")
    settings.trace = switch("TRACE")
    settings.model = value("MODEL")
    settings.cwd = value("CWD")
    effort = value("EFFORT")
    if effort and effort not in EFFORTS:
        warn(f"{PREFIX}EFFORT={effort[:40]!r} is none of {', '.join(EFFORTS)}; ignored.")
        effort = ""
    settings.effort = effort
    return settings
