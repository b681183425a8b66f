"""Defaults of a server: from launch flags, from the environment, built in."""

from __future__ import annotations

import contextlib
import os

EFFORTS = ("minimal", "low", "medium", "high")
PREFIX = "AGENT_CLI_MCP_"
# Built in, in milliseconds as the variables are.
TIMEOUT_MS = 1_800_000
HEARTBEAT_MS = 10_000
MAX_MS = 7 * 24 * 3600 * 1000  # a longer limit is a slip of the keyboard
MAX_DIGITS = 20  # leading zeros allowed for
MAX_RUNS = 4
# Codex shows its model about 12 kB of a result and cuts what is longer in the middle;
# other clients keep more.
RESULT_BYTES = 11_000


class Settings:
    """What holds for all runs of a server; times in seconds, empty strings for unset."""

    __slots__ = (
        "arguments",
        "cwd",
        "effort",
        "heartbeat_s",
        "idle_s",
        "max_runs",
        "model",
        "result_bytes",
        "structured",
        "timeout_s",
        "trace",
    )

    def __init__(self) -> None:
        self.model = ""
        self.effort = ""
        self.cwd = ""
        self.arguments: list[str] = []
        self.timeout_s = TIMEOUT_MS / 1000
        self.heartbeat_s = HEARTBEAT_MS / 1000
        self.idle_s = 0.0  # 0: off
        self.structured = True
        self.trace = True
        self.max_runs = MAX_RUNS
        self.result_bytes = RESULT_BYTES


def from_environment(environment: dict[str, str], warn) -> Settings:
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


class Folders:
    """Where a run works: as the call says, as the server was told, or in one temporary workspace."""

    def __init__(self, default: str, warn) -> None:
        self._default = default
        self._warn = warn
        self._warned = False  # of the default, which is the same for each run
        self.workspace = ""  # the temporary one, once it is needed
        self._held = None

    def choose(self, wanted: str, session: str = "") -> str:
        """An existing directory, absolute: `wanted`, else `session` (where the session was), and so on.

        Never fails a run: what cannot be used is skipped with a warning.

        Raises OSError only when not even a temporary directory can be made.
        """
        for path, whose in ((wanted, "cwd"), (session, "the session's cwd"), (self._default, "the default cwd")):
            if path.strip():
                problem = _problem(path)
                if not problem:
                    return path
                if path is not self._default or not self._warned:
                    self._warn(f"{whose} {path[:300]!r} {problem}; using the next in order.")
                self._warned = self._warned or path is self._default
        from ...base.ownership import is_ours

        if not (self.workspace and is_ours(self.workspace)):
            from ...base.tempfiles import HeldDirectory

            if self._held is not None:
                self._held.release()
            # One of a server that was killed goes if it is empty, as ours does.
            self._held = HeldDirectory("termsprawlctl-workspace-", os.rmdir, _workspace_root())
            self.workspace = self._held.path
        return self.workspace

    def close(self) -> None:
        """Remove the temporary workspace if nothing is in it."""
        if self.workspace:
            with contextlib.suppress(OSError):  # it may hold the work of the runs
                os.rmdir(self.workspace)
            self._held.release()


def _workspace_root() -> str:
    """The directory for workspaces: that for temporary files, unless other users may put files there or above.

    CLIs look for configuration in the folders above the one that they work in, and start
    what it says. A place in the user's home serves then, if it is better and in no
    repository, which a CLI would take for the project. Raises OSError.
    """
    from ...base.files import private_directory
    from ...base.ownership import others_may_add_above
    from ...base.tempfiles import temporary_root
    from ..runs.repository import root_of

    temporary = temporary_root(os.environ)
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    if others_may_add_above(temporary) and os.path.isabs(state) and not (others_may_add_above(state) or root_of(state)):
        with contextlib.suppress(OSError):
            return private_directory(os.path.join(state, "termsprawlctl", "workspaces"))
    return temporary


def _problem(path: str) -> str:
    if not os.path.isabs(path):
        return "is not absolute"
    try:
        if not os.path.isdir(path):
            return "is no directory" if os.path.exists(path) else "does not exist"
        if not os.access(path, os.X_OK):
            return "cannot be entered"
    except ValueError:
        return "is no valid path"
    return ""
