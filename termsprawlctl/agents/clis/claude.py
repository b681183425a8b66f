"""Claude Code: `claude -p --output-format stream-json`.

Its answer is the text of its last `result`. A background agent may report after the
first result and start another turn, so a result ends the run only when no task is open.
"""

from __future__ import annotations

import json
import re

from ..model import reader
from ..model.reader import Reader, ident, items, mapping, path_of, plan_of, remember, session, string, whole, word
from .cli import MCP_SERVER, AgentCli, LaunchPlan, Request, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..model.turn import Turn
    from ..model.types import Json


EXIT_CODE = re.compile(r"^(?:Error: )?Exit code ([0-9]{1,9})\b\n?")
REFUSED = re.compile(r"requested permissions|permission to use|haven't granted|needs approval|was rejected")
NO_OUTPUT = "(Bash completed with no output)"
# minimal is a level of other CLIs; low is the nearest that this one has.
EFFORTS = {"minimal": "low"}
PATHS = ("file_path", "notebook_path")
EDITORS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
SEARCHES = ("Grep", "Glob", "WebSearch", "WebFetch", "ToolSearch", "LS")
PLANS = ("TodoWrite",)
# `subtype` or `stop_reason` of a result -> what that means.
CUT_OFF = {
    "error_max_turns": "claude stopped: the most turns of a run were reached",
    "max_tokens": "the answer was cut off: the model reached its limit of output",
    "refusal": "the model refused to go on",
}
IN_BACKGROUND = re.compile(r"Command running in background with ID")


class Claude(AgentCli):
    name = "claude"
    executable = "claude"
    key_variables = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
    login_files = (".claude/.credentials.json",)
    acp = ("claude-agent-acp",)
    takes_effort = True
    install = "Install it with `npm install -g @anthropic-ai/claude-code` and log in with `claude`, then /login."
    login = "Log in with `claude`, then /login, or check ANTHROPIC_API_KEY."
    stop_signals = (("SIGTERM", 3.0), ("SIGTERM", 1.0))
    own_temporary = True
    # Set by a Claude Code that started us; older versions refuse to run inside another.
    unset = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
    permission = (
        "add permissions.allow rules to ~/.claude/settings.json, or start with `-- --permission-mode acceptEdits` "
        "or `-- --allowedTools TOOL`"
    )
    faults = (
        (r"no conversation found", "unknown_session", "Leave sessionId out to start a new session."),
        (r"cannot be used with root", "refused", "Claude Code does not skip permissions as root outside of a sandbox."),
    )

    def command(self, request: Request) -> list[str]:
        argv = [self.executable, "-p"]
        if request.structured:
            argv += ["--output-format", "stream-json", "--verbose"]
        if request.model:
            argv.append(f"--model={request.model}")
        if request.effort:
            argv.append(f"--effort={EFFORTS.get(request.effort, request.effort)}")
        if request.session_id:
            argv.append(f"--resume={request.session_id}")
        return [*argv, *request.arguments]

    def recent_turns(self, environment: Mapping[str, str], node_id: str, pids: list[int], folder: str) -> list[Turn]:
        from . import claude_files

        configuration = claude_files.configuration(environment)
        path = claude_files.find(configuration, node_id, pids, folder) if configuration else None
        return claude_files.recent_turns(path) if path else []

    def launch(self, around: Surroundings) -> LaunchPlan | None:
        if not around.offers("--mcp-config", "--append-system-prompt"):
            return None
        path = f"{around.folder}/mcp.json"
        server = {"type": "stdio", "command": around.bridge[0], "args": around.bridge[1:]}
        argv = [*around.argv, "--mcp-config", path, "--append-system-prompt", around.guide]
        if around.session_id and around.offers("--session-id"):
            argv += ["--session-id", around.session_id]
        return LaunchPlan(argv, mcp=True, files={"mcp.json": json.dumps({"mcpServers": {MCP_SERVER: server}})})

    def reader(self, cwd: str) -> Reader:
        return ClaudeReader(cwd)


