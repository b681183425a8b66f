"""Whether somebody is in the middle of a line: told from what the pane in front shows. Pure.

tmux does not tell which keys were pressed, only when. So the line with the cursor is looked
at: what stands after the prompt was typed and not sent. The prompt is known from an earlier
look at this pane, or by the sign that it ends with. Where that is not certain the answer is
UNKNOWN, and the caller waits longer.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

EMPTY, DRAFT, UNKNOWN = "empty", "draft", "unknown"
# How long a line blocks after the last key where it is not certain to be a draft, or is one of a program
# that is no shell.
UNCERTAIN_S = 60.0
SHELLS = frozenset(
    (
        *("sh", "bash", "dash", "ash", "busybox", "zsh", "fish", "ksh", "ksh93", "mksh", "oksh", "pdksh", "yash"),
        *("tcsh", "csh", "rc", "es", "elvish", "nu", "xonsh", "pwsh", "osh", "ysh"),
    )
)
# What ends a prompt, with a space behind it or nothing.
_PROMPT = re.compile(r"➜\s+\S+ (?:git:\(.*?\) )?(?:✗ )?|.*?[$#%>\u276f➜»λ⟩\u203a▶](?:\s+|$)")
# What ends a question: "[y/n] ", "(yes/no)? ", "Password: ".
_QUESTION = re.compile(r"[\])?:]\s*$")
_DIGIT = re.compile(r"\d", re.ASCII)
_GAP = 2  # blanks that are at least between an edit line and a prompt at the right


@dataclass(frozen=True)
class Line:
    """The line with the cursor: what stands before and after it, and how wide the pane is."""

    left: str
    right: str
    width: int


def line_at(rows: list[str], column: int, row: int, width: int, joined: list[str] | None = None) -> Line:
    """The line with the cursor out of a screen's rows, with the rows above that go on in it.

    `joined`: the same screen with such rows joined; where it does not tell, every full row goes on.
    """
    text = rows[row] if row < len(rows) else ""
    left, right = _cut(text, column)
    going_on = None if joined is None else _going_on(rows, joined)
    if going_on is None:
        going_on = {number for number, above in enumerate(rows) if _cells(above) >= width > 0}
    while row - 1 in going_on:
        row -= 1
        left = rows[row] + left
    return Line(left, right, width)


def _going_on(rows: list[str], joined: list[str]) -> set[int] | None:
    """The rows that go on in the next one; None where the two do not fit. Blanks at an end count for nothing."""
    found = set()
    rest = enumerate(rows)
    for line in joined:
        number, text = next(rest, (0, None))
        while text is not None and text.rstrip() != line.rstrip():
            found.add(number)
            number, more = next(rest, (0, None))
            text = None if more is None else text + more
        if text is None:
            return None
    return found if next(rest, None) is None else None


def state_of(line: Line, prompt: str | None) -> str:
    """EMPTY, DRAFT or UNKNOWN; `prompt` is the pane's prompt as last seen, if any."""
    shown = _shape(line.left)
    if prompt and shown.startswith(_shape(prompt)):
        return DRAFT if len(shown) > len(prompt) or not _is_beyond(line) else EMPTY
    if not line.left and not line.right.strip():
        return EMPTY
    begins = _PROMPT.match(line.left)
    if begins:
        if begins.end() < len(line.left) or not _is_beyond(line):
            return DRAFT
        # A second blank may be the first key of a command that the history is not to keep.
        return UNKNOWN if line.left.endswith("  ") else EMPTY
    return EMPTY if _QUESTION.search(line.left) and _is_beyond(line) else UNKNOWN


@dataclass(frozen=True)
class Front:
    """The program in front: its name, whether it gets whole lines, and whether they are shown."""

    command: str
    takes_lines: bool = False
    shows_keys: bool = True

    @property
    def is_shell(self) -> bool:
        return self.command.lstrip("-") in SHELLS


def blocks(state: str, front: Front, since_key_s: float) -> bool:
    """Whether what stands there keeps others out, so long after the last key."""
    if state == DRAFT and front.is_shell:
        return True
    if since_key_s >= UNCERTAIN_S:
        return False
    if not front.shows_keys and front.takes_lines:
        return True  # a password, perhaps half of it
    return state == DRAFT or (state == UNKNOWN and (front.is_shell or front.takes_lines))


def _is_beyond(line: Line) -> bool:
    """Whether nothing that was typed is right of the cursor: nothing at all, or a prompt at the right."""
    text = line.right.rstrip()
    if not text:
        return True
    ends_at = _cells(line.left) % max(line.width, 1) + _cells(text)
    return text.startswith(" " * _GAP) and ends_at >= line.width - _GAP


def _shape(text: str) -> str:
    """With every digit alike: a prompt may show the time."""
    return _DIGIT.sub("0", text)


def _cut(text: str, column: int) -> tuple[str, str]:
    """What is left and right of a column of cells; blanks that the row does not have are added."""
    cells = 0
    for position, character in enumerate(text):
        if cells >= column and _width(character):
            return text[:position], text[position:]
        cells += _width(character)
    return text + " " * (column - cells), ""


def _cells(text: str) -> int:
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
