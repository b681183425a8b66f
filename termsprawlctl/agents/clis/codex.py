"""Codex CLI: `codex exec --json`.

Its answer is its last agent_message. Events of all tool modes are the same. Versions
before 0.30 wrapped each event in `msg`, some later ones named the type of an
item differently.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping

from ...base.files import last_lines
from ..model import reader
from ..model.reader import Reader, ident, items, mapping, path_of, session, string, whole, word
from ..model.steps import Activity
from ..model.text import clip, unwrapped
from .cli import MCP_SERVER, AgentCli, LaunchPlan, Request, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json


LIMIT = re.compile(r"reason: (max_output_tokens|content_filter)")
LAST_MESSAGE = "last-message"  # file in the scratch directory; the answer if the stream changes its shape
CHANGES = {"add": "add", "update": "modify", "delete": "delete"}


class Codex(AgentCli):
    name = "codex"
    executable = "codex"
    key_variables = ("CODEX_API_KEY",)
    login_files = (".codex/auth.json",)
    acp = ("codex-acp",)
    takes_effort = True
    install = "Install it with `npm install -g @openai/codex` and log in with `codex login`."
    login = "Log in with `codex login`, or check the key of the configured model provider."
    # SIGINT ends it with its tools in 0.1 s; SIGTERM leaves them running.
    stop_signals = (("SIGINT", 2.0), ("SIGTERM", 1.0))
    permission = 'set sandbox_mode = "workspace-write" in ~/.codex/config.toml, or start with `-- -s workspace-write`'
    faults = (
        (r"no rollout found|thread/resume failed", "unknown_session", "Leave sessionId out to start a new session."),
        (r"usage limit|upgrade to", "rate_limited", "Wait until the limit of the account is reset."),
    )

    def command(self, request: Request) -> list[str]:
        argv = [self.executable, "exec", "--skip-git-repo-check", "-C", request.cwd]
        if request.structured:
            argv += ["--json", "-o", os.path.join(request.scratch, LAST_MESSAGE)]
        if request.model:
            argv.append(f"--model={request.model}")
        if request.effort:
            argv += ["-c", f'model_reasoning_effort="{request.effort}"']
        # -C and -s are errors after the word `resume`.
        argv += request.arguments
        if request.session_id:
            argv += ["resume", request.session_id]
        return [*argv, "-"]

    def launch(self, around: Surroundings) -> LaunchPlan | None:
        if not around.offers("--config", "mcp"):
            return None
        # A JSON string is a TOML string, too.
        command = f"mcp_servers.{MCP_SERVER}.command={json.dumps(around.bridge[0])}"
        args = f"mcp_servers.{MCP_SERVER}.args={json.dumps(around.bridge[1:])}"
        return LaunchPlan([*around.argv, "-c", command, "-c", args], mcp=True)

    def reader(self, cwd: str) -> Reader:
        return CodexReader(cwd)

    def denials(self, run: Reader, errors: str) -> list[str]:  # noqa: ARG002 - stderr says it all
        # A patch that the sandbox refuses is no event at all.
        return [
            line.split("error=", 1)[-1].strip()
            for line in errors.splitlines()
            if "rejected" in line and "ERROR" in line
        ]

    def permission_remedy(self, denied: list[str]) -> str:
        if any("rm -f style" in text for text in denied):
            # A rule of its own, which holds in every sandbox.
            return "Codex itself refuses `rm -f`: ask for another way to delete, such as `rm` without -f"
        if any("workspace-write" in text or "outside of the project" in text for text in denied):
            return (
                "To allow it, add the folder to sandbox_workspace_write.writable_roots in ~/.codex/config.toml, "
                "or start with `-- -s danger-full-access`"
            )
        return super().permission_remedy(denied)

    def complete(self, run: Reader, request: Request, environment: Mapping[str, str]) -> None:  # noqa: ARG002
        home = environment.get("HOME") or os.path.expanduser("~")
        folder = os.path.join(environment.get("CODEX_HOME") or os.path.join(home, ".codex"), "sessions")
        if run.session_id:
            complete_account(run.activity, session_file_tail(folder, run.session_id))

    def fallback_answer(self, request: Request) -> str:
        from ...base.files import read_small

        try:
            return read_small(os.path.join(request.scratch, LAST_MESSAGE), 64 << 20).decode("utf-8", "replace")
        except OSError:
            return ""


class CodexReader(reader.Reader):
    def event(self, event: Json) -> None:
        kind = string(event.get("type"))
        if kind in ("item.started", "item.updated", "item.completed"):
            self._item(mapping(event.get("item")), kind[5:])
        elif kind == "thread.started":
            self.session_id = session(event.get("thread_id"))
        elif kind == "turn.started":
            self.ended = False
            self.activity.thinking()
        elif kind == "turn.completed":
            self.usage = mapping(event.get("usage"))
            self.ended = True
        elif kind == "turn.failed":
            self.failure = reader.error_text(event.get("error")) or "the turn failed"
            if LIMIT.search(self.failure):
                self.cut_off, self.failure = f"the answer was cut off: {self.failure}", ""
            self.ended = True
        elif kind == "error":
            self.warn(reader.error_text(event))
        elif "msg" in event:
            _old_event(self, mapping(event["msg"]))
        else:
            self.activity.unknown(kind or "?")

    def warn(self, text: str) -> None:
        """Note an error that need not be the end."""
        self.last_error = text
        if text:
            self.activity.note(text)

    def _item(self, item: Json, phase: str) -> None:
        kind = string(item.get("type")) or string(item.get("item_type"))
        handler = self.ITEMS.get(kind)
        if handler is None:
            self.activity.unknown(f"item {kind}" if kind else "item")
        else:
            handler(self, item, phase)

    def _message(self, item: Json, phase: str) -> None:
        if phase == "completed":
            self.activity.message(string(item.get("text")))

    def _reasoning(self, item: Json, phase: str) -> None:
        if phase == "completed":
            self.activity.thought(string(item.get("text")))

    def _command(self, item: Json, phase: str) -> None:
        key = ("command", ident(item.get("id")))
        if phase == "started":
            self.activity.begin("command", key, command=string(item.get("command")))
        elif phase == "completed":
            self.activity.end(
                "command",
                key,
                _status(item),
                command=string(item.get("command")),
                exitCode=whole(item.get("exit_code")),
                output=string(item.get("aggregated_output")),
            )

    def _file_change(self, item: Json, phase: str) -> None:
        if phase == "completed":
            for change in items(item.get("changes")):
                kind = string(change.get("kind")) or string(mapping(change.get("kind")).get("type"))
                self.activity.edit(CHANGES.get(kind, "write"), path_of(change.get("path")), _status(item))

    def _web_search(self, item: Json, phase: str) -> None:
        # The stream gives this item two ids; it is told apart by its words instead.
        query = clip(string(item.get("query")) or string(mapping(item.get("action")).get("query")))
        if phase == "started":
            self.activity.begin("search", ("search", query), query=query)
        elif phase == "completed":
            started_as = query if self.activity.is_open(("search", query)) else ""
            self.activity.end("search", ("search", started_as), query=query or None)

    def _mcp(self, item: Json, phase: str) -> None:
        name = f"{reader.word(item.get('server'))}.{reader.word(item.get('tool'))}"
        fields: Json = {"name": name, "input": reader.brief(item.get("arguments"))}
        key = ("tool", ident(item.get("id")))
        if phase == "started":
            self.activity.begin("tool", key, **fields)
        elif phase == "completed":
            output = reader.text_of(mapping(item.get("result")).get("content")) or reader.error_text(item.get("error"))
            self.activity.end("tool", key, _status(item), output=output or None, **fields)

    def _collaboration(self, item: Json, phase: str) -> None:
        prompt = string(item.get("prompt")) or string(item.get("tool"))
        key = ("agent", ident(item.get("id")))
        if phase == "started":
            self.activity.begin("agent", key, prompt=prompt)
        elif phase == "completed":
            self.activity.end("agent", key, _status(item), prompt=prompt)

    def _todo(self, item: Json, _phase: str) -> None:
        self.activity.plan(
            [(string(entry.get("text")), entry.get("completed") is True) for entry in items(item.get("items"))]
        )

    def _error(self, item: Json, phase: str) -> None:
        if phase == "completed":
            self.warn(reader.error_text(item))

    # item type: what reads it. assistant_message is what old versions called agent_message.
    ITEMS = {  # noqa: RUF012 - never changed
        "agent_message": _message,
        "assistant_message": _message,
        "reasoning": _reasoning,
        "command_execution": _command,
        "file_change": _file_change,
        "web_search": _web_search,
        "mcp_tool_call": _mcp,
        "collab_tool_call": _collaboration,
        "todo_list": _todo,
        "error": _error,
    }


def _status(item: Json) -> str:
    status = string(item.get("status"))
    return status if status in ("failed", "declined") else "completed"


# --- what only its session file knows: calls that the sandbox or a rule refused give no event ---

MAX_SESSION_BYTES = 16 << 20  # of the end of the file; its last turn is what counts
MAX_FOLDERS = 400
EXIT_CODE = re.compile(r"Process exited with code (-?[0-9]{1,9})\b")
OUTPUT = "Output:\n"
REFUSED = re.compile(r"[Rr]ejected|not permitted|denied by", re.DOTALL)
PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def session_file_tail(folder: str, thread: str) -> list[bytes]:
    """The last lines of sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl; [] where it cannot be read."""
    for looked, (path, folders, names) in enumerate(os.walk(folder)):
        if looked > MAX_FOLDERS:
            break
        folders.sort(reverse=True)  # the newest first
        for name in names:
            if name.startswith("rollout-") and name.endswith(f"{thread}.jsonl"):
                return last_lines(os.path.join(path, name), MAX_SESSION_BYTES)
    return []


def complete_account(activity: Activity, lines: list[bytes]) -> None:
    """Add the calls of the last turn that no event told of, each in its place; end those that stayed open."""
    entries = [entry for entry in map(_session_entry, lines) if entry is not None]
    begun = [number for number, entry in enumerate(entries) if entry.get("type") == "task_started"]
    entries = entries[begun[-1] :] if begun else entries
    outputs = {ident(entry.get("call_id")): _output(entry) for entry in entries if _is_output(entry)}
    known = activity.all_steps()
    last: Json | None = None
    for entry in entries:
        if entry.get("type") == "message" and entry.get("role") == "assistant":
            text = clip(reader.text_of(entry.get("content")))
            last = next((step for step in known if step["kind"] == "message" and step["text"] == text), last)
        elif entry.get("type") in ("function_call", "custom_tool_call"):
            output = outputs.get(ident(entry.get("call_id")))
            last = _complete_call(activity, known, last, entry, output)


def _session_entry(line: bytes) -> Json | None:
    try:
        payload = mapping(json.loads(line)).get("payload")
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _is_output(entry: Json) -> bool:
    return entry.get("type") in ("function_call_output", "custom_tool_call_output")


def _output(entry: Json) -> str:
    output = entry.get("output")
    return string(output) or reader.text_of(output) or string(mapping(output).get("content"))


def _complete_call(
    activity: Activity, known: list[Json], last: Json | None, entry: Json, output: str | None
) -> Json | None:
    """The step of a call of the session file, which is added where there is none; `last` for one that shows nothing."""
    if entry.get("name") == "apply_patch":
        for change, path in PATCHED.findall(string(entry.get("input"))):
            if output is not None and REFUSED.search(output):
                kind = CHANGES[change.lower()]
                last = activity.add_after(last, "edit", change=kind, path=path_of(path), status="declined")
        return last
    try:
        given = mapping(json.loads(string(entry.get("arguments"))))
    except (ValueError, RecursionError):
        return last
    command = string(given.get("cmd"))
    if entry.get("name") != "exec_command" or not command:
        return last
    step = next((one for one in known if one["kind"] == "command" and _same(one["command"], command)), None)
    match = EXIT_CODE.search(output or "")
    code = int(match.group(1)) if match else None
    shown = (output or "").partition(OUTPUT)[2] if match else output or ""
    if step is not None:
        known.remove(step)
        if step.get("status") == "running" and code is not None:
            step.update(status="failed" if code else "completed", exitCode=code, output=clip(shown))
        return step
    if output is None:
        return last  # it may not have begun
    status = "declined" if REFUSED.search(output) and not match else "failed" if code or not match else "completed"
    fields: Json = {"exitCode": code} if match else {}
    return activity.add_after(last, "command", command=command, status=status, output=shown, **fields)


def _same(told: object, command: str) -> bool:
    return string(told) == clip(command) or unwrapped(string(told)).strip() == clip(command)


# --- the events of versions before 0.30, each wrapped in `msg` ---

OLD_SILENT = ("token_count", "patch_apply_end", "turn_diff", "exec_command_output_delta", "plan_update")


def _old_event(reader: CodexReader, message: Json) -> None:
    """Read the message of one event into a reader."""
    kind = string(message.get("type"))
    if kind in OLD_EVENTS:
        OLD_EVENTS[kind](reader, message)
    elif not kind.endswith(("_delta", "_section_break")) and kind not in OLD_SILENT:
        reader.activity.unknown(kind or "?")


def _old_session(reader: CodexReader, message: Json) -> None:
    reader.session_id = session(message.get("session_id"))
    reader.model = word(message.get("model"))


def _old_begin(reader: CodexReader, message: Json) -> None:
    words = message.get("command")
    command = " ".join(map(string, words)) if isinstance(words, list) else string(words)
    reader.activity.begin("command", ("command", ident(message.get("call_id"))), command=command)


def _old_end(reader: CodexReader, message: Json) -> None:
    output = string(message.get("aggregated_output")) or string(message.get("stdout")) + string(message.get("stderr"))
    code = whole(message.get("exit_code"))
    status = "failed" if code else "completed"
    key = ("command", ident(message.get("call_id")))
    reader.activity.end("command", key, status, exitCode=code, output=output)


def _old_patch(reader: CodexReader, message: Json) -> None:
    for path, change in mapping(message.get("changes")).items():
        reader.activity.edit(CHANGES.get(next(iter(mapping(change)), ""), "write"), path_of(path))


def _old_complete(reader: CodexReader, _message: Json) -> None:
    reader.ended = True


OLD_EVENTS: dict[str, Callable[[CodexReader, Json], None]] = {
    "session_configured": _old_session,
    "task_started": lambda reader, _: reader.activity.thinking(),
    "agent_message": lambda reader, message: reader.activity.message(string(message.get("message"))),
    "agent_reasoning": lambda reader, message: reader.activity.thought(string(message.get("text"))),
    "exec_command_begin": _old_begin,
    "exec_command_end": _old_end,
    "patch_apply_begin": _old_patch,
    "task_complete": _old_complete,
    "error": lambda reader, message: reader.warn(string(message.get("message"))),
    "stream_error": lambda reader, message: reader.warn(string(message.get("message"))),
}


CLI = Codex()
