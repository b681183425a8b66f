"""HTTP/1.1 messages as both ends of a call read them: heads, lengths and bodies. No socket is touched here.

What is unclear is refused, never guessed. A reader that is lax lets a line hide the ones
after it, and two readers then see two different messages. So in a request a line without a
colon, a folded one, a blank before the colon, a lone carriage return, an end before the
empty line and a second `authorization` or `host` are all faults. In an answer, which
nothing but its length is taken from, such lines are skipped; a length that is not clear is
a fault there, too. All sizes are bounded, before anybody has shown who they are.

http.client does the same for the client and takes a third of a whole call to load.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedIOBase as Stream

MAX_LINE_BYTES = 64 << 10  # of the first line, and of a chunk's
MAX_FIELDS_BYTES = 64 << 10  # of all fields together: what any program of ours sends is a hundredth
MAX_FIELDS = 100
# Interim: the server has the whole request and works on it. Sent to those who prefer it alone.
PROCESSING = 102
PREFERS_PROCESSING = ("prefer", "processing")

# Without patterns: to load re and compile these is half of a quick call.
_TOKEN = b"!#$%&'*+.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-"
_VALUE = bytes((9, *range(0x20, 0x7F), *range(0x80, 0x100)))
_TARGET = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))
_HEX = b"0123456789abcdefABCDEF"
_END = (b"\r\n", b"\n")
_WITHOUT_BODY = (204, 304)
# Fields that mean one thing for the whole request.
_SINGLE = ("authorization", "host")


class BadMessage(ValueError):
    """Not HTTP, or not clearly so; `status` is a server's answer to it."""

    def __init__(self, status: int = 400) -> None:
        super().__init__(status)
        self.status = status


class CutShort(BadMessage):
    """It ended before it was whole."""


class NoAnswer(BadMessage):
    """The server closed the connection without a word."""


class TooLarge(BadMessage):
    """The body is larger than the reader takes."""


