"""What all event readers share: bytes of a line in, an account of the run kept. Pure.

The streams change without notice between versions of the CLIs, so a reader never fails:
what it does not know is kept as a step, and a field of another type counts as missing.
"""

from __future__ import annotations

import json
import math
import re

from ...base.text import shorten
from .arguments import SESSION_ID
from .steps import MAX_OPEN, MAX_PLANNED, Activity
from .text import MAX_LABEL, MAX_TEXT, clip, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .types import Json


# Words with which CLIs wait for somebody to approve, and those of a line that says it is decided already.
APPROVAL = re.compile(
    r"wait(ing)? for (your |user )?(approval|permission|confirmation)"
    r"|(permission|approval|confirmation) (is )?(requested|required)"
    r"|[\[(]y/n[\])]|do you want to (proceed|continue|allow)|press enter to (continue|approve|confirm)",
    re.IGNORECASE,
)
ANSWERED = re.compile(r"auto-?(reject|approv|allow|accept)|denied|rejected|declined", re.IGNORECASE)
APPROVAL_EVENT = re.compile(r"approval_request|request_approval|permission[._](asked|request)")
UNREADABLE = "an event that cannot be read"
MAX_ID = 200  # characters of an id that tell it apart
MAX_PATH = 4096  # characters; no system has longer ones
MAX_DENIED = 20  # a result names only the first few
# Every reader of JSON has whole numbers up to here; no count or exit code comes near.
LARGEST = 2**53
# What a reader's code raises where a field is of a type, a size or a depth that no version has had so far.
_UNEXPECTED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


class Reader:
    """Follows one run. Subclasses read events in `event()`; see the attributes for what they tell."""

    def __init__(self, cwd: str = "") -> None:
        self.activity = Activity(cwd)
        self.session_id = ""
        self.model = ""
        self.usage: Json = {}
        self.events = 0  # lines that were events of this CLI
        self.ended = False  # the stream's own end was seen; may be taken back by a later event
        self.failure = ""  # the fatal error that the stream told of
        self.last_error = ""  # the last error that need not have been fatal
        self.cut_off = ""  # why the answer, or the work, is not whole although nothing failed
        self.no_answer = ""  # why the end brought no answer although nothing failed
        self.waits_for = ""  # the approval that it said last it is waiting for
        self.denied: list[str] = []  # what the CLI wanted to do and was not permitted to
        self.final_text: str | None = None  # the answer, where the stream names it apart from the messages

    def feed(self, line: bytes) -> None:
        """Read one line, without its end. Never raises."""
        text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text:
            return
        try:
            event = json.loads(text) if text.startswith("{") else None
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            if text.startswith("{"):
                self.activity.unknown(f"{UNREADABLE} ({len(text)} characters)")
            else:
                self.activity.printed(text)
                self.hear(one_line(text, MAX_TEXT))
            return
        self.events += 1
        kind = string(event.get("type"))
        self.waits_for = kind if APPROVAL_EVENT.search(kind) else ""
        try:
            self.event(event)
        except _UNEXPECTED:
            self.activity.unknown(string(event.get("type")) or UNREADABLE)

    def event(self, event: Json) -> None:
        """Read one event."""
        raise NotImplementedError

    def deny(self, tool: str, given: str) -> None:
        """Note what was not permitted."""
        if len(self.denied) < MAX_DENIED:
            self.denied.append(one_line(f"{tool} {given}", MAX_TEXT // 2))

    def hear(self, line: str) -> None:
        """A line that is no event, of stderr or stdout: it may ask for an approval."""
        if APPROVAL.search(line) and not ANSWERED.search(line):
            self.waits_for = one_line(line, MAX_TEXT // 2)

    def error_line(self, line: str) -> None:
        """Hear of a line on stderr, cleaned."""

    def finish(self) -> None:
        """No more lines will come."""

    def answer_parts(self) -> list[str]:
        """The final answer, in paragraphs; [] when there is none."""
        return self.activity.answer_parts() if self.final_text is None else [self.final_text]

    def steps(self, *, answered: bool) -> list[Json]:
        """The steps; without the answer where the run brought one."""
        if answered and self.final_text is not None:
            answered = self.final_text.strip() == "\n\n".join(self.activity.answer_parts()).strip()
        told = clip(self.failure, MAX_TEXT)
        steps = self.activity.steps(answered=answered)
        return [step for step in steps if not (step["kind"] == "notice" and step["text"] == told)]


def string(value: object) -> str:
    """The value where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Json:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Json]:
    """The objects in a value that is a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """The value where it is a string, as a word that is shown: on one line, short."""
    return one_line(string(value), MAX_LABEL)


def ident(value: object) -> str:
    """An id, as something to find it by that stays small: `7` and `"7"` differ, "" where it is none."""
    if isinstance(value, str):
        return shorten(value, MAX_ID)
    return f"#{value}" if whole(value) is not None else ""


def session(value: object) -> str:
    """A session's id, if it is one that can be given back to the CLI."""
    text = string(value)
    return text if SESSION_ID.fullmatch(text) else ""


def path_of(*values: object) -> str:
    """The first of the values that is a path."""
    return next((shorten(value, MAX_PATH) for value in values if value and isinstance(value, str)), "")


def plan_of(todos: object, text: str) -> list[tuple[str, bool]]:
    """The items of a plan as Activity.plan() takes them; `text` is the field that says what is to be done."""
    return [
        (clip(string(todo.get(text)), MAX_TEXT), todo.get("status") == "completed")
        for todo in items(todos)[:MAX_PLANNED]
    ]


def remember(table: dict[Any, Any], key: object, value: object) -> None:
    """table[key] = value; the oldest entry goes where there are too many."""
    table[key] = value
    if len(table) > MAX_OPEN:
        del table[next(iter(table))]


def whole(value: object) -> int | None:
    """The value where it is an integer that every reader of JSON can hold."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


def number(value: object) -> float | None:
    """The value where it is a number; infinity and NaN are none, JSON does not have them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return whole(value)


def brief(value: object) -> str:
    """Arguments of a tool call, as short JSON."""
    if not value:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(content: object) -> str:
    """The text in a tool's result: a string, or a list of blocks."""
    if isinstance(content, list):
        return "\n".join(string(block.get("text")) or f"[{string(block.get('type'))}]" for block in items(content))
    return string(content)


def error_text(error: object) -> str:
    """The message in an error that may be a string, an object, or JSON in a string."""
    if isinstance(error, str):
        stripped = error.strip()
        if stripped.startswith("{"):
            try:
                return error_text(json.loads(stripped)) or stripped
            except (ValueError, RecursionError):
                return stripped
        return stripped
    inner = mapping(error)
    for value in (mapping(inner.get("data")).get("message"), inner.get("message"), inner.get("error")):
        if value:
            text = error_text(value)
            code = inner.get("code")
            return f"{text} ({code})" if whole(code) is not None and str(code) not in text else text
    return string(inner.get("name"))
