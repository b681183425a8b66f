"""The event stream of Codex before 0.30: each event wrapped in `msg`."""

from __future__ import annotations

from ..model.reader import Reader, ident, mapping, path_of, session, string, whole, word

CHANGES = {"add": "add", "update": "modify", "delete": "delete"}
SILENT = ("token_count", "patch_apply_end", "turn_diff", "exec_command_output_delta", "plan_update")


def event(reader: Reader, message: dict) -> None:
    """Read the message of one event into a reader."""
    kind = string(message.get("type"))
    if kind in EVENTS:
        EVENTS[kind](reader, message)
    elif not kind.endswith(("_delta", "_section_break")) and kind not in SILENT:
        reader.activity.unknown(kind or "?")


def _session(reader: Reader, message: dict) -> None:
    reader.session_id = session(message.get("session_id"))
    reader.model = word(message.get("model"))


def _begin(reader: Reader, message: dict) -> None:
    words = message.get("command")
    command = " ".join(map(string, words)) if isinstance(words, list) else string(words)
    reader.activity.begin("command", ("command", ident(message.get("call_id"))), command=command)


def _end(reader: Reader, message: dict) -> None:
    output = string(message.get("aggregated_output")) or string(message.get("stdout")) + string(message.get("stderr"))
    code = whole(message.get("exit_code"))
    status = "failed" if code else "completed"
    key = ("command", ident(message.get("call_id")))
    reader.activity.end("command", key, status, exitCode=code, output=output)


def _patch(reader: Reader, message: dict) -> None:
    for path, change in mapping(message.get("changes")).items():
        reader.activity.edit(CHANGES.get(next(iter(mapping(change)), ""), "write"), path_of(path))


def _complete(reader: Reader, _message: dict) -> None:
    reader.ended = True


EVENTS = {
    "session_configured": _session,
    "task_started": lambda reader, _: reader.activity.thinking(),
    "agent_message": lambda reader, message: reader.activity.message(string(message.get("message"))),
    "agent_reasoning": lambda reader, message: reader.activity.thought(string(message.get("text"))),
    "exec_command_begin": _begin,
    "exec_command_end": _end,
    "patch_apply_begin": _patch,
    "task_complete": _complete,
    "error": lambda reader, message: reader.warn(string(message.get("message"))),
    "stream_error": lambda reader, message: reader.warn(string(message.get("message"))),
}