class Head:
    """The fields of a message, by their names in small letters."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def all(self, name: str) -> list[str]:
        """Every value of a field, in order; [] where there is none."""
        return self._fields.get(name, [])

    def first(self, name: str) -> str:
        """The value of a field; "" where there is none."""
        return next(iter(self.all(name)), "")

    def is_chunked(self) -> bool:
        """Whether the body comes in chunks. Raises BadMessage for any other coding."""
        codings = [coding.lower() for coding in self.all("transfer-encoding")]
        if codings not in ([], ["chunked"]):
            raise BadMessage
        return bool(codings)

    def length(self) -> int | None:
        """Bytes of the body by `content-length`; None where there is none. Raises BadMessage where it is unclear."""
        lengths = set(self.all("content-length"))
        if not lengths:
            return None
        text = lengths.pop()
        if lengths or "transfer-encoding" in self or not (text.isascii() and text.isdigit()):
            raise BadMessage
        # A number of many digits is too large whatever it says, and slow to convert.
        return int(text) if len(text) <= 12 else sys.maxsize


class RequestHead(Head):
    """The head of a request; `path` is without its query."""

    __slots__ = ("method", "path")

    def __init__(self, method: str, path: str, fields: dict[str, list[str]]) -> None:
        super().__init__(fields)
        self.method = method
        self.path = path


class AnswerHead(Head):
    """The head of an answer."""

    __slots__ = ("status",)

    def __init__(self, status: int, fields: dict[str, list[str]]) -> None:
        super().__init__(fields)
        self.status = status


def read_request(stream: Stream) -> RequestHead | None:
    """Read a request's head up to its empty line; None where nothing came at all.

    Raises BadMessage, and OSError as the stream does.
    """
    line = stream.readline(MAX_LINE_BYTES + 1)
    if not line:
        return None
    if len(line) > MAX_LINE_BYTES:
        raise BadMessage(414)
    words = _without_end(line).split(b" ")
    if len(words) != 3 or not (_consists_of(words[0], _TOKEN) and _consists_of(words[1], _TARGET)):
        raise BadMessage
    version = words[2]
    if (
        len(version) != 8
        or version[:5] != b"HTTP/"
        or version[6:7] != b"."
        or not (version[5:6] + version[7:]).isdigit()
    ):
        raise BadMessage
    if version[5:6] != b"1":
        raise BadMessage(505)
    fields = _read_fields(stream, is_strict=True)
    if any(len(fields.get(name, ())) > 1 for name in _SINGLE):
        raise BadMessage
    return RequestHead(words[0].decode("ascii"), words[1].decode("latin-1").partition("?")[0], fields)


def read_answer(stream: Stream, on_processing: Callable[[], None] | None = None) -> AnswerHead:
    """Read the head of an answer. Interim ones (100, 102, 103) are skipped; `on_processing()` is called at a 102.

    Raises NoAnswer, CutShort, BadMessage, and OSError as the stream does.
    """
    has_begun = False
    while True:
        line = stream.readline(MAX_LINE_BYTES + 1)
        if not line and not has_begun:
            raise NoAnswer
        has_begun = True
        head = AnswerHead(_status(_without_end(line)), _read_fields(stream, is_strict=False))
        if head.status == PROCESSING and on_processing is not None:
            on_processing()
        if head.status >= 200:
            return head


def read_body(stream: Stream, head: AnswerHead, max_bytes: int) -> bytes:
    """Read the body of an answer, chunked, of a length, or up to the connection's end.

    Raises CutShort, TooLarge, BadMessage, and OSError as the stream does.
    """
    if head.status in _WITHOUT_BODY:
        return b""
    length = head.length()
    if length is not None:
        if length > max_bytes:
            raise TooLarge
        body = stream.read(length)
        if len(body) < length:
            raise CutShort
        return body
    if head.is_chunked():
        return read_chunks(stream, max_bytes)
    body = stream.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise TooLarge
    return body


def read_chunks(stream: Stream, max_bytes: int) -> bytes:
    """Read a chunked body up to its end, trailers included. Raises as read_body()."""
    body = bytearray()
    while True:
        digits = _without_end(_whole_line(stream)).partition(b";")[0].rstrip(b" \t")
        if len(digits) > 16 or not _consists_of(digits, _HEX):
            raise BadMessage
        size = int(digits, 16)
        if not size:
            _read_fields(stream, is_strict=False)  # trailers
            return bytes(body)
        if len(body) + size > max_bytes:
            raise TooLarge
        chunk = stream.read(size)
        if len(chunk) < size:
            raise CutShort
        body += chunk
        if _whole_line(stream) not in _END:
            raise BadMessage


def _status(line: bytes) -> int:
    """The number in a status line without its end; raises BadMessage."""
    version, number = line[:9], line[9:12]
    if version[:7] != b"HTTP/1." or not version[7:8].isdigit() or version[8:] != b" ":
        raise BadMessage
    if len(number) < 3 or not number.isdigit() or number[:1] == b"0" or line[12:13] not in (b"", b" "):
        raise BadMessage
    return int(number)


def _consists_of(text: bytes, allowed: bytes) -> bool:
    return bool(text) and not text.translate(None, allowed)


def _without_end(line: bytes) -> bytes:
    """A line without its line feed and the carriage return before it; raises BadMessage where it is no whole line."""
    if not line.endswith(b"\n"):
        raise BadMessage
    return line[: -2 if line.endswith(b"\r\n") else -1]


def _whole_line(stream: Stream) -> bytes:
    line = stream.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise BadMessage
    if not line.endswith(b"\n"):
        raise CutShort
    return line


def _read_fields(stream: Stream, *, is_strict: bool) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    left = MAX_FIELDS_BYTES
    for _ in range(MAX_FIELDS + 1):
        line = stream.readline(left + 1)
        if line in _END:
            return fields
        left -= len(line)
        if left < 0:
            raise BadMessage(431)
        if not line.endswith(b"\n"):
            raise CutShort
        name, colon, value = line[: -2 if line.endswith(b"\r\n") else -1].partition(b":")
        if colon and _consists_of(name, _TOKEN) and not (is_strict and value.translate(None, _VALUE)):
            # Not by the pattern: blanks inside of a value would be gone through from each of them.
            fields.setdefault(name.decode("ascii").lower(), []).append(value.decode("latin-1").strip(" \t"))
        elif is_strict:
            raise BadMessage
    raise BadMessage(431)
