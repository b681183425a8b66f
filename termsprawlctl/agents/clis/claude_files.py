"""Transcripts of Claude Code: the one of what runs in a terminal, and of no other, and what it says.

Below its configuration folder (CLAUDE_CONFIG_DIR, else ~/.claude) Claude Code 2.1 keeps

    projects/<folder's path, other characters than letters and digits as ->/<sessionId>.jsonl
    sessions/<pid>.json     {"pid", "sessionId", "cwd", ...} of each one that runs

Several agents work in one folder, and people use Claude Code there outside the canvas, so
being the newest file proves nothing. A transcript counts as a node's when the record of a
process on the node's own terminal names it, or, where there is no such record (an older
version, or the agent has ended), when session_info's answer in it names the node.

Of each line only what was said counts: `type` "user" or "assistant", `message.content` a
string or a list of blocks, of which those with `type` "text" are taken. What a tool
was asked and what it answered is left out, and so are the conversations of subagents
(`isSidechain`) and what the program itself put in (`isMeta`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re

from ...base.files import last_lines, read_object, read_part
from ...base.layout import is_id
from ..model.turn import Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MAX_RECORD_BYTES = 64 << 10
# The recent part of a transcript: far more than anybody shows of it.
TAIL_BYTES = 8 << 20
# session_info is what an agent is told to call first.
HEAD_BYTES = 4 << 20
MAX_CANDIDATES = 20
MAX_SLUG_CHARS = 200  # a longer path is cut there, and something is appended


# Both stand in users' messages and are no words of theirs.
_REMINDER = ("<system-reminder>", "</system-reminder>")
_LOCAL_COMMAND = ("<command-", "<local-command-")


def configuration(environment: Mapping[str, str]) -> str | None:
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
        if named_node(_first_lines(path)) == node_id:
            return path
    return None


def recent_turns(path: str) -> list[Turn]:
    """What was said lately in a transcript; [] when it cannot be read."""
    return turns(last_lines(path, TAIL_BYTES))


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


def turns(lines: Iterable[bytes]) -> list[Turn]:
    """What was said, oldest first; lines (bytes) that are not understood are skipped."""
    found = []
    for entry in _entries(lines):
        if entry["isSidechain"] or entry["isMeta"]:
            continue
        text = "\n".join(block for block in _texts(entry["content"]) if block)
        if text:
            found.append(Turn(entry["who"], entry["time"], text))
    return found


def named_node(lines: Iterable[bytes]) -> str | None:
    """The node that a transcript's agent is: what session_info answered it first.

    Only a tool's whole answer counts. Anybody can write those words into a message.
    """
    for entry in _entries(line for line in lines if b"instanceId" in line):
        for text in _tool_answers(entry["content"]):
            node = _session_info_node(text)
            if node is not None:
                return node
    return None


def _entries(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The messages among the lines, as {who, time, content, isSidechain, isMeta}."""
    for line in lines:
        # Most of a transcript's bytes stand in lines of other types.
        if b'"user"' not in line and b'"assistant"' not in line:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or entry.get("type") not in ("user", "assistant"):
            continue
        message, time = entry.get("message"), entry.get("timestamp")
        yield {
            "who": entry["type"],
            "time": time if isinstance(time, str) else "",
            "content": message.get("content") if isinstance(message, dict) else None,
            "isSidechain": entry.get("isSidechain") is True,
            "isMeta": entry.get("isMeta") is True,
        }


def _texts(content: object) -> Iterator[str]:
    """What a person or an agent said in a message."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            text = _without_reminders(block["text"]).strip()
            if not text.startswith(_LOCAL_COMMAND):
                yield text


def _without_reminders(text: str) -> str:
    """Not by a pattern: many beginnings without an end would take one the square of their number."""
    begin, end = _REMINDER
    kept: list[str] = []
    position = 0
    while True:
        start = text.find(begin, position)
        stop = text.find(end, start) if start >= 0 else -1
        if stop < 0:
            return "".join([*kept, text[position:]])
        kept.append(text[position:start])
        position = stop + len(end)


def _tool_answers(content: object) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            answer = block.get("content")
            if isinstance(answer, str):
                yield answer
            else:
                yield from _texts(answer)


def _session_info_node(text: str) -> str | None:
    if '"instanceId"' not in text:
        return None
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = result.get("value") if isinstance(result, dict) and result.get("ok") is True else None
    if isinstance(value, dict) and isinstance(value.get("instanceId"), str) and isinstance(value.get("nodeId"), str):
        return str(value["nodeId"])
    return None
