"""Finds the transcript of the Claude Code that runs in a terminal, and of no other.

Below its configuration folder (CLAUDE_CONFIG_DIR, else ~/.claude) Claude Code 2.1 keeps

    projects/<folder's path, other characters than letters and digits as ->/<sessionId>.jsonl
    sessions/<pid>.json     {"pid", "sessionId", "cwd", ...} of each one that runs

Several agents work in one folder, and people use Claude Code there outside the canvas, so
being the newest file proves nothing. A transcript counts as a node's when the record of a
process on the node's own terminal names it, or, where there is no such record (an older
version, or the agent has ended), when session_info's answer in it names the node.
"""

from __future__ import annotations

import contextlib
import os
import re

from ...base.files import last_lines, read_object, read_part
from ...base.layout import is_id
from . import context

MAX_RECORD_BYTES = 64 << 10
# The recent part of a transcript: far more than MAX_CHARS of what was said.
TAIL_BYTES = 8 << 20
# session_info is what an agent is told to call first.
HEAD_BYTES = 4 << 20
MAX_CANDIDATES = 20
MAX_SLUG_CHARS = 200  # a longer path is cut there, and something is appended


def configuration(environment: dict[str, str]) -> str | None:
    """The configuration folder of a Claude Code with this environment."""
    chosen, home = environment.get("CLAUDE_CONFIG_DIR"), environment.get("HOME")
    return chosen or (os.path.join(home, ".claude") if home else None)


def find(configuration_folder: str, node_id: str, pids: list[int], folder: str) -> str | None:
    """The path of a node's transcript, or None. `pids` run on its terminal, `folder` is its project's."""
    projects = os.path.join(configuration_folder, "projects")
    for pid in pids:
        path = _recorded(os.path.join(configuration_folder, "sessions", f"{pid}.json"), projects)
        if path is not None:
            return path
    path = _of_conversation(node_id, projects)  # it was launched with the node's id as its own
    if path is not None:
        return path
    for path in _newest_first(projects, folder):
        if context.named_node(_first_lines(path)) == node_id:
            return path
    return None


def recent_turns(path: str) -> list[context.Turn]:
    """What was said lately in a transcript; [] when it cannot be read."""
    return context.turns(last_lines(path, TAIL_BYTES))


def slug(folder: str) -> str:
    """The name of a folder's directory below projects/."""
    return re.sub(r"[^A-Za-z0-9]", "-", folder)


def _recorded(record: str, projects: str) -> str | None:
    """The transcript that the record of a running process names."""
    session = read_object(record, MAX_RECORD_BYTES, missing={}).get("sessionId")
    return _of_conversation(str(session), projects) if is_id(session) else None


def _of_conversation(session: str, projects: str) -> str | None:
    # The folder's name comes from where the program was started, which may have moved on.
    with contextlib.suppress(OSError):
        for name in os.listdir(projects):
            path = os.path.join(projects, name, f"{session}.jsonl")
            if os.path.isfile(path):
                return path
    return None


def _newest_first(projects: str, folder: str) -> list[str]:
    name = slug(folder)
    paths = []
    with contextlib.suppress(OSError):
        directories = [name]
        if len(name) > MAX_SLUG_CHARS:
            directories = [one for one in os.listdir(projects) if one.startswith(name[:MAX_SLUG_CHARS])]
        for one in directories:
            directory = os.path.join(projects, one)
            paths += [os.path.join(directory, file) for file in os.listdir(directory) if file.endswith(".jsonl")]
    return sorted(paths, key=_changed_ns, reverse=True)[:MAX_CANDIDATES]


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _first_lines(path: str) -> list[bytes]:
    try:
        return read_part(path, 0, HEAD_BYTES).split(b"\n")
    except OSError:
        return []
