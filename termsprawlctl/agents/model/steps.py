"""What an agent did, step by step: labels while it works, a summary when it is done. Pure.

A step is a plain dict: `kind` and the fields that KINDS names for it. Steps stand in the
order in which they began; a call that ended out of order is updated in its place.
"""

from __future__ import annotations

from ...base.text import HeadAndTail
from .text import MAX_COMMAND, MAX_LABEL, MAX_OUTPUT, MAX_TEXT, clip, one_line, relative, unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .types import Json


# kind: the fields of its steps beside `kind`. Every kind of call also has `status`
# (running, completed, failed, declined; started: it goes on in the background); `output`
# is the cleaned beginning and end.
KINDS = {
    "command": ("command", "exitCode", "output"),
    "edit": ("change", "path"),  # change: add, modify, delete, or write where the CLI does not say
    "search": ("query", "output"),
    "read": ("path",),
    "tool": ("name", "input", "output"),
    "agent": ("prompt", "output"),  # work handed to an agent of its own
    "plan": ("items",),  # [{"text", "done"}]
    "reasoning": ("text",),
    "message": ("text",),  # said on the way, not the answer
    "notice": ("text",),  # a retry, a warning, an error that was not the end
    "printed": ("text",),  # a line that was no event
    "event": ("name",),  # one of a type that is not known
}
THINKING = "Thinking…"
READY = "Response ready"

# A run of days must not fill memory: beyond this many steps those in the middle go.
FIRST_STEPS = 300
LAST_STEPS = 700
MAX_FILES = 5000
MAX_OPEN, MAX_PLANNED = 1000, 100  # calls that have not ended, items of a plan


