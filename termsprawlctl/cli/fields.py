"""The words after `call OPERATION` as the JSON value to send."""

from __future__ import annotations

from ..base import console, jsontext
from ..base.errors import CtlError, UsageError
from ..base.files import read_small

# The app takes requests of at most 128 KiB. More is read than that, so that it is the
# app that says so, but not without end.
MAX_INPUT_BYTES = 16 << 20


def read_arguments(words: list[str], operation: str | None) -> object:
    """The value of `[JSON | - | @FILE | NAME=TEXT NAME:=JSON ...]`; {} for no words or an empty one.

    TEXT is read as the type that the table declares for the operation's argument; where it
    declares none, TEXT is a string. No JSON text begins like a field, so the forms cannot be
    mistaken for each other. Raises UsageError; nothing has been sent then.
    """
    if not words:
        return {}
    for word in words:
        if not console.is_text(word):
            raise UsageError("the arguments are not valid UTF-8 text.", "Pass them in a file with @FILE.")
    if _field(words[0]):
        return _fields(words, _kinds(operation))
    if len(words) > 1:
        raise UsageError(
            f"cannot combine {_shown(words[0])} with more arguments.",
            "Give one JSON object, or fields only: NAME=TEXT NAME:=JSON.",
        )
    return _one(words[0])


def _one(word: str) -> object:
    if word == "-":
        try:
            data = console.read_input(MAX_INPUT_BYTES)
        except CtlError as error:
            raise UsageError(error.message, "Pass them in a file with @FILE.") from None
        return _parse(data, "standard input")
    if word.startswith("@"):
        try:
            return _parse(read_small(word[1:], MAX_INPUT_BYTES), word[1:])
        except OSError as error:
            raise UsageError(f"cannot read {word[1:]}: {error.strerror}.", "Name a file that can be read.") from None
    return _parse(word, "the argument")


def _parse(text: str | bytes, where: str) -> object:
    if not text:
        return {}
    try:
        return jsontext.loads(text)
    except ValueError as error:
        raise UsageError(
            f"{where} is not JSON: {error}.",
            """Give an object like '{"nodeId": "n-1"}', or fields like nodeId=n-1 x:=20.""",
        ) from None


def _kinds(operation: str | None) -> dict[str, str]:
    """Argument to its declared type; {} for an operation that the table does not know: the app may."""
    from ..operations.table import OPERATIONS

    known = OPERATIONS.get(operation) if operation else None
    return {argument.name: argument.kind for argument in known.arguments} if known else {}


def _typed(name: str, text: str, kind: str) -> object:
    if kind == "number":
        try:
            value = jsontext.loads(text)
        except ValueError:
            value = None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        raise UsageError(f"{name} takes a number, not {_shown(text)}.", f"Write it like {name}=1000.")
    if kind == "boolean":
        if text in ("true", "false"):
            return text == "true"
        raise UsageError(f"{name} takes true or false, not {_shown(text)}.", f"Write it like {name}=true.")
    if kind == "strings":
        return text.split(",")
    return text


def _field(word: str) -> tuple[str, str, str] | None:
    """(name, "=" or ":=", text) of a word; None where it is no field. Without a pattern: re takes long to load."""
    name, equals, text = word.partition("=")
    sign = ":=" if name.endswith(":") else "="
    name = name.removesuffix(":")
    return (name, sign, text) if equals and name.isascii() and name.isidentifier() else None


def _fields(words: list[str], kinds: dict[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for word in words:
        field = _field(word)
        if field is None:
            raise UsageError(f"{_shown(word)} is not a field.", "Write NAME=TEXT, or NAME:=JSON.")
        name, sign, text = field
        if name in values:
            raise UsageError(f"the field {name} is given twice.", "Leave one out.")
        if sign == ":=" and not text:
            raise UsageError(f"the field {name} has no value after :=.", "Give JSON, or NAME=TEXT.")
        if sign == "=":
            values[name] = _typed(name, text, kinds.get(name, "string"))
        else:
            values[name] = _parse(text, f"the value of {name}")
    return values


def _shown(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:40] + "…")
