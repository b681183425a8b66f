"""Transcripts of Claude Code as text: pure functions on the lines of its JSONL files.

Of each line only what was said counts: `type` "user" or "assistant", `message.content` a
string or a list of blocks, of which those with `type` "text" are taken. What a tool
was asked and what it answered is left out, and so are the conversations of subagents
(`isSidechain`) and what the program itself put in (`isMeta`).
"""

from __future__ import annotations

import json
from collections import namedtuple

MAX_CHARS = 100_000
# who: "user" or "assistant"; time: ISO 8601 as the transcript has it, or "".
Turn = namedtuple("Turn", "who time text")
# heading: who the peer is; turns: oldest first.
Part = namedtuple("Part", "heading turns")

# Both stand in users' messages and are no words of theirs.
_REMINDER = ("<system-reminder>", "</system-reminder>")
_LOCAL_COMMAND = ("<command-", "<local-command-")


def turns(lines) -> list[Turn]:
    """What was said, oldest first; lines (bytes) that are not understood are skipped."""
    found = []
    for entry in _entries(lines):
        if entry["isSidechain"] or entry["isMeta"]:
            continue
        text = "\n".join(block for block in _texts(entry["content"]) if block)
        if text:
            found.append(Turn(entry["who"], entry["time"], text))
    return found


def named_node(lines) -> str | None:
    """The node that a transcript's agent is: what session_info answered it first.

    Only a tool's whole answer counts. Anybody can write those words into a message.
    """
    for entry in _entries(line for line in lines if b"instanceId" in line):
        for text in _tool_answers(entry["content"]):
            node = _session_info_node(text)
            if node is not None:
                return node
    return None


def render(parts: list[Part], max_chars: int = MAX_CHARS) -> str:
    """The most recent turns of each part, as many as fit; what a part does not need goes to the next ones."""
    texts: list[str] = []
    for number, part in enumerate(parts):
        left = max_chars - sum(len(text) + 2 for text in texts)
        texts.append(_render_part(part, left // (len(parts) - number)))
    return "\n\n".join(texts)[:max_chars]


def _render_part(part: Part, max_chars: int) -> str:
    left = max_chars - len(part.heading)
    kept: list[str] = []
    for turn in reversed(part.turns):
        text = f"{turn.who}{', ' + turn.time if turn.time else ''}:\n{turn.text}"
        if len(text) + 2 > left:
            if not kept and left > 2:
                kept.append(text[-(left - 2) :])
            break
        kept.append(text)
        left -= len(text) + 2
    return "\n\n".join([part.heading, *reversed(kept)])


def _entries(lines):
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


def _texts(content: object):
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


def _tool_answers(content: object):
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
        return value["nodeId"]
    return None
