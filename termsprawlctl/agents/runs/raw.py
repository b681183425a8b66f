"""A run without an event stream: plain output is the answer, lines on stderr the steps. Pure."""

from __future__ import annotations

from ..model.reader import Reader
from ..model.text import MAX_LABEL, one_line

# What is kept in memory of an output that is longer: both ends.
KEPT_BYTES = 256 << 10


class RawReader(Reader):
    """Keeps the beginning and the end of the output; the run has the whole of it in its file."""

    def __init__(self, cwd: str = "") -> None:
        super().__init__(cwd)
        self._head = bytearray()
        self._tail = bytearray()
        self.label = ""

    def feed_raw(self, data: bytes) -> None:
        """Take a piece of the output."""
        room = KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * KEPT_BYTES:
            del self._tail[:-KEPT_BYTES]

    def error_line(self, line: str) -> None:
        self.activity.say(one_line(line, MAX_LABEL))

    def answer_parts(self) -> list[str]:
        text = (self._head + self._tail).decode("utf-8", "replace").strip()
        return [text] if text else []
