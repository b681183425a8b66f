"""OpenCode: `opencode run --format json`.

Its answer is the text of the last message. It tells of a tool call only when it has
ended, and inside a step not always in order: steps are sorted by when they started.
"""

from __future__ import annotations

import json
import os
import re

from ...base.files import read_object, read_small
from ..model import reader
from ..model.arguments import MAX_MODEL
from ..model.reader import Reader, ident, items, mapping, number, path_of, session, string, whole, word
from .cli import MCP_SERVER, AgentCli, Ask, LaunchPlan, Request, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.types import Json


CHANGES = {"add": "add", "update": "modify", "delete": "delete", "move": "modify"}
# `reason` of a step's end -> what that means.
CUT_OFF = {
    "length": "the answer was cut off: the model reached its limit of output",
    "content-filter": "the answer was cut off by the provider's content filter",
}
TASK_RESULT = ("<task_result>", "</task_result>")
REJECTED = re.compile(r"permission requested: (.+?); auto-rejecting")
CONFIG_VARIABLES = ("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT")
LIST_TIMEOUT_S = 30.0
CONFIG_NAMES = ("opencode.json", "opencode.jsonc", "config.json")
# Comments are allowed there, so it is searched, not parsed. Agents have models, too;
# those are deeper, and do no harm here.
# Blanks alone at a line's start: line ends among them would be looked at from each of them.
NAMES_A_MODEL = re.compile(r'^[ \t]*"model"\s*:\s*"[^"]|[{,]\s*"model"\s*:\s*"[^"]', re.MULTILINE)
BUNDLED_PROVIDER = "opencode"
BUNDLED_DEFAULT = "big-pickle"  # what OpenCode itself uses where nobody is logged in


class OpenCode(AgentCli):
    name = "opencode"
    executable = "opencode"
    login_files = (".local/share/opencode/auth.json",)
    acp = ("opencode", "acp")
    install = "Install it with `npm install -g opencode-ai` and log in with `opencode auth login`."
    login = "Log in with `opencode auth login`, or check the key of the configured provider."
    # It mostly ignores the first signals; several in a row ended it each time.
    stop_signals = (("SIGTERM", 1.0), ("SIGTERM", 1.0), ("SIGTERM", 1.0))
    own_temporary = True  # each run leaves a library of 5.6 MB there
    same_folder = True
    permission = 'add "permission" rules to opencode.json, or start with `-- --auto` to approve what is not denied'
    faults = (
        (r"session not found", "unknown_session", "Leave sessionId out to start a new session."),
        (
            r"model not found|ProviderModelNotFound|provider not found",
            "unknown_model",
            "`opencode models` lists the models.",
        ),
        (
            r"config (file )?.{0,80}(is )?(invalid|not valid)|ConfigInvalid",
            "bad_configuration",
            "Correct opencode.json.",
        ),
    )

    def command(self, request: Request) -> list[str]:
        # Without the log the cause of a failure is "check server logs". It prints nothing when all is well.
        argv = [self.executable, "run", "--print-logs", "--log-level", "ERROR", f"--dir={request.cwd}"]
        if request.structured:
            argv += ["--format", "json", "--thinking"]
        if request.model:
            argv.append(f"--model={request.model}")
        if request.session_id:
            argv.append(f"--session={request.session_id}")
        return [*argv, *request.arguments]

    def launch(self, around: Surroundings) -> LaunchPlan | None:
        # The user's own content is never merged into ours: it may hold keys, and a tmux command
        # line is readable for all users of the machine. Each variable holds one value only.
        variable = next((name for name in CONFIG_VARIABLES if not around.environment.get(name)), None)
        if variable and around.offers("opencode", "mcp"):
            entry = {"type": "local", "command": around.bridge, "enabled": True}
            text = json.dumps({"mcp": {MCP_SERVER: entry}})
            value = text if variable == "OPENCODE_CONFIG_CONTENT" else f"{around.folder}/opencode.json"
            return LaunchPlan(around.argv, mcp=True, environment={variable: value}, files={"opencode.json": text})
        if around.offers("--prompt"):
            return LaunchPlan([*around.argv, "--prompt", around.first_prompt()], mcp=False)
        return None

    def reader(self, cwd: str) -> Reader:
        return OpenCodeReader(cwd)

    def default_model(self, request: Request, environment: dict[str, str], ask: Ask) -> str:
        return choose_model(request, environment, ask)

    def untouched_home(self, environment: dict[str, str]) -> str:
        home = environment.get("HOME") or os.path.expanduser("~")
        data = environment.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
        if os.path.exists(os.path.join(data, "opencode", "opencode.db")):
            return ""
        while data != os.path.dirname(data) and not os.path.isdir(data):
            data = os.path.dirname(data)
        return data

    def first_run_lost(self, errors: str) -> bool:
        return "Failed query:" in errors or "database is locked" in errors or "SQLITE_BUSY" in errors

    def denials(self, run: Reader, errors: str) -> list[str]:
        return REJECTED.findall(errors) or run.denied


