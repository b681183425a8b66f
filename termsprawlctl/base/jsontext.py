"""Strict JSON in, clean UTF-8 out: the one place where JSON text is read or written.

Pure functions. Stricter than `json` where it is lax (NaN, Infinity, numbers that
overflow to infinity), and bounded where it would run out of stack.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    value, end = _scanned(text, len(text) - len(text.lstrip(_BLANKS)))
    rest = text[end:].lstrip(_BLANKS)
    if rest:
        raise ValueError(_placed("Extra data", text, len(text) - len(rest)))
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
    value, end = _scanned(text, index)
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
    return _indented(value, "\n")


def compact(value: object) -> str:
    """For machines: no white space, non-ASCII characters as they are.

    Raises ValueError for NaN and infinities.
    """
    if _make_encoder is None:
        import json

        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(_make_encoder({}, _refuse_type, _quoted, None, ":", ",", False, False, False)(value, 0))


def wire(value: object) -> bytes:
    """For another program: compact UTF-8; a lone surrogate, which has none, stays an escape.

    Raises ValueError for NaN and infinities.
    """
    try:
        return compact(value).encode("utf-8")
    except UnicodeEncodeError:
        import json

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


def _scanned(text: str, at: int) -> tuple[object, int]:
    """The value that begins there, and where it ends; raises ValueError in the words of `json`."""
    try:
        return _scan(text, at)
    except StopIteration as stop:
        raise ValueError(_placed("Expecting value", text, stop.value)) from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    except SystemError:
        # Up to CPython 3.12 the scanner has its error of a module that has to be loaded by then.
        import json.decoder  # noqa: F401

        return _scanned(text, at)
    except ValueError as error:
        if type(error).__name__ != "JSONDecodeError":
            raise
        raise ValueError(_placed(error.msg, text, error.pos)) from None  # type: ignore[attr-defined]


def _placed(fault: str, text: str, at: int) -> str:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"{fault} at line {line} column {column}"


def _indented(value: object, line: str) -> str:
    """The value as json.dumps() writes it with an indent; `line` begins a line of the value's own depth.

    Without comprehensions: a level takes one frame.
    """
    parts = []
    if value and type(value) is dict and all(type(name) is str for name in value):
        for name, member in value.items():
            parts.append(f"{_quoted(name)}: {_indented(member, line + '  ')}")
        return f"{{{line}  {f',{line}  '.join(parts)}{line}}}"
    if value and type(value) is list:
        for member in value:
            parts.append(_indented(member, line + "  "))  # noqa: PERF401 - see above
        return f"[{line}  {f',{line}  '.join(parts)}{line}]"
    if type(value) is str:
        return _quoted(value)
    if type(value) is int:
        return repr(value)
    if value is None or type(value) is bool:
        return "null" if value is None else "true" if value else "false"
    import json

    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", line)


def _refuse_type(value: object) -> object:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class _Reading:
    """How the scanner reads, in the names that it looks for."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_constant = staticmethod(_refuse_constant)
    parse_float = staticmethod(_finite)
    parse_int = staticmethod(_integer)


_scan: Callable[[str, int], tuple[object, int]]
_make_encoder: Callable[..., Callable[[object, int], Iterable[str]]] | None
try:
    # What `json` is made of in CPython. The module itself loads re and enum, which take as long as a bare start.
    import _json

    _quoted = _json.encode_basestring
    _make_encoder = _json.make_encoder  # type: ignore[attr-defined, unused-ignore]
    _scan = _json.make_scanner(_Reading)  # type: ignore[arg-type]
except (ImportError, AttributeError):
    from json import decoder, encoder

    _quoted = encoder.encode_basestring
    _make_encoder = None
    _scan = decoder.JSONDecoder(  # type: ignore[attr-defined]
        parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer
    ).scan_once


def _value(text: str) -> tuple[object, str]:
    """The JSON value that a text begins with, and what stands behind it. Raises ValueError."""
    text = text.lstrip(_BLANKS)
    value, end = decode_at(text, 0, 1)
    return value, text[end:].lstrip(_BLANKS)
