"""Text for people: without what a terminal obeys or an eye does not see, and not too long. Pure.

Titles, answers and error texts come from elsewhere, and a terminal obeys what stands in them.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    Match = re.Match[str]

# C0 and DEL, but tab and line end; then C1, too.
ASCII_CONTROLS = "\x00-\x08\x0b-\x1f\x7f"
CONTROLS = f"{ASCII_CONTROLS}\x80-\x9f"
# By Unicode 16's properties: Bidi_Control, Default_Ignorable_Code_Point, the line and paragraph separators
# (Zl, Zp), and interlinear annotation. Without the four of _JOINING.
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The non-joiner and the joiner, text and emoji style: scripts and emoji are written with them, behind what one sees.
_JOINING = "\u200c\u200d\ufe0e\ufe0f"
HIDDEN = (
    f"[{CONTROLS}{UNSEEN}]"
    f"|(?<![^\x00-\x7f{CONTROLS}{UNSEEN}\u200c\u200d])[\u200c\u200d]"
    f"|(?<![^\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x7f{CONTROLS}{UNSEEN}{_JOINING}])[\ufe0e\ufe0f]"
)
ELLIPSIS = "…"
# Of head and tail each. Answers of 5 MB have been seen; a stream that goes on for ever must not fill memory.
KEPT_CHARS = 4 << 20


def harmless(text: str) -> str:
    """The text with every character that a terminal would obey, or nobody would see, as a JSON escape.

    JSON stays the same JSON so.
    """
    return _hidden().sub(_escape, text)


def visible(text: str) -> str:
    """The text in one line with a blank for such characters, also for line ends and what no document may hold."""
    import re

    return re.sub(r"[\t\n\ud800-\udfff\ufffe\uffff ]+", " ", _hidden().sub(" ", text)).strip()


def shorten(text: str, max_chars: int) -> str:
    """At most so many characters: the first two thirds, the last third, and a mark between."""
    if len(text) <= max_chars:
        return text
    tail = (max_chars - 3) // 3
    return f"{text[: max_chars - 3 - tail]} {ELLIPSIS} {text[len(text) - tail :]}"


def beginning(text: str, max_chars: int) -> str:
    """At most so many characters, the last of them a mark where something had to go."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + ELLIPSIS


class HeadAndTail:
    """Parts of a text in order; once they are more than twice KEPT_CHARS, those in the middle go.

    The first and the last stay whatever their size.
    """

    __slots__ = ("_first", "_first_chars", "_last", "_last_chars", "omitted")

    def __init__(self) -> None:
        self._first: list[str] = []
        self._first_chars = 0
        self._last: deque[str] = deque()
        self._last_chars = 0
        self.omitted = 0  # parts that went

    def __len__(self) -> int:
        """How many parts there are, those that went included."""
        return len(self._first) + len(self._last) + self.omitted

    def add(self, part: str) -> None:
        """One more part."""
        if not self._last and (not self._first or self._first_chars + len(part) <= KEPT_CHARS):
            self._first.append(part)
            self._first_chars += len(part)
            return
        self._last.append(part)
        self._last_chars += len(part)
        while self._last_chars > KEPT_CHARS and len(self._last) > 1:
            self._last_chars -= len(self._last.popleft())
            self.omitted += 1

    def parts(self) -> list[str]:
        """All parts, with a mark in place of those that went."""
        gap = [f"[… {self.omitted} parts left out: too long to keep …]"] if self.omitted else []
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


def _escape(match: Match) -> str:
    # Beyond U+FFFF JSON has two escapes for a character.
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_pattern: list[re.Pattern[str]] = []  # made when it is needed: most output goes to programs


def _hidden() -> re.Pattern[str]:
    if not _pattern:
        import re

        _pattern.append(re.compile(HIDDEN))
    return _pattern[0]