class ClaudeReader(reader.Reader):
    def __init__(self, cwd: str = "") -> None:
        super().__init__(cwd)
        self._calls: dict[str, tuple[str, Any]] = {}  # tool_use id -> (tool, its path or plan)
        self._refused: dict[str, bool] = {}  # calls that needed a permission
        self._tasks = 0  # background tasks that are running
        self._finished = False

    def event(self, event: Json) -> None:
        self.session_id = session(event.get("session_id")) or self.session_id
        kind = string(event.get("type"))
        if kind == "system":
            self._system(event)
        elif kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            self._user(event)
        elif kind == "result":
            self._result(event)
        elif kind != "stream_event":
            self.activity.unknown(kind or "?")
        self.ended = self._finished and not self._tasks

    def _system(self, event: Json) -> None:
        kind = string(event.get("subtype"))
        if kind == "init":
            self._finished = False
            self.model = word(event.get("model"))
            self.activity.thinking()
        elif kind == "thinking_tokens":
            self.activity.thinking()
        elif kind == "permission_denied":
            remember(self._refused, ident(event.get("tool_use_id")), True)
        elif kind == "background_tasks_changed":
            self._tasks = len(items(event.get("tasks")))
        elif kind == "api_retry":
            status, error = whole(event.get("error_status")), string(event.get("error"))
            what = status or error or "an error"
            self.last_error = f"{status}: {error}" if status else str(what)
            tried, most = whole(event.get("attempt")), whole(event.get("max_retries"))
            self.activity.note(f"The model server failed ({what}); try {tried} of {most}")
        elif not kind.startswith("task_"):
            self.activity.unknown(f"system {kind}")

    def _assistant(self, event: Json) -> None:
        message = mapping(event.get("message"))
        inner = bool(event.get("parent_tool_use_id"))
        if event.get("is_api_error_message") is True or message.get("model") == "<synthetic>":
            self.last_error = reader.text_of(message.get("content")) or self.last_error
            return
        for block in items(message.get("content")):
            kind = string(block.get("type"))
            if kind == "text" and not inner:
                self.activity.message(string(block.get("text")), group=ident(message.get("id")) or None)
            elif kind == "thinking":
                self.activity.thought(string(block.get("thinking")))
            elif kind == "tool_use":
                self._begin(block, inner=inner)

    def _begin(self, block: Json, *, inner: bool) -> None:
        tool, key, given = word(block.get("name")), ident(block.get("id")), mapping(block.get("input"))
        if inner and key in self._calls:
            return  # a call of an inner agent may carry the id of the call that started it
        plan = plan_of(given.get("todos"), "content") if tool in PLANS else None
        told = path_of(*map(given.get, PATHS)) if tool in EDITORS else plan
        remember(self._calls, key, (tool, told))
        if tool == "Bash":
            self.activity.begin("command", key, command=string(given.get("command")))
        elif tool in ("Agent", "Task"):
            self.activity.begin("agent", key, prompt=string(given.get("description")) or string(given.get("prompt")))
        elif tool in SEARCHES:
            query = string(given.get("pattern")) or string(given.get("query")) or string(given.get("url"))
            self.activity.begin("search", key, query=query or tool)
        elif tool == "Read":
            self.activity.begin("read", key, path=path_of(given.get("file_path")))
        elif tool in EDITORS or tool in PLANS:
            return  # told when done
        else:
            self.activity.begin("tool", key, name=tool, input=reader.brief(given))

    def _user(self, event: Json) -> None:
        content = mapping(event.get("message")).get("content")
        for block in items(content):
            if block.get("type") == "tool_result":
                key = ident(block.get("tool_use_id"))
                if key in self._calls:
                    self._end(key, block, event.get("tool_use_result"))

    def _end(self, key: str, block: Json, result: object) -> None:
        tool, told = self._calls.pop(key)
        failed = block.get("is_error") is True
        status, output = ("failed" if failed else "completed"), reader.text_of(block.get("content"))
        if key in self._refused or (failed and REFUSED.search(output)):
            status = "declined"
        if tool == "Bash":
            match = EXIT_CODE.match(output)
            code = int(match.group(1)) if match else None if failed else 0
            if not match and (mapping(result).get("backgroundTaskId") or IN_BACKGROUND.match(output)):
                code, status = None, "started"  # it goes on, and nobody tells how it ends
            output = output[match.end() :] if match else "" if output == NO_OUTPUT else output
            self.activity.end("command", key, status, exitCode=code, output=output)
        elif tool in EDITORS:
            known = mapping(result)
            path = path_of(known.get("filePath"), told)
            self.activity.edit("add" if known.get("type") == "create" else "modify", path, status)
        elif tool in PLANS:
            self.activity.plan(told)
        elif tool in ("Agent", "Task"):
            # What it says of an agent in the background is not meant to be shown.
            launched = mapping(result).get("status") == "async_launched" or output.startswith("Async agent launched")
            self.activity.end("agent", key, status, output=None if launched else output)
        elif tool == "Read":
            self.activity.end("read", key, status)
        else:
            self.activity.end("search" if tool in SEARCHES else "tool", key, status, output=output)

    def _result(self, event: Json) -> None:
        self._finished = True
        text = string(event.get("result"))
        self._count(event)
        for denial in items(event.get("permission_denials")):
            self.deny(word(denial.get("tool_name")), reader.brief(denial.get("tool_input")))
        if event.get("is_error") is True:
            errors = event.get("errors")
            told = "; ".join(error for error in errors if isinstance(error, str)) if isinstance(errors, list) else ""
            if told.startswith("["):
                told = ""  # a note to its makers
            self.failure = text or told or string(event.get("terminal_reason")) or string(event.get("subtype"))
        else:
            self.failure = ""
            self.final_text = text or None
        reason = CUT_OFF.get(string(event.get("subtype"))) or CUT_OFF.get(string(event.get("stop_reason")), "")
        if reason:
            self.cut_off, self.failure = reason, ""

    def _count(self, event: Json) -> None:
        usage = mapping(event.get("usage"))
        for name, ours in (
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("cache_read_input_tokens", "cached_input_tokens"),
            ("cache_creation_input_tokens", "cache_write_input_tokens"),
        ):
            if whole(usage.get(name)) is not None:
                self.usage[ours] = usage[name]
        if reader.number(event.get("total_cost_usd")) is not None:
            self.usage["cost_usd"] = event["total_cost_usd"]


CLI = Claude()
