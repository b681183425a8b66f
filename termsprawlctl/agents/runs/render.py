"""An result as an MCP result: the text, and the same in a structure, both of bounded size. Pure."""

from __future__ import annotations

from ...base import jsontext
from ...base.text import shorten
from ..model.reader import number
from ..model.steps import left_out, summary
from ..model.text import one_line
from .result import StillRunning
from .status import CANCELLED, COMPLETED, FAILED, INCOMPLETE, MAX_MESSAGE, TIMED_OUT, exit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..model.settings import Settings
    from ..model.types import Json
    from .result import Result


ENDED = {FAILED: "failed", TIMED_OUT: "timed out", CANCELLED: "was cancelled", INCOMPLETE: "is incomplete"}
NO_ANSWER = "(The agent ended without a final message.)"
# Of the size of a result, the account of the run may have this part, if the answer needs the rest.
ACTIVITY_SHARE = 0.35
ERROR_SHARE = 0.4
FILES_SHARE = 0.2
MAX_STEP_TEXT = 300
MAX_TAIL = 1500  # bytes
MESSAGE_SHARE = 0.1  # of a message or note in characters of several bytes; MAX_MESSAGE ones may be four times as many
MAX_COUNTS, MAX_NAME = 20, 60  # of the numbers that a CLI tells as its usage, and characters of a name
MIN_ANSWER_BYTES = 200
MAX_PROCESSES, MAX_PROCESS_TEXT = 10, 160
MAX_LISTED = 60  # files of each sort


def text_of(result: Result, settings: Settings, full_output: str = "") -> str:
    """What a model reads: the answer, or what went wrong, then the account.

    `full_output` is the path of the whole where something had to go.
    """
    status = result.status
    budget = settings.result_bytes
    closing = _closing(result, full_output)
    account: list[str] = []
    if settings.trace and result.reader.events:
        steps = result.reader.steps(answered=status.answered)
        account = _fitted(summary(steps, result.reader.activity.omitted), int(budget * ACTIVITY_SHARE))
    if settings.trace and status.note:
        account.append(f"Note: {_within(status.note, budget)}.")
    if settings.trace or full_output:
        account += closing
    after = "\n".join(account)
    before = failure_text(result, budget) if status.name != COMPLETED else ""
    if result.heading:
        before = f"{_within(result.heading, budget)}\n\n{before}".rstrip()
    head = before
    if status.answered and (status.name == COMPLETED or result.reader.answer_parts()):
        answer = cut_answer(_answer(result), budget - _size(after) - _size(before) - 4, full_output, result.left_out)
        head = f"{before}\n\n{answer}" if before else answer
    elif not status.answered:
        after = "\n\n".join(part for part in (after, _tails(result, int(budget * ERROR_SHARE))) if part)
    return f"{head}\n\n{after}" if after else head


def failure_text(result: Result, budget: int) -> str:
    """One line: what went wrong, and what to do; for a result of `budget` bytes."""
    status = result.status
    message = _within(status.message, budget).rstrip(".")
    ended = "" if result.exit_status is None or status.name != FAILED else f" ({exit_text(result.exit_status)})"
    return f"{result.agent} {ENDED[status.name]}{ended}: {message}. {status.remedy}".strip()


def structure_of(result: Result, settings: Settings, full_output: str = "") -> Json:
    """The same as an object (see schemas.RESULT): within the budget as compact JSON."""
    status, budget = result.status, settings.result_bytes
    known: dict[str, object] = {
        "exitCode": result.exit_status,
        "sessionId": result.reader.session_id or None,
        "model": result.model or None,
        "cwd": result.cwd,
        "durationMs": result.duration_ms,
        "usage": _numbers(result.reader.usage) or None,
        "files": files_of(result.changes, int(budget * FILES_SHARE), partial=result.changes_partial),
        "note": _within(". ".join(part for part in (result.heading.rstrip("."), status.note) if part), budget) or None,
        "endedProcesses": [_process_row(process) for process in result.still_running[:MAX_PROCESSES]] or None,
        "fullOutput": full_output or None,
        "error": None if status.name == COMPLETED else _error(result, budget),
        "activity": _steps(result, int(budget * ACTIVITY_SHARE)) if settings.trace else [],
    }
    content: Json = {"status": status.name, "answer": ""}
    content.update((name, value) for name, value in known.items() if value is not None)
    if status.answered:
        answer = _answer(result, placeholder="")
        # JSON escapes make a text longer than it is, so it is cut until it fits.
        allowed = budget - _size(jsontext.compact(content))
        content["answer"] = cut_answer(answer, allowed, full_output, result.left_out)
        while _size(jsontext.compact(content)) > budget and allowed > MIN_ANSWER_BYTES:
            allowed = allowed * 4 // 5
            content["answer"] = cut_answer(answer, allowed, full_output, result.left_out)
    return content


def _error(result: Result, budget: int) -> Json:
    status = result.status
    error = {"code": status.code, "message": _within(status.message, budget), "remedy": status.remedy}
    tail = min(MAX_TAIL, int(budget * ERROR_SHARE / 3))
    for name, value in (("stderr", result.errors), ("stdout", result.output)):
        if value:
            error[name] = _last(value, tail)
    return error


def too_long(result: Result, settings: Settings) -> bool:
    """Whether the answer, or the account, does not fit into a result."""
    if not result.status.answered:
        return False
    answer = _answer(result)
    if len(answer) > settings.result_bytes:
        return True
    steps = result.reader.steps(answered=True) if settings.trace else []
    return _size(jsontext.compact([answer, steps, "\n".join(summary(steps))])) > settings.result_bytes


