"""What all event readers share: bytes of a line in, an account of the run kept. Pure.

The streams change without notice between versions of the CLIs, so a reader never fails:
what it does not know is kept as a step, and a field of another type counts as missing.
"""

from __future__ import annotations

import json
import math

from .activity import Activity
from .wording import MAX_SAID, clip

UNREADABLE = "an event that cannot be read"


class Reader:
    """Follows one run. Subclasses read events in `event()`; see the attributes for what they tell."""

    def __init__(self, cwd: str = "") -> None:
        self.activity = Activity(cwd)
        self.session_id = ""
        self.model = ""
        self.usage: dict = {}
        self.events = 0  # lines that were events of this CLI
        self.ended = False  # the stream's own end was seen; may be taken back by a later event
        self.failure = ""  # the fatal error that the stream told of
        self.last_error = ""  # the last error that need not have been fatal
        self.no_answer = ""  # why the end brought no answer although nothing failed
        self.denied: list[str] = []  # what the CLI wanted to do and was not permitted to
        self.final_text: str | None = None  # the answer, where the stream names it apart from the messages

    def feed(self, line: bytes) -> None:
        """Read one line, without its end. Never raises."""
        text = line.decode("utf-8", "replace").strip()
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
            return
        self.events += 1
        try:
            self.event(event)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError):
            # A field of a type that no version has had so far.
            self.activity.unknown(string(event.get("type")) or UNREADABLE)

    def event(self, event: dict) -> None:
        """Read one event."""
        raise NotImplementedError

    def error_line(self, line: str) -> None:
        """Hear of a line on stderr, cleaned."""

    def finish(self) -> None:
        """No more lines will come."""

    def answer_parts(self) -> list[str]:
        """The final answer, in paragraphs; [] when there is none."""
        return self.activity.answer_parts() if self.final_text is None else [self.final_text]

    def steps(self, *, answered: bool) -> list[dict]:
        """The steps; without the answer where the run brought one."""
        if answered and self.final_text is not None:
            answered = self.final_text.strip() == "\n\n".join(self.activity.answer_parts()).strip()
        told = clip(self.failure, MAX_SAID)
        steps = self.activity.steps(answered=answered)
        return [step for step in steps if not (step["kind"] == "notice" and step["text"] == told)]


def string(value: object) -> str:
    """The value where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[dict]:
    """The objects in a value that is a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """The value where it is an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


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
                inner = error_text(json.loads(stripped))
            except (ValueError, RecursionError):
                inner = ""
            return inner or stripped
        return stripped
    inner = mapping(error)
    for value in (mapping(inner.get("data")).get("message"), inner.get("message"), inner.get("error")):
        if value:
            text = error_text(value)
            code = inner.get("code")
            return f"{text} ({code})" if whole(code) is not None and str(code) not in text else text
    return string(inner.get("name"))
