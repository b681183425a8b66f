"""What one command wrote, from its begin mark to its end mark in the terminal's output."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..screen.transcript import Transcript
from .scripts import begin_mark, end_mark

# The beginning and the end of long output are kept: the first error and the result.
HEAD_BYTES = 32 << 10
TAIL_BYTES = 128 << 10
HEAD_CHARS = 8_000
TAIL_CHARS = 24_000
# No end mark is longer: a part of one at the end of what has come is held back.
_MARK_BYTES = 80
_ESCAPE = b"\x1b"
# What zsh and fish draw where output did not end with a newline, before their hook's mark.
# They use two or three; without a bound, a flood of these would be gone through from each of them.
_STYLE = rb"(?:\x1b\[[0-9;]{0,32}m|\x1b\(B){0,8}"
_NO_NEWLINE = re.compile(_STYLE + rb"(?:[%#]|\xe2\x8f\x8e)" + _STYLE + rb" {8,}\r(?:\xe2\x8f\x8e)? *\r?[^\n]{0,16}\Z")


Feed = Callable[[Transcript, int, bytes], None]


def _feed(transcript: Transcript, _at: int, data: bytes) -> None:
    transcript.feed(data)


@dataclass(frozen=True)
class Output:
    """What a command wrote, as text; `truncated`: something is left out of it; `full_screen`: such a program ran."""

    text: str
    truncated: bool
    full_screen: bool


class Recording:
    """A listener of the terminal's stream.

    `began` and `ended` are events; `status` is the exit status once `ended` is set,
    `size` the number of bytes of output so far. `on_end()` is called in the listening
    thread.
    """

    def __init__(self, run_id: str, on_end: Callable[[], None] = lambda: None) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()
        self.status: int | None = None
        self.ended_shell = False  # it took its terminal along
        self.size = 0
        self._begin = begin_mark(run_id)
        self._end = end_mark(run_id)
        self._on_end = on_end
        self._lock = threading.Lock()
        # How many bytes came up to the end of each mark, since the listening began.
        self.begins_after: int | None = None
        self.ends_after: int | None = None
        self._seen = 0
        self._shows_prompt = False
        self._held = b""
        self._head = bytearray()
        self._tail = bytearray()
        self._began_s = time.monotonic()  # until the mark comes, which it may not
        self._ended_s = 0.0

    def __call__(self, data: bytes) -> None:
        """The next bytes of the stream."""
        with self._lock:
            self._seen += len(data)
            self._take(self._held + data)
        if self.ended.is_set():
            self._on_end()

    def note_status(self, status: int | None) -> None:
        """The shell itself has ended, with this status."""
        with self._lock:
            if not self.ended.is_set():
                self.status, self.ended_shell = status, True

    def give_up(self, status: int | None) -> None:
        """There will be no end mark: this is how it ended, as far as one can tell; None for not at all."""
        with self._lock:
            if self.ended.is_set():
                return
            self.status = self.status if status is None else status
            self._shows_prompt = status is not None
            self._ended_s = time.monotonic()
            self.ended.set()
        self._on_end()

    def duration_ms(self) -> int:
        """Since the command began, to its end or to now."""
        return round(1000 * ((self._ended_s or time.monotonic()) - self._began_s))

    def output(self, columns: int, rows: int, line: int, feed: Feed = _feed) -> Output:
        """What came between the marks; `line` is the screen line where the output began.

        `feed(transcript, at, data)` has a transcript take what came after `at` bytes.
        """
        with self._lock:
            head, tail, size = bytes(self._head), bytes(self._tail), self.size
            unfinished = self._held if self.began.is_set() else b""
            begin = self.begins_after or 0
        is_whole = len(head) + len(tail) == size
        if tail:
            tail = _NO_NEWLINE.sub(b"", tail)
        else:
            head = _NO_NEWLINE.sub(b"", head)
        whole = Transcript(columns, rows, line=line)
        feed(whole, begin, head)
        if is_whole:
            feed(whole, begin + len(head), tail + unfinished)
            text = whole.text()
            if self._shows_prompt:  # in the last line
                text = text.rpartition("\n")[0]
            if len(text) <= HEAD_CHARS + TAIL_CHARS:
                return Output(text, False, whole.used_alternate)
            return Output(_shortened(text[:HEAD_CHARS], text[-TAIL_CHARS:], size), True, whole.used_alternate)
        # What lies between is lost: begin the rest at a line of its own.
        rest = Transcript(columns, rows, alternate=whole.alternate)
        tail = tail[tail.find(b"\n") + 1 :]
        feed(rest, begin + size - len(tail), tail + unfinished)
        text = _shortened(whole.text()[:HEAD_CHARS], rest.text()[-TAIL_CHARS:], size)
        return Output(text, True, whole.used_alternate or rest.used_alternate)

    def _take(self, data: bytes) -> None:
        if self.ended.is_set():
            return
        if not self.began.is_set():
            at = data.find(self._begin)
            if at < 0:
                self._held = data[-len(self._begin) :]
                return
            self._began_s = time.monotonic()
            self.begins_after = self._seen - len(data) + at + len(self._begin)
            self.began.set()
            data = data[at + len(self._begin) :]
        match = self._end.search(data)
        if match:
            self.ends_after = self._seen - len(data) + match.end()
            self._keep(data[: match.start()])
            self._held = b""
            self.status = int(match[1])
            self._ended_s = time.monotonic()
            self.ended.set()
            return
        # From the first escape character that may begin the mark on.
        cut = data.find(_ESCAPE, max(0, len(data) - _MARK_BYTES))
        cut = len(data) if cut < 0 else cut
        self._keep(data[:cut])
        self._held = data[cut:]

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]


def _shortened(head: str, tail: str, size: int) -> str:
    """Beginning and end as whole lines, with a line between them that says so."""
    first = head.rpartition("\n")[0] or head
    last = tail.partition("\n")[2] or tail
    return f"{first}\n[... left out here: the output has {size} bytes ...]\n{last}"