def full_text(result: Result, answer: Iterable[str]) -> Iterator[str]:
    """Yield the whole: the answer's pieces, then the whole account."""
    yield from answer
    lines = summary(result.reader.steps(answered=result.status.answered), result.reader.activity.omitted)
    yield "\n\n" + "\n".join(lines) + "\n"


def cut_answer(text: str, max_bytes: int, full_output: str, left_out: int = 0) -> str:
    """The text, or its beginning and its end with a line between that says where the whole is.

    `left_out` characters are missing in its middle already.
    """
    if len(text) <= max_bytes and _size(text) <= max_bytes:
        return text
    where = f"; the whole is in {full_output}" if full_output else ""
    room = max(MIN_ANSWER_BYTES, max_bytes - 120 - len(where))
    head, tail = _first(text, room * 3 // 4), _last(text, room // 4)
    gone = len(text) - len(head) - len(tail) + left_out
    return f"{head}\n\n[… about {gone} characters left out{where} …]\n\n{tail}"


def files_of(changes: dict[str, str], max_bytes: int, *, partial: bool = False) -> Json:
    """{"added": [paths], "modified": [...], "deleted": [...]}, each at most MAX_LISTED long.

    Together they have at most so many bytes; "more" counts the paths that are not listed, "partial" says
    that not all of the folder could be looked at.
    """
    files: Json = {}
    gone = 0
    for name in ("added", "modified", "deleted"):
        paths = sorted(path for path, change in changes.items() if change == name)
        files[name] = _taking([_valid(path) for path in paths[:MAX_LISTED]], max_bytes // 3)
        gone += len(paths) - len(files[name])
    if gone:
        files["more"] = gone
    if partial:
        files["partial"] = True
    return files


def _answer(result: Result, placeholder: str = NO_ANSWER) -> str:
    whole = "\n\n".join(result.reader.answer_parts()) if result.answer is None else result.answer
    return whole.strip("\n") or placeholder


def _closing(result: Result, full_output: str) -> list[str]:
    lines = []
    if result.reader.session_id:
        lines.append(f"Session: {result.reader.session_id} (pass it as sessionId to continue)")
    if full_output:
        lines.append(f"Full output: {full_output}")
    return lines


def _process_row(process: StillRunning) -> dict[str, object]:
    return {"pid": process.pid, "command": one_line(process.command, MAX_PROCESS_TEXT)}


def _tails(result: Result, budget: int) -> str:
    parts = []
    for name, value in (("stderr", result.errors), ("stdout", result.output)):
        if value:
            parts.append(f"--- end of {name} ---\n{_last(value, min(MAX_TAIL, budget // 2))}")
    return "\n\n".join(parts)


def _fitted(lines: list[str], budget: int) -> list[str]:
    """The heading and as many lines as fit: the first third, the last two thirds."""
    if _size("\n".join(lines)) <= budget:
        return lines
    first = _taking(lines[1:], budget // 3)
    last = _taking(lines[1 + len(first) :][::-1], budget * 2 // 3)[::-1]
    gone = len(lines) - 1 - len(first) - len(last)
    return [lines[0], *first, f"- {left_out(gone)}", *last] if gone else lines


def _taking(lines: list[str], budget: int) -> list[str]:
    taken = []
    for line in lines:
        budget -= _size(line) + 1
        if budget < 0:
            break
        taken.append(line)
    return taken


def _steps(result: Result, budget: int) -> list[Json]:
    """The steps as objects, long texts shortened; beyond the budget those in the middle go."""
    steps = [_short(step) for step in result.reader.steps(answered=result.status.answered)]
    omitted = result.reader.activity.omitted
    lines = [jsontext.compact(step) for step in steps]
    if not omitted and _size(",".join(lines)) <= budget:
        return steps
    first = len(_taking(lines, budget // 3))
    last = len(_taking(lines[first:][::-1], budget * 2 // 3))
    gone = {"kind": "omitted", "count": omitted + len(steps) - first - last}
    return [*steps[:first], gone, *steps[len(steps) - last :]]


def _short(step: Json) -> Json:
    short: Json = {}
    for name, value in step.items():
        if isinstance(value, str):
            short[name] = shorten(value, MAX_STEP_TEXT)
        elif isinstance(value, list):
            short[name] = value[:20]
        else:
            short[name] = value
    return {name: value for name, value in short.items() if value not in (None, "")}


def _valid(path: str) -> str:
    return jsontext.encode(path).decode()


def _numbers(usage: Json) -> Json:
    names = [name for name, value in usage.items() if number(value) is not None and len(name) <= MAX_NAME]
    return {name: usage[name] for name in names[:MAX_COUNTS]}


def _within(message: str, budget: int) -> str:
    """A message that has at most MAX_MESSAGE characters, in as many bytes as it may have."""
    return _first(message, max(MAX_MESSAGE, int(budget * MESSAGE_SHARE)))


def _size(text: str) -> int:
    return len(jsontext.encode(text))


def _first(text: str, max_bytes: int) -> str:
    return jsontext.encode(text[:max_bytes])[:max_bytes].decode("utf-8", "ignore")


def _last(text: str, max_bytes: int) -> str:
    return jsontext.encode(text[-max_bytes:])[-max_bytes:].decode("utf-8", "ignore")
