"""A question for permission as a person sees it: what is to be done, and what may be answered.

Pure, but that `allow-edits` follows the links of a path. Only what can be shown can be allowed: a call that
tells nothing, or whose command is too long to be read, is refused unasked.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ...base.files import is_inside
from ...base.text import harmless
from ..model.reader import MAX_PATH, brief, items, mapping, path_of, string
from ..model.text import clip, plain, relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import Json
    from .acp import Call, Calls
    from .cli import Request


TAKEN_BACK = -32800  # the code of a request that was cancelled
MAX_COMMAND = 4000
MAX_DIFF_LINES = 80
MAX_DIFF_LINE = 300
MAX_COMPARED = 200_000  # characters; of more the new text alone is shown
# An option that holds from now on can write the user's settings, so it is not offered.
OFFERED = ("allow_once", "reject_once", "reject_always")


# What `allow-edits` is about: kind of a call, how many files it must name for us to know where it writes.
EDITED_PATHS = {"edit": 1, "move": 2}
MAX_SHOWN_PATH = 200


class Permission:
    """A question that a person is to answer. `options` are (value, title), their values those of `kinds`."""

    __slots__ = ("call", "ids", "key", "kinds", "message", "options", "request_id")

    def __init__(self, request_id: object, key: str, call: Call, message: str, offered: list[Json]) -> None:
        self.request_id = request_id
        self.key = key
        self.call = call
        self.message = message
        self.options: list[tuple[str, str]] = []
        self.ids: dict[str, object] = {}  # the agent's own, by our value
        self.kinds: dict[str, str] = {}
        for one in offered:
            kind = string(one.get("kind"))
            if kind in OFFERED:
                value = kind if kind not in self.ids else f"{kind}_{len(self.ids) + 1}"
                self.ids[value] = one.get("optionId")
                self.kinds[value] = kind
                self.options.append((value, clip(string(one.get("name")), 80) or kind))

    def can_allow(self) -> bool:
        """Whether there is something to decide."""
        return bool(self.message) and "allow_once" in self.kinds.values()


class Permissions:
    """The questions of one agent: answered by the policy, with an option of its kind, or left to a person."""

    def __init__(self, calls: Calls, send: Callable[[Json], None], deny: Callable[[str, str], None]) -> None:
        self._calls = calls
        self._send = send
        self._deny = deny
        self._cancelled = False
        self.asked = 0
        self.open: list[Permission] = []  # those that a person is to answer, oldest first

    def decide(self, request_id: object, params: Json, request: Request) -> None:
        """Take a question."""
        key, call = self._calls.find(mapping(params.get("toolCall")))
        self.asked += 1
        if self._cancelled:
            self._reply(request_id, {"outcome": "cancelled"})
            return
        policy = request.permissions
        message = harmless(message_of(self._calls.agent or "the agent", request.cwd, call)) if policy == "ask" else ""
        question = Permission(request_id, key, call, message, items(params.get("options")))
        if policy == "ask" and question.can_allow():
            self.open.append(question)
            return
        reason = ""
        allowed = policy == "allow"
        if policy == "allow-edits" and call.kind in EDITED_PATHS:
            reason = _why_not_an_edit_inside(call, request.cwd)
            allowed = not reason
        wanted = "allow_once" if allowed else "reject_once"
        self._settle(question, wanted if wanted in question.ids else "", allowed=allowed, reason=reason)

    def answer(self, question: Permission, value: str, reason: str) -> None:
        """A person has chosen this option, or none of them, for this reason."""
        self.open.remove(question)
        allowed = question.kinds.get(value) == "allow_once"
        chosen = value if value in question.ids else "reject_once" if "reject_once" in question.ids else ""
        self._settle(question, chosen, allowed=allowed, reason=reason)

    def cancel(self) -> None:
        """The turn is cancelled: each question, open or still to come, is answered so."""
        self._cancelled = True
        for question in self.open:
            self._reply(question.request_id, {"outcome": "cancelled"})
        self.open = []

    def take_back(self, request_id: object) -> None:
        """The agent does not wait for the answer to a question any more."""
        for question in [one for one in self.open if one.request_id == request_id]:
            self.open.remove(question)
            self._send({"id": request_id, "error": {"code": TAKEN_BACK, "message": "Request cancelled"}})

    def _settle(self, question: Permission, value: str, *, allowed: bool, reason: str = "") -> None:
        call = question.call
        if allowed:
            self._calls.begin(question.key, call)
        else:
            call.refused = True
            given = call.command() or brief(call.given)
            self._deny(call.kind or "tool", f"{given} ({reason})" if reason else given)
            self._calls.end(question.key, call)
        if value:
            self._reply(question.request_id, {"outcome": "selected", "optionId": question.ids[value]})
        else:
            self._reply(question.request_id, {"outcome": "cancelled"})

    def _reply(self, request_id: object, outcome: Json) -> None:
        self._send({"id": request_id, "result": {"outcome": outcome}})


def _why_not_an_edit_inside(call: Call, cwd: str) -> str:
    """Why `allow-edits` does not allow this call; "" when all that it changes lies in the folder of the run."""
    paths = [*call.paths, *(path_of(one.get("path")) for one in call.diffs())]
    if len(set(paths)) < EDITED_PATHS[call.kind] or "" in paths:
        return "it does not tell which files it changes"
    outside = [path for path in paths if not _is_file_inside(path, cwd)]
    return f"{clip(outside[0], MAX_SHOWN_PATH)} is outside of {cwd}" if outside else ""


def _is_file_inside(path: str, cwd: str) -> bool:
    # An agent may take these for something else than a name in the folder; a longer path was shortened.
    if path.startswith(("~", "file:")) or "\0" in path or len(path) >= MAX_PATH:
        return False
    return is_inside(os.path.join(cwd, path), cwd)


def message_of(agent: str, cwd: str, call: Call) -> str:
    """What the agent asks for; "" where that cannot be shown whole."""
    diffs = call.diffs()
    if call.kind == "execute":
        command = plain(call.command()).strip()
        if not command or len(command) > MAX_COMMAND:
            return ""
        return f"{agent} wants to run this command in {cwd}:\n\n{command}"
    if diffs:
        shown = "\n\n".join(_diff(one, cwd) for one in diffs)
        return f"{agent} wants to change files in {cwd}:\n\n{_shortened(shown)}"
    what = clip(call.title, MAX_COMMAND) or call.kind
    given = clip(brief(call.given), MAX_COMMAND)
    paths = [relative(path, cwd) for path in call.paths]
    parts = [part for part in (what, given, clip(", ".join(paths), MAX_COMMAND)) if part]
    return f"{agent} asks for permission in {cwd}:\n\n" + "\n".join(parts) if parts else ""


def _diff(change: Json, cwd: str) -> str:
    import difflib

    path = relative(plain(path_of(change.get("path"))), cwd) or "?"
    old, new = string(change.get("oldText")), string(change.get("newText"))
    if not old or len(old) + len(new) > MAX_COMPARED:
        return "\n".join([f"+++ {path}", *(f"+{line}" for line in plain(new).splitlines())])
    lines = difflib.unified_diff(plain(old).splitlines(), plain(new).splitlines(), path, path, lineterm="", n=2)
    return "\n".join(lines)


def _shortened(text: str) -> str:
    lines = text.splitlines()
    shown = [clip(line, MAX_DIFF_LINE) if len(line) > MAX_DIFF_LINE else line for line in lines[:MAX_DIFF_LINES]]
    if len(lines) > MAX_DIFF_LINES:
        shown.append(f"({len(lines) - MAX_DIFF_LINES} more lines are not shown)")
    return "\n".join(shown)
