"""A text that comes in parts, whole or, where that is too much to keep, its two ends. Pure."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# Of each end. Answers of 5 MB have been seen; a stream that goes on for ever must not fill memory.
KEPT_CHARS = 4 << 20


class HeadAndTail:
    """Parts in order; once they are more than twice KEPT_CHARS, those in the middle go."""

    __slots__ = ("_first", "_first_chars", "_gone", "_last", "_last_chars")

    def __init__(self) -> None:
        self._first: list[str] = []
        self._first_chars = 0
        self._last: deque[str] = deque()
        self._last_chars = 0
        self._gone = 0

    def __len__(self) -> int:
        """How many parts there are, those that went included."""
        return len(self._first) + len(self._last) + self._gone

    def add(self, part: str) -> None:
        """One more part."""
        if not self._last and self._first_chars + len(part) <= KEPT_CHARS:
            self._first.append(part)
            self._first_chars += len(part)
            return
        self._last.append(part)
        self._last_chars += len(part)
        while self._last_chars > KEPT_CHARS and len(self._last) > 1:
            self._last_chars -= len(self._last.popleft())
            self._gone += 1

    def parts(self) -> list[str]:
        """All parts, with a mark in place of those that went."""
        gap = [f"[… {self._gone} parts left out: too long to keep …]"] if self._gone else []
        return [*self._first, *gap, *self._last]


def head_and_tail(pieces: Iterable[str], kept_chars: int) -> tuple[str, int]:
    """A text in pieces: (all of it, or at least so much of each end; how many characters are missing between)."""
    text, total = "", 0
    for piece in pieces:
        total += len(piece)
        text += piece
        if len(text) > 4 * kept_chars:
            text = text[:kept_chars] + text[-kept_chars:]
    return text, total - len(text)
