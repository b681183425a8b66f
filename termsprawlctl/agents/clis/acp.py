"""Any agent that speaks the Agent Client Protocol: JSON-RPC, one message a line, over stdin and stdout.

One generic record takes all of them; a known one is a row of words (see copilot.py). The client side is
a reader that also answers: lines come in, `outbox` holds what is to be sent. Protocol version 1.

What holds for all six agents that were recorded: `end_turn` alone is no success, the answer is the last
run of chunks, a call may be named first by a question for permission, and exit codes stand in a place of
each agent's own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

from ... import __version__
from ...base.text import HeadAndTail
from ..model import reader
from ..model.reader import ident, items, mapping, number, path_of, remember, session, string, whole, word
from ..model.steps import MAX_PLANNED, Activity
from ..model.text import MAX_LABEL, MAX_TEXT, clip, one_line
from .cli import AgentCli, Request
from .permission import Permissions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json

    Handler = Callable[[Json, Json], None]


VERSION = 1
NOT_FOUND, AUTHENTICATE = -32601, -32000
KINDS = {"execute": "command", "read": "read", "search": "search", "fetch": "search"}
EDITS = ("edit", "delete", "move")
CUT_OFF = {
    "max_tokens": "the answer was cut off: the model reached its limit of output",
    "max_turn_requests": "the agent stopped: the most requests of a turn were reached",
    "refusal": "the agent refused to go on",
}
# Updates that change nothing that is told.
SILENT = (
    "user_message_chunk",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "compaction_update",
    "compaction_summary_chunk",
)
EXIT_CODE = re.compile(r"^(?:Error: )?Exit code ([0-9]{1,9})\b\n?")  # claude-agent-acp
FENCED = re.compile(r"```[a-z]*\n(.*?)\n?```\Z", re.DOTALL)
EXIT_LINE = re.compile(r"^Exit Code: (-?[0-9]{1,9})$", re.MULTILINE)  # qwen
LIMIT = re.compile(r"reason: (max_output_tokens|content_filter)")
INTERNAL = "Internal error: "
MODEL_ERROR = re.compile(r"^(API )?Error: ")
MAX_STRAY = 20


class AcpCli(AgentCli):
    """An agent that is started with `words` and spoken to over its standard streams."""

    conversational = True
    exits_truly = False  # without the answer to the prompt nothing has ended in order
    own_temporary = True
    stop_signals = (("SIGTERM", 5.0),)  # wrappers: the agent proper follows up to 5 s later
    permission = "start with `--permissions allow-edits` or `--permissions allow`"
    login = "Log in with the agent's own command first; it wants an account."
    faults: tuple[tuple[str, str, str], ...] = (
        (
            r"-32000|authentication[ _]required|authentication_failed|no previous login|not logged in",
            "not_logged_in",
            "",
        ),
        (
            r"-32002|session cannot be continued|session not found|unknown session|no previous sessions",
            "unknown_session",
            "Leave sessionId out.",
        ),
        (r"protocol version", "wrong_version", "Use another version of the agent, or its native mode."),
    )

    def __init__(
        self,
        name: str,
        words: list[str],
        *,
        install: str = "",
        login: str = "",
        environment: dict[str, str] | None = None,
        native: AgentCli | None = None,
    ) -> None:
        """`native`: the record of the same agent without the protocol."""
        self.name = name
        self._native = native or AgentCli()
        self.words = words
        self.executable = words[0] if words else ""
        self.install = (
            install
            or self._native.install
            or f"Install it, or correct the command: {self.executable} has to speak ACP."
        )
        self.login = login or self._native.login or type(self).login
        self.environment = environment or {}
        self.faults = tuple((pattern, code, fix or self.login) for pattern, code, fix in type(self).faults)

    def command(self, request: Request) -> list[str]:
        return [*self.words, *request.arguments]

    def untouched_home(self, environment: dict[str, str]) -> str:
        return self._native.untouched_home(environment)

    def reader(self, cwd: str) -> AcpReader:
        return AcpReader(cwd)


class Call:
    """A call of a tool as the messages so far tell it; a later message replaces what it names."""

    def __init__(self) -> None:
        self.kind = ""
        self.title = ""
        self.status = ""
        self.given: Json = {}
        self.content: list[Json] = []
        self.output: object = None
        self.meta: Json = {}
        self.streamed = HeadAndTail()  # output that came in pieces (codex-acp)
        self.paths: list[str] = []
        self.begun = False  # shown as a step
        self.ended = False
        self.refused = False

    def take(self, update: Json) -> None:
        """One more message about it."""
        self.kind = string(update.get("kind")) or self.kind
        self.title = string(update.get("title")) or self.title
        self.status = string(update.get("status")) or self.status
        self.given = mapping(update.get("rawInput")) or self.given
        if isinstance(update.get("content"), list):
            self.content = items(update["content"])
        if update.get("rawOutput") is not None:
            self.output = update["rawOutput"]
        if isinstance(update.get("locations"), list):
            self.paths = [path for path in (path_of(one.get("path")) for one in items(update["locations"])) if path]
        meta = mapping(update.get("_meta"))
        self.meta = {**self.meta, **meta}
        piece = string(mapping(meta.get("terminal_output_delta")).get("data"))
        if piece:
            self.streamed.add(piece)

    def command(self) -> str:
        """The command line of an `execute` call."""
        given = self.given.get("command")
        words = " ".join(map(string, given)) if isinstance(given, list) else string(given)
        return words or self.title.strip("`")

    def diffs(self) -> list[Json]:
        """The changes of files that it shows."""
        return [one for one in self.content if one.get("type") == "diff"]

    def text(self) -> str:
        """What came out of it."""
        shown = "\n".join(
            string(mapping(one.get("content")).get("text")) for one in self.content if one.get("type") == "content"
        )
        if shown.strip():
            fenced = FENCED.match(shown.strip())
            return fenced.group(1) if fenced else shown
        if len(self.streamed):
            return "".join(self.streamed.parts())
        known = mapping(self.output)
        for name in ("output", "content", "formatted_output", "error"):
            if string(known.get(name)):
                return string(known[name])
        return string(self.output)

    def exit_code(self, agent: str) -> int | None:
        """Of its command, from the place where this agent has it; None where it does not tell."""
        known = mapping(self.output)
        places = [
            mapping(known.get("metadata")).get("exit"),
            known.get("exit_code"),
            mapping(self.meta.get("terminal_exit")).get("exit_code"),
            *(one.get("exitCode") for one in items(known.get("contents"))),
        ]
        code = next((whole(place) for place in places if whole(place) is not None), None)
        if code is None and "claude" in agent and self.status == "failed":
            match = EXIT_CODE.match(self.text())
            code = int(match.group(1)) if match else None
        if code is None and "qwen" in agent:
            match = EXIT_LINE.search(self.text())
            code = int(match.group(1)) if match else None
        return code


class Calls:
    """The calls of a run, each created by whichever message names it first, and the steps that they make."""

    def __init__(self, activity: Activity) -> None:
        self.agent = ""  # the agent's own name, for what each does in its own way
        self._activity = activity
        self._known: dict[str, Call] = {}

    def open(self) -> list[Call]:
        """Those that have not ended."""
        return [call for call in self._known.values() if not call.ended]

    def find(self, update: Json) -> tuple[str, Call]:
        """The call that a message is about, which may be the first to name it."""
        key = ident(update.get("toolCallId"))
        call = self._known.get(key)
        if call is None:
            call = Call()
            remember(self._known, key, call)
        call.take(update)
        return key, call

    def take(self, update: Json) -> None:
        """A message about a call: it begins, goes on or ends."""
        key, call = self.find(update)
        if call.status in ("completed", "failed"):
            self.end(key, call)
        elif call.given.get("command") if call.kind == "execute" else call.given:
            self.begin(key, call)

    def begin(self, key: str, call: Call) -> None:
        """It is known what is called. An edit is told when it is done."""
        if not (call.begun or call.ended or call.kind in EDITS):
            call.begun = True
            self._activity.begin(KINDS.get(call.kind, "tool"), key, **self._fields(call))

    def _fields(self, call: Call) -> Json:
        kind = KINDS.get(call.kind, "tool")
        path = next(iter(call.paths), "") or path_of(*map(call.given.get, ("path", "file_path", "filePath")))
        if kind == "command":
            return {"command": call.command()}
        if kind == "read":
            return {"path": path or one_line(call.title, MAX_LABEL)}
        if kind == "search":
            given = (string(call.given.get(name)) for name in ("pattern", "query", "url"))
            return {"query": next(filter(None, given), "") or call.title}
        return {"name": one_line(call.title, MAX_LABEL) or "?", "input": reader.brief(call.given)}

    def end(self, key: str, call: Call) -> None:
        """It has ended, or was refused, after which some agents say no more of it."""
        if call.ended:
            return
        call.ended = True
        status = "declined" if call.refused else call.status
        if call.kind in EDITS or (call.diffs() and call.kind not in KINDS):
            self._edit(call, status)
            return
        kind, fields = KINDS.get(call.kind, "tool"), self._fields(call)
        if kind == "command":
            code = call.exit_code(self.agent)
            status = "failed" if code and status == "completed" else status
            self._activity.end("command", key, status, exitCode=code, output=call.text(), **fields)
        elif kind == "read":
            self._activity.end("read", key, status, **fields)
        else:
            self._activity.end(kind, key, status, output=call.text() or None, **fields)

    def _edit(self, call: Call, status: str) -> None:
        changes = {}
        for diff in call.diffs():
            path = path_of(diff.get("path"))
            new = not string(diff.get("oldText"))
            # A piece that is put in has no old text, either: of a file that was there it tells elsewhere.
            told = mapping(diff.get("_meta")).get("kind")  # codex-acp
            changes[path] = "delete" if told == "delete" else "add" if new else "modify"
        if call.kind == "delete":
            changes = dict.fromkeys(changes or call.paths, "delete")
        if not changes:
            made = mapping(mapping(call.output).get("metadata")).get("exists") is False  # opencode
            changes = dict.fromkeys(call.paths[:20] or [call.title or "?"], "add" if made else "write")
        for path, change in changes.items():
            self._activity.edit(change, path, status)


class AcpReader(reader.Reader):
    """The client of one task. `outbox` holds messages to be sent, as bytes with their line end."""

    def __init__(self, cwd: str = "") -> None:
        super().__init__(cwd)
        self.outbox: list[bytes] = []
        self.prompted = False  # the prompt has been sent
        self.turn_over = False  # the prompt was answered, or will never be sent
        self._request = Request("", cwd)
        self._session = ""  # as the agent names it
        self._live = False  # updates belong to this run, not to the history of a resumed session
        self._can: Json = {}
        self._logins: list[str] = []
        self._waiting: dict[int, Handler] = {}
        self._settings: list[tuple[str, Json]] = []  # requests that are still to be sent before the prompt
        self._cancelled = False
        self._system_error = False
        self._calls = Calls(self.activity)
        self.permissions = Permissions(self._calls, self._send, self.deny)
        self._last_chunk = ""
        self._said, self._thought = HeadAndTail(), HeadAndTail()
        self._message_id: str | None = None
        self._stray = 0

    # --- what is sent --------------------------------------------------------------------

    def start(self, request: Request) -> None:
        """Begin the conversation that carries out this request."""
        self._request = request
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "termsprawlctl", "title": "termsprawlctl", "version": __version__}
        params = {"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client}
        self._ask("initialize", params, self._initialized)

    def cancel(self) -> None:
        """Ask the agent to stop its turn; the answer to the prompt confirms it."""
        if not self._cancelled:
            self._cancelled = True
            self.permissions.cancel()
            if self._session and not self.turn_over:
                self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def _send(self, message: Json) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        self.outbox.append(text.encode("utf-8", "replace") + b"\n")

    def _ask(self, method: str, params: Json, handler: Handler) -> None:
        key = len(self._waiting) + 1
        self._waiting[key] = handler
        self._send({"id": key, "method": method, "params": params})

    def _give_up(self, message: str) -> None:
        self.failure = self.failure or message
        self.turn_over = self.ended = True

    # --- what comes ----------------------------------------------------------------------

    def event(self, event: Json) -> None:
        if event.get("jsonrpc") != "2.0":
            self.events -= 1
            self._stray += 1
            if self._stray <= MAX_STRAY:
                self.activity.unknown("a line that is no message of the protocol")
        elif "method" not in event:
            self._answered(event)
        elif "id" in event:
            self._requested(event)
        elif event["method"] == "$/cancel_request":
            self.permissions.take_back(mapping(event.get("params")).get("requestId"))
        elif event["method"] == "session/update":
            params = mapping(event.get("params"))
            if self._live and (not self._session or params.get("sessionId") == self._session):
                self._update(mapping(params.get("update")))

    def _answered(self, event: Json) -> None:
        key = whole(event.get("id"))
        handler = self._waiting.get(key) if key is not None else None
        if key is not None and handler is not None:
            self._waiting[key] = _ignore
            handler(mapping(event.get("result")), mapping(event.get("error")))

    def _requested(self, event: Json) -> None:
        if event["method"] == "session/request_permission":
            self._end_texts()
            self.permissions.decide(event["id"], mapping(event.get("params")), self._request)
        else:
            error = {"code": NOT_FOUND, "message": "Method not found"}
            self._send({"id": event["id"], "error": error})

    def _initialized(self, result: Json, error: Json) -> None:
        if error:
            self._give_up(error_text(error))
            return
        if result.get("protocolVersion") != VERSION:
            told = one_line(reader.brief(result.get("protocolVersion")) or str(result.get("protocolVersion")), 20)
            self._give_up(f"it speaks protocol version {told}, and this program {VERSION}")
            return
        self._calls.agent = string(mapping(result.get("agentInfo")).get("name")).lower()
        self._can = mapping(result.get("agentCapabilities"))
        self._logins = [word(one.get("name")) for one in items(result.get("authMethods"))]
        self.activity.thinking()
        if self._request.session_id:
            self._continue()
        else:
            self._live = True
            self._ask("session/new", self._where(), self._opened)

    def _where(self) -> Json:
        return {"cwd": self._request.cwd, "mcpServers": self._request.mcp_servers}

    def _continue(self) -> None:
        resumes = isinstance(mapping(self._can.get("sessionCapabilities")).get("resume"), dict)
        params = {"sessionId": self._request.session_id, **self._where()}
        if resumes:
            self._ask("session/resume", params, self._resumed)
        elif self._can.get("loadSession") is True:
            self._ask("session/load", params, self._loaded)
        else:
            self._give_up("this agent cannot continue a session: leave sessionId out")

    def _resumed(self, result: Json, error: Json) -> None:
        if error.get("code") == NOT_FOUND and self._can.get("loadSession") is True:
            # qwen names what it does not have.
            params = {"sessionId": self._request.session_id, **self._where()}
            self._ask("session/load", params, self._loaded)
        else:
            self._loaded(result, error)

    def _loaded(self, result: Json, error: Json) -> None:
        self._live = True
        if error:
            self._give_up(f"the session cannot be continued: {self._login_text(error)}")
            return
        self._opened({"sessionId": self._request.session_id, **result}, error)

    def _opened(self, result: Json, error: Json) -> None:
        if error:
            self._give_up(self._login_text(error))
            return
        self._session = string(result.get("sessionId"))
        self.session_id = session(self._session)
        if not self._session:
            self._give_up("it opened a session without an id")
            return
        self.model = current_model(result)
        try:
            self._settings = choices(self._session, self._request, result)
        except ValueError as problem:
            self._give_up(str(problem))
            return
        self._next()

    def _login_text(self, error: Json) -> str:
        text = error_text(error)
        if error.get("code") == AUTHENTICATE and self._logins:
            text = f"{text} It offers: {one_line(', '.join(self._logins), MAX_LABEL)}"
        return text

    def _next(self) -> None:
        """Send the next request before the prompt, or the prompt."""
        if self._settings:
            method, params = self._settings.pop(0)
            self._ask(method, params, self._set)
            return
        self.prompted = True
        content = [{"type": "text", "text": self._request.prompt}]
        self._ask("session/prompt", {"sessionId": self._session, "prompt": content}, self._over)

    def _set(self, _result: Json, error: Json) -> None:
        if error:
            self._give_up(error_text(error))
        else:
            self._next()

    def _over(self, result: Json, error: Json) -> None:
        """The turn is over."""
        self._end_texts()
        self.permissions.open = []
        self.turn_over = self.ended = True
        if error:
            self._give_up(self._login_text(error))
            return
        self._count(result)
        reason = string(result.get("stopReason"))
        if reason == "cancelled":
            self.no_answer = "the turn was cancelled"
        elif reason in CUT_OFF:
            self.cut_off = CUT_OFF[reason]
        elif reason != "end_turn":
            self.failure = f"it stopped for the reason {word(result.get('stopReason')) or '(none)'}"
        else:
            self._suspect()

    def _suspect(self) -> None:
        """What an ordinary end of the turn hides."""
        said = "".join(self.activity.answer_parts()).strip()
        # copilot puts an error behind what the model had said, without a break.
        last = said if MODEL_ERROR.match(said) else self._last_chunk if "copilot" in self._calls.agent else ""
        open_calls = self._calls.open()
        if LIMIT.search(said) and self._system_error:
            self.cut_off = CUT_OFF["max_tokens"]
        elif self._system_error or MODEL_ERROR.match(last):
            self.failure = clip(reader.error_text(last or said), MAX_TEXT) or "the agent reports a system error"
        elif self.denied and (not self.activity.said_after_everything() or said.startswith("Info: Operation cancel")):
            self.no_answer = "it stopped after something was not permitted"
        elif open_calls:
            self.cut_off = f"the turn ended while a call had not: {one_line(open_calls[0].command() or '?', MAX_LABEL)}"

    # --- updates -------------------------------------------------------------------------

    def _update(self, update: Json) -> None:
        kind = string(update.get("sessionUpdate"))
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._chunk(update, thought=kind == "agent_thought_chunk")
            return
        self._end_texts()
        if kind in ("tool_call", "tool_call_update"):
            self._calls.take(update)
        elif kind == "plan":
            entries = items(update.get("entries"))[:MAX_PLANNED]
            self.activity.plan([(string(one.get("content")), one.get("status") == "completed") for one in entries])
        elif kind == "notice":
            words = (string(update.get("title")), string(update.get("description")))
            self.activity.note(": ".join(filter(None, words)))
        elif kind == "usage_update":
            cost = mapping(update.get("cost"))
            if cost.get("currency") == "USD" and number(cost.get("amount")) is not None:
                self.usage["cost_usd"] = cost["amount"]
        elif kind == "session_info_update":
            status = mapping(mapping(mapping(update.get("_meta")).get("codex")).get("threadStatus"))
            self._system_error = self._system_error or status.get("type") == "systemError"
        elif kind not in SILENT:
            self.activity.unknown(f"update {kind or '?'}")

    def _chunk(self, update: Json, *, thought: bool) -> None:
        content = mapping(update.get("content"))
        text = string(content.get("text"))
        if not thought and content.get("type") not in ("text", None):
            text = string(content.get("uri")) or f"[{word(content.get('type'))}]"
        if not text:
            return
        key = string(update.get("messageId")) or None
        if thought != bool(len(self._thought)) or key != self._message_id:
            self._end_texts()
        self._message_id = key
        self._last_chunk = text
        (self._thought if thought else self._said).add(text)

    def _end_texts(self) -> None:
        """A message, or a thought, is whole."""
        if len(self._said):
            text, self._said = "".join(self._said.parts()), HeadAndTail()
            self.activity.message(text)
        if len(self._thought):
            text, self._thought = "".join(self._thought.parts()), HeadAndTail()
            self.activity.thought(text)
        self._message_id = None

    def finish(self) -> None:
        self._end_texts()

    def _count(self, result: Json) -> None:
        usage = mapping(result.get("usage"))
        quota = mapping(mapping(mapping(result.get("_meta")).get("quota")).get("token_count"))
        for values, name, ours in (
            (usage, "inputTokens", "input_tokens"),
            (usage, "outputTokens", "output_tokens"),
            (usage, "thoughtTokens", "reasoning_output_tokens"),
            (usage, "cachedReadTokens", "cached_input_tokens"),
            (usage, "cachedWriteTokens", "cache_write_input_tokens"),
            (quota, "input_tokens", "input_tokens"),
            (quota, "output_tokens", "output_tokens"),
        ):
            if whole(values.get(name)) is not None:
                self.usage[ours] = values[name]


def _ignore(_result: Json, _error: Json) -> None:
    """A second answer to one request."""


def error_text(error: Json) -> str:
    """What a JSON-RPC error says: its message, what its data adds, and its code."""
    message = reader.error_text(string(error.get("message")))
    data = error.get("data")
    known = mapping(data)
    added = [string(data)] + [
        reader.error_text(known.get(name)) for name in ("details", "message", "errorKind", "error")
    ]
    parts = [message, *(text for text in added if text and text not in message)]
    if message == "Internal error" and len(parts) > 1:
        del parts[0]
    parts = [part.removeprefix(INTERNAL) for part in parts if part != "unknown"]
    code = error.get("code")
    text = ": ".join(part for part in parts if part) or "an error without a message"
    return f"{text} ({code})" if whole(code) is not None and str(code) not in text else text


def current_model(opened: Json) -> str:
    """The model of a session that was opened."""
    option = _option(opened, "model")
    return word(mapping(option).get("currentValue")) or word(mapping(opened.get("models")).get("currentModelId"))


def choices(session_id: str, request: Request, opened: Json) -> list[tuple[str, Json]]:
    """The requests that set what the caller chose, with ids that the agent itself offers. Raises ValueError."""
    found = []
    for category, wanted, plural in (
        ("model", request.model, "models"),
        ("mode", request.mode, "modes"),
        ("thought_level", request.effort, ""),
    ):
        if not wanted:
            continue
        option = _option(opened, category)
        offered = _values(option) if option else _listed(opened, plural)
        if category == "thought_level" and wanted not in offered:
            continue  # an agent without that setting, as with the others
        if wanted not in offered:
            raise ValueError(f"{category} not found: {wanted}. It offers: {_some(offered) or 'no choice'}")
        if option:
            params = {"sessionId": session_id, "configId": option.get("id"), "value": wanted}
            found.append(("session/set_config_option", params))
        else:
            name = "modelId" if category == "model" else "modeId"
            found.append((f"session/set_{category}", {"sessionId": session_id, name: wanted}))
    return found


def _option(opened: Json, category: str) -> Json | None:
    options = items(opened.get("configOptions"))
    return next((one for one in options if one.get("category") == category and one.get("type") != "boolean"), None)


def _values(option: Json) -> list[str]:
    groups = items(option.get("options"))
    flat = [one for group in groups for one in (items(group.get("options")) if "options" in group else [group])]
    return [string(one.get("value")) for one in flat if string(one.get("value"))]


def _listed(opened: Json, plural: str) -> list[str]:
    known = mapping(opened.get(plural))
    if plural == "models":
        return [string(one.get("modelId")) for one in items(known.get("availableModels"))]
    return [string(one.get("id")) for one in items(known.get("availableModes"))]


def _some(names: list[str]) -> str:
    return one_line(", ".join(names), 300)


def mcp_servers(text: str) -> list[Json]:
    """The servers of `{"mcpServers": {NAME: {command, args, env} or {type, url, headers}}}` as the protocol has them.

    Raises ValueError, whose text says what is wrong.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    servers = mapping(content).get("mcpServers")
    if not isinstance(servers, dict):
        raise ValueError('it has no "mcpServers"')  # noqa: TRY004 - of a file's content
    found = []
    for name, entry in servers.items():
        known = mapping(entry)
        if string(known.get("command")):
            given = known.get("args")
            arguments = given if isinstance(given, list) else []
            pairs = [{"name": key, "value": str(value)} for key, value in mapping(known.get("env")).items()]
            command = known["command"]
            path = command if os.path.isabs(command) else _found(command)
            found.append({"name": name, "command": path, "args": [str(one) for one in arguments], "env": pairs})
        elif string(known.get("url")):
            pairs = [{"name": key, "value": str(value)} for key, value in mapping(known.get("headers")).items()]
            kind = "sse" if known.get("type") == "sse" else "http"
            found.append({"type": kind, "name": name, "url": known["url"], "headers": pairs})
        else:
            raise ValueError(f'its server {name!r} has neither "command" nor "url"')
    return found


def _found(command: str) -> str:
    from ...base.processes import find_program

    return find_program(command) or command