class Activity:
    """The growing account of one run; `cwd` makes paths short."""

    def __init__(self, cwd: str = "") -> None:
        self._cwd = cwd
        self._steps: list[_Entry] = []
        self._open: dict[object, _Entry] = {}
        self.omitted = 0
        self.files: dict[str, str] = {}  # path as in the steps -> added, modified, deleted
        self._labels: list[str] = []
        self._last_label = ""
        self._said: str | None = None  # label of a message that may turn out to be the answer
        self._answer = HeadAndTail()
        self._answer_group: object = None
        self._answer_serial = 0

    # --- telling -------------------------------------------------------------------------

    def begin(self, kind: str, key: object, at: float | None = None, **fields: Any) -> None:
        """A call has started; `key` finds it again. `at` (any unit) orders steps that come late."""
        entry = self._add(kind, at, {"status": "running", **fields})
        self._open[key] = entry
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        self._label(_begin_label(entry.step))

    def end(self, kind: str, key: object, status: str = "completed", at: float | None = None, **fields: Any) -> None:
        """A call has ended; one whose start was not seen is added now."""
        entry = self._open.pop(key, None)
        if entry is None or entry.step["kind"] != kind:
            entry = self._add(kind, at, {})
        entry.step.update({name: self._fitted(name, value) for name, value in fields.items() if value is not None})
        entry.step["status"] = status
        if kind == "edit" and status == "completed":
            self._count_file(entry.step)
        self._label(_end_label(entry.step))

    def is_open(self, key: object) -> bool:
        """Whether a call of this key has begun and not ended."""
        return key in self._open

    def edit(self, change: str, path: str, status: str = "completed", at: float | None = None) -> None:
        """A file was (or, by status, was not) added, modified or deleted."""
        self.end("edit", object(), status, at, change=change, path=path)

    def message(self, text: str, group: object = None, at: float | None = None) -> None:
        """The agent said something; what it says last is the answer. Parts of one group belong together."""
        if not text.strip():
            return
        if group is None or group != self._answer_group:
            if len(self._answer) == 1 and self._answer.parts() == [text]:
                return  # a stream that broke was played again
            self._answer, self._answer_group = HeadAndTail(), group
            self._answer_serial += 1
        self._answer.add(text)
        entry = self._add("message", at, {"text": clip(text)})
        entry.serial = self._answer_serial
        self._said = "Said: " + one_line(text, MAX_LABEL - 6)

    def thought(self, text: str, at: float | None = None) -> None:
        """The agent showed a piece of its reasoning."""
        if text.strip():
            self._add("reasoning", at, {"text": clip(text)})
            self._label(THINKING)

    def thinking(self) -> None:
        """The model is at work and has not said on what."""
        self._label(THINKING)

    def plan(self, items: list[tuple[str, bool]], at: float | None = None) -> None:
        """The whole plan, each item with whether it is done; the newest replaces the last."""
        fields = {"items": [{"text": clip(text, MAX_TEXT), "done": done} for text, done in items[:MAX_PLANNED]]}
        last = next((entry for entry in self._steps if entry.step["kind"] == "plan"), None)
        if last is not None:
            last.step.update(fields)
        else:
            self._add("plan", at, fields)
        done = sum(1 for _, finished in items if finished)
        self._label(f"Plan: {done} of {len(items)} done")

    def note(self, text: str, at: float | None = None) -> None:
        """Something that is not the agent's work: a retry, a warning."""
        text = clip(text, MAX_TEXT)
        last = self._steps[-1].step if self._steps else {}
        if last.get("kind") == "notice":
            last["text"] = text  # the fifth retry says all that the first four said
        else:
            self._add("notice", at, {"text": text})
        self._label(one_line(text, MAX_LABEL))

    def unknown(self, name: str) -> None:
        """An event of a type that is not known; the newest of a series is kept."""
        last = self._steps[-1].step if self._steps else {}
        if last.get("kind") != "event" or last.get("name") != name:
            self._add("event", None, {"name": one_line(name, MAX_LABEL)})

    def printed(self, line: str) -> None:
        """A line that is no event."""
        if line.strip():
            self._add("printed", None, {"text": clip(line, MAX_TEXT)})

    def say(self, label: str) -> None:
        """A label without a step."""
        self._label(label)

    def ready(self) -> None:
        """The answer is there."""
        self._said = None
        self._label(READY)

    # --- asking --------------------------------------------------------------------------

    def take_labels(self) -> list[str]:
        """Labels of what happened since the last call."""
        labels, self._labels = self._labels, []
        return labels

    def answer_parts(self) -> list[str]:
        """What the agent said last, whole; [] when it said nothing."""
        return self._answer.parts()

    def said_after_everything(self) -> bool:
        """Whether the last message came after all calls, and none is open."""
        return len(self._answer) > 0 and not self._open and bool(self._steps) and self._steps[-1].serial > 0

    def worked_after_answer(self) -> bool:
        """Whether a call began after the last message."""
        for entry in reversed(self._steps):
            if entry.serial > 0 or "status" in entry.step:
                return entry.serial == 0
        return False

    def add_after(self, last: Json | None, kind: str, **fields: object) -> Json:
        """A step that the events did not tell of, behind `last` (None: before all); returns it."""
        entry = self._add(kind, None, fields)
        self._steps.remove(entry)
        place = next((number + 1 for number, other in enumerate(self._steps) if other.step is last), 0)
        entry.at = self._steps[place - 1].at if place else None
        self._steps.insert(place, entry)
        if kind == "edit" and fields.get("status") == "completed":
            self._count_file(entry.step)
        return entry.step

    def all_steps(self) -> list[Json]:
        """The steps themselves, in the order in which they were told."""
        return [entry.step for entry in self._steps]

    def open_calls(self) -> int:
        """How many calls have begun and not ended."""
        return len(self._open)

    def steps(self, *, answered: bool) -> list[Json]:
        """All steps in order; without the last message where it is the answer."""
        serial = self._answer_serial if answered else -1
        at = 0.0
        keyed = []
        for entry in self._steps:
            at = at if entry.at is None else entry.at
            if not (entry.step["kind"] == "message" and entry.serial == serial):
                keyed.append((at, entry.step))
        if any(entry.at is not None for entry in self._steps):
            keyed.sort(key=lambda pair: pair[0])
        return [step for _, step in keyed]

    # --- inside --------------------------------------------------------------------------

    def _add(self, kind: str, at: float | None, fields: Json) -> _Entry:
        fields = {name: self._fitted(name, value) for name, value in fields.items()}
        entry = _Entry({"kind": kind, **fields}, at)
        self._steps.append(entry)
        if len(self._steps) > FIRST_STEPS + LAST_STEPS:
            del self._steps[FIRST_STEPS]
            self.omitted += 1
        return entry

    def _fitted(self, name: str, value: object) -> object:
        """A field as it is kept: paths short, long texts cut."""
        if name == "path":
            return relative(str(value), self._cwd)
        return clip(str(value)) if name in ("command", "output", "input", "query", "prompt") else value

    def _label(self, label: str) -> None:
        said, self._said = self._said, None
        for text in (said, label):
            if text and text != self._last_label:
                self._labels.append(text)
                self._last_label = text

    def _count_file(self, step: Json) -> None:
        path = step["path"]
        before = self.files.get(path)
        if before is None and len(self.files) >= MAX_FILES:
            return
        if step["change"] == "delete":
            if before == "added":
                del self.files[path]
            else:
                self.files[path] = "deleted"
        elif before != "added":
            self.files[path] = "added" if step["change"] == "add" and before is None else "modified"


