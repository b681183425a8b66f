"""Gemini CLI: `gemini -o stream-json`.

Messages come in pieces without an end mark: a tool call or the result ends one. There
are no exit codes of commands, no reasoning, and no word on whether a file was new.
"""

from __future__ import annotations

import re

from ...base.text import HeadAndTail
from ..model import reader
from ..model.reader import Reader, ident, mapping, path_of, plan_of, remember, session, string, whole, word
from .cli import AgentCli, LaunchPlan, Request, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model.types import Json


SEARCHES = ("grep_search", "search_file_content", "glob", "list_directory", "google_web_search", "web_fetch")
READS = ("read_file", "read_many_files")
API_ERROR = re.compile(r"\[API Error: (\{.*\})\]", re.DOTALL)
MAX_GIVEN = 300  # of a call's arguments, in case that it is denied
EDITS = ("write_file", "replace")
LOOP = re.compile(r"loop detected", re.IGNORECASE)
MAX_TURNS = re.compile(r"max(imum)?( number of)? session turns|turn limit", re.IGNORECASE)
EMPTY = re.compile(r"model returned an empty response", re.IGNORECASE)
# On stderr alone: "Attempt 1 failed with status 500. Retrying with backoff..."
RETRY = re.compile(r"^Attempt (\d{1,4}) failed(?: with status (\d{3}))?\.? Retrying")


class Gemini(AgentCli):
    name = "gemini"
    executable = "gemini"
    key_variables = ("GEMINI_API_KEY",)
    login_files = (".gemini/oauth_creds.json",)
    acp = ("gemini", "--acp", "--skip-trust")
    aliases = ("antigravity", "agy")
    install = "Install it with `npm install -g @google/gemini-cli` and log in by starting `gemini` once."
    login = "Log in by starting `gemini` once, or set GEMINI_API_KEY."
    # It ends at once at the first signal and leaves its tools behind.
    stop_signals = (("SIGTERM", 1.0),)
    own_temporary = True
    exits_truly = False  # 0 at a signal, too
    same_folder = True
    permission = "set tools.allowed in ~/.gemini/settings.json, or start with `-- --approval-mode auto_edit` (or yolo)"
    faults = (
        (
            r"invalid session identifier|error resuming session",
            "unknown_session",
            "Leave sessionId out to start a new session.",
        ),
        (
            r"trusted (folder|directory|workspace)|not trusted",
            "permission_rejected",
            "Trust the folder: start `gemini` there once, or start with `-- --skip-trust`.",
        ),
        (r"invalid auth method|please set an auth", "not_logged_in", login),
    )

    def command(self, request: Request) -> list[str]:
        argv = [self.executable]
        argv += ["-o", "stream-json" if request.structured else "text"]
        if request.model:
            argv.append(f"--model={request.model}")
        if request.session_id:
            argv.append(f"--resume={request.session_id}")
        return [*argv, *request.arguments]

    def launch(self, around: Surroundings) -> LaunchPlan | None:
        if not around.offers("--prompt-interactive"):
            return None
        return LaunchPlan([*around.argv, "--prompt-interactive", around.first_prompt()], mcp=False)

    def reader(self, cwd: str) -> Reader:
        return GeminiReader(cwd)


class GeminiReader(reader.Reader):
    def __init__(self, cwd: str = "") -> None:
        super().__init__(cwd)
        self._pieces = HeadAndTail()
        self._calls: dict[str, tuple[str, Any]] = {}  # tool id -> (tool, its plan or arguments)

    def event(self, event: Json) -> None:
        kind = string(event.get("type"))
        if kind == "message":
            if event.get("role") == "assistant":
                self._pieces.add(string(event.get("content")))
                if event.get("delta") is not True:
                    self._end_message()
            return
        self._end_message()
        if kind == "init":
            self.session_id = session(event.get("session_id"))
            self.model = word(event.get("model"))
            self.activity.thinking()
        elif kind == "tool_use":
            self._begin(ident(event.get("tool_id")), word(event.get("tool_name")), mapping(event.get("parameters")))
        elif kind == "tool_result":
            self._end(event)
        elif kind == "error":
            self.last_error = reader.error_text(event)
            self.activity.note(self.last_error)
            if LOOP.search(self.last_error):
                self.cut_off = "gemini stopped itself: it saw the model repeat itself"
        elif kind == "result":
            self._result(event)
        else:
            self.activity.unknown(kind or "?")

    def error_line(self, line: str) -> None:
        match = RETRY.match(line)
        if match:
            after = f" after HTTP {match.group(2)}" if match.group(2) else ""
            self.activity.note(f"The model server failed: retry {match.group(1)}{after}")

    def finish(self) -> None:
        self._end_message()

    def _end_message(self) -> None:
        if len(self._pieces):
            text, self._pieces = "".join(self._pieces.parts()), HeadAndTail()
            self.activity.message(text)

    def _begin(self, key: str, tool: str, given: Json) -> None:
        told = plan_of(given.get("todos"), "description") if tool == "write_todos" else reader.brief(given)[:MAX_GIVEN]
        remember(self._calls, key, (tool, told))
        self.no_answer = "gemini ended after a tool call"
        path = path_of(*map(given.get, ("file_path", "absolute_path", "path")))
        if tool == "run_shell_command":
            self.activity.begin("command", key, command=string(given.get("command")))
        elif tool in SEARCHES:
            query = string(given.get("pattern")) or string(given.get("query")) or string(given.get("prompt")) or path
            self.activity.begin("search", key, query=query or tool)
        elif tool in READS:
            self.activity.begin("read", key, path=path or path_of(reader.brief(given.get("paths"))))
        elif tool in EDITS:
            self.activity.begin("edit", key, change="write" if tool == "write_file" else "modify", path=path)
        elif tool != "write_todos":
            self.activity.begin("tool", key, name=tool, input=reader.brief(given))

    def _end(self, event: Json) -> None:
        key = ident(event.get("tool_id"))
        tool, told = self._calls.pop(key, ("", ""))
        failed = event.get("status") == "error"
        status = "failed" if failed else "completed"
        output = string(event.get("output")) or reader.error_text(event.get("error"))
        if failed and (
            "denied by policy" in output or "requires user confirmation" in output or "not permitted" in output
        ):
            status = "declined"
            self.deny(tool, str(told))
        self.no_answer = ""
        if tool == "run_shell_command":
            self.activity.end("command", key, status, output=output)
        elif tool in SEARCHES:
            self.activity.end("search", key, status, output=output)
        elif tool in READS:
            self.activity.end("read", key, status)
        elif tool in EDITS:
            self.activity.end("edit", key, status)
        elif tool == "write_todos":
            self.activity.plan(told)
        elif tool:
            self.activity.end("tool", key, status, output=output)

    def _result(self, event: Json) -> None:
        self.ended = True
        if event.get("status") != "success":
            message = reader.error_text(event.get("error"))
            inner = API_ERROR.match(message)
            self.failure = reader.error_text(inner.group(1)) if inner else message
            self.failure = self.failure or self.last_error or "the CLI reported an error"
            if MAX_TURNS.search(self.failure):
                self.cut_off, self.failure = "gemini stopped: the most turns of a session were reached", ""
            elif EMPTY.search(self.failure):
                self.failure = ""
        stats = mapping(event.get("stats"))
        for name, ours in (
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("cached", "cached_input_tokens"),
        ):
            if whole(stats.get(name)) is not None:
                self.usage[ours] = stats[name]


CLI = Gemini()