class Call:
    """An ended call of a tool: what it was given, what it says of itself, what came out."""

    __slots__ = ("at", "given", "meta", "output", "status", "tool")

    def __init__(self, tool: str, given: Json, meta: Json, output: str, status: str, at: float | None) -> None:
        self.tool = tool
        self.given = given
        self.meta = meta
        self.output = output
        self.status = status
        self.at = at


class OpenCodeReader(reader.Reader):
    def __init__(self, cwd: str = "") -> None:
        super().__init__(cwd)
        self._tokens: dict[str, int] = {}

    def event(self, event: Json) -> None:
        self.session_id = session(event.get("sessionID")) or self.session_id
        handler = self.EVENTS.get(string(event.get("type")))
        if handler is None:
            self.activity.unknown(string(event.get("type")) or "?")
            return
        part = mapping(event.get("part"))
        times = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
        handler(self, event, part, number(times.get("start")) or number(event.get("timestamp")))

    def _step_start(self, _event: Json, _part: Json, _at: float | None) -> None:
        self.ended = False
        self.failure = ""  # what failed is being tried again
        self.activity.thinking()

    def _text(self, _event: Json, part: Json, at: float | None) -> None:
        self.no_answer = ""
        self.activity.message(string(part.get("text")), group=ident(part.get("messageID")) or None, at=at)

    def _reasoning(self, _event: Json, part: Json, at: float | None) -> None:
        self.activity.thought(string(part.get("text")), at)

    def _step_finish(self, _event: Json, part: Json, _at: float | None) -> None:
        self._count(mapping(part.get("tokens")), number(part.get("cost")))
        # More follows where the model called tools. If nothing does, there is no answer.
        calls = part.get("reason") == "tool-calls"
        self.ended = not calls
        self.no_answer = "opencode stopped after a tool call" if calls else ""
        self.cut_off = CUT_OFF.get(string(part.get("reason")), "")

    def _error(self, event: Json, _part: Json, _at: float | None) -> None:
        error = mapping(event.get("error"))
        self.failure = self.last_error = reader.error_text(error) or "an error without a message"
        status = mapping(error.get("data")).get("statusCode")
        if whole(status) is not None and str(status) not in self.failure:
            self.failure = f"{self.failure} (HTTP {status})"
        self.ended = True

    def _tool(self, _event: Json, part: Json, at: float | None) -> None:
        tool, state = word(part.get("tool")), mapping(part.get("state"))
        given, meta = mapping(state.get("input")), mapping(state.get("metadata"))
        meta = {**mapping(meta.get("metadata")), **meta}  # version 2 wraps it once more
        failed = state.get("status") == "error"
        status = "failed" if failed else "completed"
        output = reader.error_text(state.get("error")) if failed else string(state.get("output"))
        if failed and "rejected permission" in output:
            self.deny(tool, reader.brief(given))
            status = "declined"
        handler = self.TOOLS.get(tool)
        if handler is not None:
            handler(self, Call(tool, given, meta, output, status, at))
        else:
            self._end("tool", Call(tool, given, meta, output, status, at), name=tool or "?", input=reader.brief(given))

    def _bash(self, call: Call) -> None:
        code = whole(call.meta.get("exit"))
        call.output = "" if call.output == "(no output)" else call.output
        call.status = "failed" if code else call.status
        self._end("command", call, command=string(call.given.get("command")), exitCode=code)

    def _write(self, call: Call) -> None:
        self._edit("modify" if call.meta.get("exists") else "add", path_of(call.given.get("filePath")), call)

    def _replace(self, call: Call) -> None:
        self._edit("modify", path_of(call.given.get("filePath")), call)

    def _patch(self, call: Call) -> None:
        for file in items(call.meta.get("files")) or [{}]:
            path = path_of(file.get("filePath"), file.get("relativePath")) or "?"
            self._edit(CHANGES.get(string(file.get("type")), "write"), path, call)

    def _search(self, call: Call) -> None:
        words = (string(call.given.get(name)) for name in ("pattern", "query", "url", "path"))
        self._end("search", call, query=next(filter(None, words), call.tool))

    def _file(self, call: Call) -> None:
        call.output = ""
        self._end("read", call, path=path_of(call.given.get("filePath")))

    def _todo(self, call: Call) -> None:
        todos = items(call.meta.get("todos")) or items(call.given.get("todos"))
        self.activity.plan(reader.plan_of(todos, "content"), call.at)

    def _task(self, call: Call) -> None:
        call.output = _task_result(call.output)
        self._end("agent", call, prompt=string(call.given.get("description")) or string(call.given.get("prompt")))

    def _invalid(self, call: Call) -> None:
        call.status, call.output = "failed", string(call.given.get("error")) or call.output
        self._end("tool", call, name=word(call.given.get("tool")) or call.tool)

    def _end(self, kind: str, call: Call, **fields: object) -> None:
        self.activity.end(kind, object(), call.status, call.at, output=call.output or None, **fields)

    def _edit(self, change: str, path: str, call: Call) -> None:
        self.activity.edit(change, path, call.status, call.at)

    def _count(self, tokens: Json, cost: float | None) -> None:
        cache = mapping(tokens.get("cache"))
        for name, value in (
            ("input_tokens", tokens.get("input")),
            ("output_tokens", tokens.get("output")),
            ("reasoning_output_tokens", tokens.get("reasoning")),
            ("cached_input_tokens", cache.get("read")),
            ("cache_write_input_tokens", cache.get("write")),
        ):
            if whole(value) is not None:
                self.usage[name] = self.usage.get(name, 0) + value
        if cost:
            self.usage["cost_usd"] = self.usage.get("cost_usd", 0) + cost

    EVENTS = {  # noqa: RUF012 - never changed
        "step_start": _step_start,
        "text": _text,
        "reasoning": _reasoning,
        "step_finish": _step_finish,
        "error": _error,
        "tool_use": _tool,
    }
    TOOLS = {  # noqa: RUF012 - never changed
        "bash": _bash,
        "write": _write,
        **dict.fromkeys(("edit", "multiedit", "patch"), _replace),
        "apply_patch": _patch,
        **dict.fromkeys(("grep", "glob", "list", "websearch", "webfetch", "codesearch"), _search),
        "read": _file,
        **dict.fromkeys(("todowrite", "todoread"), _todo),
        "task": _task,
        "invalid": _invalid,
    }


