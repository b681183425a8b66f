"""Numbers of a project file that keep the form in which another program wrote them: 1e3, -0, 2.50."""

from __future__ import annotations

import json
import os
import re

from ...base import jsontext

# What may not come back as it was from a double: exponents, a negative zero, zeros at the end, many digits.
_ODD = re.compile(rb"\d[eE]|-0[^\d.]|\.\d*0[^\d]|\.\d{16}|\d{17}")
_MARK = os.urandom(8).hex()  # no text of a file can hold it by chance or by intent
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


class Written:
    """A number as it stands in the file."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def number_of(value: object) -> float | None:
    """The number that a value is; None for anything else."""
    if isinstance(value, Written):
        return float(value.text)
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else value


def loads(data: bytes) -> object:
    """Like jsontext.loads(), with a Written where a number would come back in another form."""
    value = jsontext.loads(data)
    if _ODD.search(data) is None:
        return value
    return json.loads(data.decode("utf-8-sig"), parse_float=_kept, parse_int=_kept)


def dumps(value: object, *, ascii_only: bool = False) -> str:
    """Like jsontext.pretty(), with what loads() kept as it was."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2, default=_marked)
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _kept(text: str) -> object:
    number = float(text) if "." in text or "e" in text or "E" in text else int(text)
    return number if repr(number) == text else Written(text)


def _marked(value: object) -> str:
    if isinstance(value, Written):
        return _MARK + value.text
    raise TypeError(f"{type(value).__name__} is no JSON")
