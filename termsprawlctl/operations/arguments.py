"""Arguments as models send them: taken where the declared type makes the meaning certain, else explained."""

from __future__ import annotations

from ..base import jsontext
from .schema import MAX_ITEM_CHARS, MAX_ITEMS, MAX_NUMBER, MAX_STRING_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

    from .table import Argument, Operation

MAX_SHOWN_CHARS = 60
# Patterns; re is loaded with the first call only.
_NUMBER = r"-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?"
_WORD = r"[^\s,\[\]\"']{1,255}"
_REFUSAL = r"(Invalid|Missing argument:|Unknown argument:) (\w+)"


def coerced(operation: Operation, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with their declared types, as far as that is certain; the rest as it came.

    Models send null for what they leave out, numbers and booleans in quotes, lists as JSON
    text, one word for a list of one, and whole numbers where a text is asked for.
    """
    declared = {argument.name: argument for argument in operation.arguments}
    return {
        name: _coerced(declared[name], value) if name in declared else value
        for name, value in args.items()
        if not (value is None and name in declared)
    }


def _coerced(argument: Argument, value: object) -> object:
    if argument.kind == "string":
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(value, str):
        return value
    text = value.strip()
    if argument.kind == "strings":
        return _strings(text)
    if argument.kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), value)
    return jsontext.loads(text) if _fullmatch(_NUMBER, text) else value


def _strings(text: str) -> object:
    if not text.startswith("["):
        return [text] if _fullmatch(_WORD, text) else text
    try:
        return jsontext.loads(text)
    except ValueError:
        return text


def explained(operation: Operation, args: dict[str, Any], error: str) -> str:
    """The refusal of an argument with what came and what is expected; any other error as it is."""
    match = _fullmatch(_REFUSAL, error)
    if match is None:
        return error
    if match[1] == "Invalid":
        for argument in operation.arguments:
            if argument.name == match[2] and argument.name in args:
                return f"{error}: {operation.name} got {_shown(args[argument.name])}, expected {_expected(argument)}."
        return error
    names = [one.name if one.required else f"{one.name} (optional)" for one in operation.arguments]
    return f"{error}. {operation.name} takes {', '.join(names) or 'no arguments'}."


def _expected(argument: Argument) -> str:
    if argument.kind == "number":
        return f"a number from -{MAX_NUMBER:,} to {MAX_NUMBER:,}"
    if argument.kind == "boolean":
        return "true or false"
    if argument.kind == "strings":
        return f"an array of 1 to {MAX_ITEMS} strings, each of at most {MAX_ITEM_CHARS} characters"
    if argument.choices:
        return f"one of {', '.join(argument.choices)}"
    return f"a string of at most {MAX_STRING_CHARS:,} characters ({4 * MAX_STRING_CHARS:,} bytes) without NUL"


def _shown(value: object) -> str:
    if isinstance(value, str) and len(value) > MAX_SHOWN_CHARS:
        size = len(value.encode("utf-8", "surrogatepass"))
        return f"a string of {len(value):,} characters ({size:,} bytes)"
    if isinstance(value, (dict, list)):
        return f"an {'object' if isinstance(value, dict) else f'array of {len(value)}'}"
    return jsontext.compact(value)


def _fullmatch(pattern: str, text: str) -> re.Match[str] | None:
    import re

    return re.fullmatch(pattern, text)
