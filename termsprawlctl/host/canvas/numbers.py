"""Numbers of a project file that keep the form in which another program wrote them: 1e3, -0, 2.50."""

from __future__ import annotations

import json
import os
import re

_MARK = os.urandom(8).hex()  # no text of a file can hold it by chance or by intent
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


class _Written:
    """A number as it stands in the file."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def number_of(value: object) -> float | None:
    """The number that a value is; None for anything else."""
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else value


def dumps(value: object, before: str = "") -> str:
    """A value as people like to read it; its numbers as in `before`, its JSON of earlier, where they are the same.

    A lone surrogate, which UTF-8 lacks, stays an escape.
    """
    earlier = _DECODER.decode(before) if before else None
    marked = _merged(value, earlier)
    text = json.dumps(marked, ensure_ascii=False, indent=2)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(marked, indent=2)
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _merged(value: object, before: object) -> object:
    # Loops, because a comprehension is a frame of its own before Python 3.12, and values are nested deeply.
    if isinstance(value, dict):
        known, fields = before if isinstance(before, dict) else {}, {}
        for key, item in value.items():
            fields[key] = _merged(item, known.get(key))
        return fields
    if isinstance(value, list):
        items = []
        for index, item in enumerate(value):
            items.append(_merged(item, before[index] if isinstance(before, list) and index < len(before) else None))
        return items
    if isinstance(before, _Written) and number_of(value) is not None and value == float(before.text):
        return _MARK + before.text
    return value


def _kept(text: str) -> object:
    number = float(text) if "." in text or "e" in text or "E" in text else int(text)
    return number if repr(number) == text else _Written(text)


# Of what was read strictly before.
_DECODER = json.JSONDecoder(parse_float=_kept, parse_int=_kept)