class _Entry:
    """A step, when it happened, and which message it was a part of (0: none)."""

    __slots__ = ("at", "serial", "step")

    def __init__(self, step: Json, at: float | None) -> None:
        self.step = step
        self.at = at
        self.serial = 0


def summary(steps: list[Json], omitted: int = 0) -> list[str]:
    """The lines of the account, one a step, headed by how many there are."""
    lines = [f"- {describe(step)}" for step in steps]
    if omitted:
        lines.insert(min(FIRST_STEPS, len(lines)), f"- {left_out(omitted)}")
    return [f"--- Activity ({counted(len(steps) + omitted)}) ---", *lines]


def counted(number: int) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} step" if number == 1 else f"{number} steps"


def left_out(number: int) -> str:
    """What stands for steps that are not listed."""
    return f"… {counted(number)} left out …"


def describe(step: Json) -> str:
    """One line of the summary."""
    kind = step["kind"]
    said = _SAID.get(kind)
    if said is not None:
        return said + one_line(step.get("text") or step.get("name") or "", MAX_TEXT)
    if kind == "plan":
        marks = [f"[{'x' if item['done'] else ' '}] {item['text']}" for item in step["items"]]
        return "plan: " + one_line("; ".join(marks), MAX_TEXT)
    if kind == "edit":
        return "edited " + _edited(step, MAX_COMMAND) + _ending(step)
    return _WORDS[kind][1].lower() + " " + _subject(step, quoted=True) + _ending(step)


_SAID = {
    "reasoning": "thought: ",
    "message": "",
    "notice": "note: ",
    "printed": "printed: ",
    "event": "unknown event: ",
}
# kind: (label while it goes on, label and summary when it has ended)
_WORDS = {
    "command": ("Running", "Ran"),
    "edit": ("Editing", "Edited"),
    "search": ("Searching", "Searched"),
    "read": ("Reading", "Read"),
    "tool": ("Calling", "Called"),
    "agent": ("Delegating", "Delegated"),
}
_SUBJECT = {"command": "command", "search": "query", "read": "path", "tool": "name", "agent": "prompt", "edit": "path"}


def _subject(step: Json, *, quoted: bool) -> str:
    text = one_line(str(step.get(_SUBJECT[step["kind"]]) or "?"), MAX_COMMAND)
    if step["kind"] == "command" and quoted:
        return f"`{text}`"
    if step["kind"] == "tool" and quoted and step.get("input"):
        return f"{text} {one_line(step['input'], MAX_LABEL)}"
    return text


def _ending(step: Json) -> str:
    ending = ""
    if step.get("exitCode") is not None:
        ending = f" -> exit {step['exitCode']}"
    elif step.get("status") == "running":
        ending = " -> not finished"
    elif step.get("status") in ("failed", "declined", "started"):
        ending = f" -> {step['status']}"
    output = one_line(step.get("output") or "", MAX_OUTPUT)
    return f"{ending} | {output}" if output else ending


def _begin_label(step: Json) -> str:
    return f"{_WORDS[step['kind']][0]}: {_label_subject(step)}"


def _end_label(step: Json) -> str:
    ending = ""
    if step.get("exitCode") is not None:
        ending = f" (exit {step['exitCode']})"
    elif step.get("status") in ("failed", "declined", "started"):
        ending = f" ({step['status']})"
    return f"{_WORDS[step['kind']][1]}: {_label_subject(step)}{ending}"


def _label_subject(step: Json) -> str:
    if step["kind"] == "command":
        return one_line(unwrapped(step.get("command") or "?"), MAX_LABEL - 20)
    if step["kind"] == "edit":
        return _edited(step, MAX_LABEL - 20)
    return one_line(_subject(step, quoted=False), MAX_LABEL - 20)


def _edited(step: Json, limit: int) -> str:
    # A name may hold anything: line ends, too.
    return f"{step.get('change', 'write')} {one_line(step.get('path') or '?', limit)}"
