"""Strict JSON in, clean UTF-8 out: the one place where JSON text is read or written.

Pure functions. Stricter than `json` where it is lax (NaN, Infinity, numbers that
overflow to infinity), and bounded where it would run out of stack.
"""

from __future__ import annotations

import json
import math

# Python's indenting encoder needs a frame a level and its stack ends at 1,000
# frames; no message that these programs exchange nests deeper than a dozen.
MAX_DEPTH = 500
# Python's own limit for integers in text is 4,300 digits (time grows with their square);
# no double, which is all that most JSON programs know, has more than 309.
MAX_DIGITS = 1000
_BLANKS = " \t\r\n"


def loads(text: str | bytes) -> object:
    """Parse one JSON value; bytes have to be UTF-8, a leading BOM is skipped.

    Raises ValueError with a short reason (never with the text itself, which may
    hold a secret) for anything that is not strict JSON, or is nested deeper than
    MAX_DEPTH.
    """
    text = text.removeprefix("\ufeff") if isinstance(text, str) else decode(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not _within_depth(value, text.count("{") + text.count("[")):
        raise ValueError("nested too deep")
    return value


def decode(data: bytes | bytearray) -> str:
    """The text that bytes are in UTF-8, without a BOM. Raises ValueError."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None


def decode_at(text: str, index: int, level: int) -> tuple[object, int]:
    """The value that begins at an index, `level` levels deep, and where it ends; as strict as loads().

    Raises ValueError.
    """
    try:
        value, end = _DECODER.raw_decode(text, index)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not _within_depth(value, text.count("{", index, end) + text.count("[", index, end), level):
        raise ValueError("nested too deep")
    return value, end


def first_members(head: bytes) -> dict[str, object]:
    """The members of an object that its beginning holds whole, up to the first that is cut off or no JSON."""
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8")
    text = text.removeprefix("\ufeff").lstrip(_BLANKS)
    members: dict[str, object] = {}
    rest = text[1:] if text.startswith("{") else ""
    try:
        while rest:
            key, rest = _value(rest)
            if not isinstance(key, str) or not rest.startswith(":"):
                break
            value, rest = _value(rest[1:])
            if not rest.startswith((",", "}")):
                break  # it may be cut off itself, as a number is
            members[key] = value
            rest = rest[1:] if rest.startswith(",") else ""
    except ValueError:
        pass
    return members


def pretty(value: object) -> str:
    """For people: 2-space indent, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def compact(value: object) -> str:
    """For machines: no white space, non-ASCII characters as they are.

    Raises ValueError for NaN and infinities.
    """
    return _COMPACT.encode(value)


def wire(value: object) -> bytes:
    """For another program: compact UTF-8; a lone surrogate, which has none, stays an escape.

    Raises ValueError for NaN and infinities.
    """
    try:
        return compact(value).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def encode(text: str) -> bytes:
    """UTF-8, with each lone surrogate (legal in a JSON escape only) as U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number is too large")
    return int(digits)


def _within_depth(value: object, brackets: int, outer: int = 0) -> bool:
    """Whether a value is not too deep; `brackets`, how many open in its text, tells it of most without a look."""
    most = MAX_DEPTH - outer
    if brackets <= most:
        return True
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return True
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    return not level


# Made once: json.loads() and dumps() make new ones for each text that is read or written in a way of one's own.
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer)


def _value(text: str) -> tuple[object, str]:
    """The JSON value that a text begins with, and what stands behind it. Raises ValueError."""
    text = text.lstrip(_BLANKS)
    value, end = decode_at(text, 0, 1)
    return value, text[end:].lstrip(_BLANKS)
