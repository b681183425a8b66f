"""The head of an HTTP request, read strictly: what is unclear in it is refused, never guessed.

A reader that is lax lets a line hide the ones after it, and two readers then see two
different requests. So a line without a colon, a folded one, a blank before the colon, a
lone carriage return, an end before the empty line and a second `authorization` or `host`
are all faults. The sizes are bounded before anybody has shown who they are.
"""

from __future__ import annotations

import re

MAX_LINE_BYTES = 64 << 10  # of the request line
MAX_FIELDS_BYTES = 64 << 10  # of all fields together: what any client of ours sends is a hundredth
MAX_FIELDS = 100

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])\r?\n")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)\r?\n")
_END = (b"\r\n", b"\n")
# Fields that mean one thing for the whole request.
_SINGLE = ("authorization", "host")


class BadHead(ValueError):
    """A head that is not served; `status` is the answer's."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Head:
    """`method` and `path` (without its query) as they came, and the fields by their names in small letters."""

    __slots__ = ("_fields", "method", "path")

    def __init__(self, method: str, path: str, fields: dict[str, list[str]]) -> None:
        self.method = method
        self.path = path
        self._fields = fields

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def all(self, name: str) -> list[str]:
        """Every value of a field, in order; [] where there is none."""
        return self._fields.get(name, [])

    def first(self, name: str) -> str:
        """The value of a field; "" where there is none."""
        return next(iter(self.all(name)), "")


def read(stream) -> Head | None:
    """Read a head from a buffered stream, up to its empty line; None where nothing came at all.

    Raises BadHead, and OSError as the stream does.
    """
    line = stream.readline(MAX_LINE_BYTES + 1)
    if not line:
        return None
    if len(line) > MAX_LINE_BYTES:
        raise BadHead(414)
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise BadHead(400)
    method, target, major, _minor = (part.decode("latin-1") for part in match.groups())
    if major != "1":
        raise BadHead(505)
    fields = _read_fields(stream)
    if any(len(fields.get(name, ())) > 1 for name in _SINGLE):
        raise BadHead(400)
    return Head(method, target.partition("?")[0], fields)


def _read_fields(stream) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    left = MAX_FIELDS_BYTES
    for _ in range(MAX_FIELDS + 1):
        line = stream.readline(left + 1)
        if line in _END:
            return fields
        left -= len(line)
        if left < 0:
            raise BadHead(431)
        match = _FIELD.fullmatch(line)
        if match is None:  # also where the stream ends
            raise BadHead(400)
        name, value = (part.decode("latin-1") for part in match.groups())
        # Not by the pattern: blanks inside of a value would be gone through from each of them.
        fields.setdefault(name.lower(), []).append(value.strip(" \t"))
    raise BadHead(431)