def _task_result(output: str) -> str:
    """What stands between the marks; all of it where they are missing. Not a pattern: those take ever longer."""
    _, begin, rest = output.partition(TASK_RESULT[0])
    result, end, _ = rest.partition(TASK_RESULT[1])
    return result if begin and end else output


# Which model it should use when nobody chose one.
# Its own pick is the first that its catalogue offers, which need not be one that chats and
# calls tools. So: a model that the user's configuration or last session names is left to
# OpenCode; else the newest of `opencode models` that can do both and is not among the dearer
# half, one of the user's own providers before the free ones that come with OpenCode.
_chosen: dict[tuple[str, ...], str] = {}


def choose_model(request: Request, environment: dict[str, str], ask: Ask) -> str:
    """`provider/model`, or an empty string to leave the choice to OpenCode.

    `ask` as for AgentCli.default_model; it takes seconds, and is called once for a configuration.
    """
    if any(NAMES_A_MODEL.search(text) for text in _configurations(request.cwd, environment)):
        return ""
    if _recent(environment):
        return ""
    key = tuple(environment.get(name, "") for name in ("HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"))
    if key not in _chosen:
        listing = ask(["models", "--verbose"], LIST_TIMEOUT_S)
        if not listing:
            return ""  # it may tell the next time
        _chosen[key] = best_model(listing)
    return _chosen[key]


