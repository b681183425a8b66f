"""A CLI's output as lines of bounded size, whatever it prints. Pure, apart from `unescaped`.

Lines end at `\\n` alone: U+2028 and its like stand raw in real events. A line may be
megabytes long; then the long strings in it are shortened while it is read, so that
memory stays flat, and where they lie in the output is remembered.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


# Lines up to this size are read as they are: ordinary events are a few kB.
WHOLE_LINE_BYTES = 512 << 10
# Of a longer line's strings this much is kept at the beginning, and at the end.
KEPT_BYTES = 64 << 10
# What a shortened line may still measure; one with a million short strings is given up.
MAX_SHORT_LINE_BYTES = 4 << 20
PIECE_BYTES = 256 << 10
# An escape is at most six bytes, and a character four: behind six bytes without a
# backslash, at the first byte of a character, no token is cut.
_SAFE = re.compile(rb"[^\\]{6}(?=[\x00-\x7f\xc0-\xff])")


class Lines:
    """Cuts output into lines; `mark` is a text that occurs nowhere in it, for cuts.

    `cuts[i]` is (offset, size) of the raw string that `cut_text(mark, i)` stands in.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._buffer = bytearray()
        self._long: _Shortener | None = None
        self._offset = 0  # in the output, of what comes next
        self.cuts: list[tuple[int, int]] = []

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines (without their end) that `data` completes."""
        start = 0
        while True:
            end = data.find(b"\n", start)
            self._take(data[start:] if end < 0 else data[start:end])
            if end < 0:
                return
            self._offset += 1
            yield self._end_line()
            start = end + 1

    def end(self) -> bytes:
        """What is left when the output ends without a line end."""
        return self._end_line()

    def _take(self, piece: bytes) -> None:
        self._offset += len(piece)
        if self._long is not None:
            self._long.feed(piece)
            return
        self._buffer += piece
        if len(self._buffer) > WHOLE_LINE_BYTES:
            self._long = _Shortener(self._offset - len(self._buffer), self._mark, self.cuts)
            self._long.feed(bytes(self._buffer))
            self._buffer = bytearray()

    def _end_line(self) -> bytes:
        if self._long is not None:
            line = self._long.end()
            self._long = None
            return line
        line, self._buffer = bytes(self._buffer), bytearray()
        return line


class _Shortener:
    """Copies one line of JSON, but only both ends of its long strings."""

    def __init__(self, offset: int, mark: str, cuts: list[tuple[int, int]]) -> None:
        self._out = bytearray()
        self._offset = offset  # in the output, of what comes next
        self._mark = mark
        self._cuts = cuts
        self._inside = False
        self._escaped = False  # the last byte was a backslash that escapes the next
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._given_up = False

    def feed(self, data: bytes) -> None:
        position = 0
        while position < len(data) and not self._given_up:
            position = self._string(data, position) if self._inside else self._between(data, position)
        self._offset += len(data)

    def end(self) -> bytes:
        """The shortened line. One that ended inside a string, or was given up, is no JSON."""
        if self._inside:
            self._close(self._offset)
        return bytes(self._out)

    def _between(self, data: bytes, position: int) -> int:
        quote = data.find(b'"', position)
        end = len(data) if quote < 0 else quote + 1
        self._out += data[position:end]
        self._inside = quote >= 0
        if len(self._out) > MAX_SHORT_LINE_BYTES:
            self._given_up = True
            del self._out[KEPT_BYTES:]
        return end

    def _string(self, data: bytes, position: int) -> int:
        start = position
        while True:
            if self._escaped:
                position += 1
                self._escaped = False
            quote = data.find(b'"', position)
            stop = len(data) if quote < 0 else quote
            backslashes = 0
            while stop - backslashes > position and data[stop - backslashes - 1] == 0x5C:
                backslashes += 1
            self._escaped = backslashes % 2 == 1
            if quote < 0:
                self._keep(data[start:])
                return len(data)
            if not self._escaped:
                self._keep(data[start:quote])
                self._close(self._offset + quote)
                self._out += b'"'
                self._inside = False
                return quote + 1
            position = quote

    def _keep(self, raw: bytes) -> None:
        self._size += len(raw)
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += raw[:room]
            raw = raw[room:]
        self._tail += raw
        if len(self._tail) > 4 * KEPT_BYTES:
            del self._tail[: len(self._tail) - 2 * KEPT_BYTES]

    def _close(self, end: int) -> None:
        if self._size <= 3 * KEPT_BYTES:
            self._out += self._head + self._tail
        else:
            first, last = _safe_end(self._head), _safe_start(self._tail[-KEPT_BYTES:])
            self._out += first + cut_text(self._mark, len(self._cuts)).encode() + last
            self._cuts.append((end - self._size, self._size))
        self._head, self._tail, self._size = bytearray(), bytearray(), 0


def cut_text(mark: str, index: int) -> str:
    """What stands in a shortened string for what was left out."""
    return f"\u2026[{mark} {index}]\u2026"


def _safe_end(raw: bytearray) -> bytearray:
    ends = [match.end() for match in _SAFE.finditer(raw, max(0, len(raw) - 4096))]
    return raw[: ends[-1]] if ends else bytearray()


def _safe_start(raw: bytearray) -> bytearray:
    match = _SAFE.search(raw)
    return raw[match.end() :] if match else bytearray()


def expanded(text: str, mark: str, cuts: list[tuple[int, int]], descriptor: int) -> Iterator[str]:
    """Yield a text in pieces, each shortened string in it whole again, read from the output's file.

    A shortened text that is a part of a string stands for the whole of it.
    """
    match = re.search(re.escape(f"\u2026[{mark} ") + r"([0-9]{1,9})\]\u2026", text) if cuts else None
    # The CLI may know the mark, which stands in its environment.
    index = int(match.group(1)) if match else len(cuts)
    if index >= len(cuts):
        yield text
    else:
        yield from unescaped(descriptor, *cuts[index])


def unescaped(descriptor: int, offset: int, size: int) -> Iterator[str]:
    """Yield the text of the raw JSON string at this place of a file, in pieces."""
    rest = b""
    while size > 0:
        data = os.pread(descriptor, min(size, PIECE_BYTES), offset)
        if not data:
            break
        offset += len(data)
        size -= len(data)
        rest += data
        if size > 0:
            # Surrogate pairs are two escapes; the six plain bytes keep them together, too.
            piece = bytes(_safe_end(bytearray(rest)))
            rest = rest[len(piece) :]
        else:
            piece, rest = rest, b""
        if piece:
            yield _decoded(piece)
    if rest:
        yield _decoded(rest)


def _decoded(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    try:
        decoded: str = json.loads(f'"{text}"', strict=False)
        return decoded
    except ValueError:
        return text