def best_model(listing: str) -> str:
    """The choice from what `opencode models --verbose` prints; empty when nothing fits."""
    models = [model for model in parse_models(listing) if _fits(model)]
    own = [model for model in models if model["providerID"] != BUNDLED_PROVIDER]
    bundled = [model for model in models if model["id"] == BUNDLED_DEFAULT]
    models = own or bundled or models
    if not models:
        return ""
    # Not the newest at any price: the dearer half is for who asks for it.
    middle = sorted(_price(model) for model in models)[(len(models) - 1) // 2]
    choice = max(
        (model for model in models if _price(model) <= middle), key=lambda model: string(model.get("release_date"))
    )
    return f"{choice['providerID']}/{choice['id']}"


def _price(model: Json) -> float:
    cost = model.get("cost")
    price = cost.get("output") if isinstance(cost, dict) else None
    return number(price) or 0.0


def parse_models(listing: str) -> list[Json]:
    """The models in a listing: a name, then its object over several lines, and so on."""
    found = []
    decoder = json.JSONDecoder()
    position = listing.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(listing, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict) and _is_word(value.get("id")) and _is_word(value.get("providerID")):
                found.append(value)
        position = listing.find("\n{", end)
        position = position + 1 if position >= 0 else position
    return found


def _is_word(value: object) -> bool:
    """Whether it can be a part of a model's name, which becomes an argument."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) < MAX_MODEL // 2


def _fits(model: Json) -> bool:
    can = model.get("capabilities")
    if not isinstance(can, dict) or model.get("status") in ("deprecated", "disabled"):
        return False
    sides = [can.get("input"), can.get("output")]
    return can.get("toolcall") is True and all(isinstance(side, dict) and side.get("text") is True for side in sides)


def _configurations(cwd: str, environment: dict[str, str]) -> Iterator[str]:
    yield environment.get("OPENCODE_CONFIG_CONTENT", "")
    home = environment.get("HOME") or os.path.expanduser("~")
    config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    paths = [environment.get("OPENCODE_CONFIG", "")]
    paths += [os.path.join(config, "opencode", name) for name in CONFIG_NAMES]
    folder = os.path.realpath(cwd)
    while True:
        paths += [os.path.join(folder, name) for name in CONFIG_NAMES[:2]]
        paths += [os.path.join(folder, ".opencode", name) for name in CONFIG_NAMES[:2]]
        if folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    for path in paths:
        yield _text(path)


def _recent(environment: dict[str, str]) -> bool:
    home = environment.get("HOME") or os.path.expanduser("~")
    state = environment.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    return bool(read_object(os.path.join(state, "opencode", "model.json"), missing={}).get("recent"))


def _text(path: str) -> str:
    if not path:
        return ""
    try:
        return read_small(path).decode("utf-8", "replace")
    except OSError:
        return ""


CLI = OpenCode()
