"""TOML text as statements with their places: enough to change one table and keep every other byte.

Pure. Python reads TOML itself only since 3.11, and never tells places. What this reader
does not understand it refuses, so that nothing is changed by guesswork.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One line's worth: a header, or a key with its value.

    kind: "table", "array" (of tables) or "pair"; path: the whole path from the root; value: of
    a pair; start, end: its place, from its first character to its last one.
    """

    kind: str
    path: tuple[str, ...]
    value: object
    start: int
    end: int


@dataclass(frozen=True)
class Other:
    """A number, date or time, which nobody here has to understand."""

    text: str


class NotToml(ValueError):
    """The text cannot be read; the message says where, and quotes nothing."""


MAX_DEPTH = 100
MAX_KEY_PARTS = 20  # of a dotted key, each of which is a level, too

_BLANKS = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"#[^\x00-\x08\x0a-\x1f\x7f]*")
_LINE_END = re.compile(r"\r?\n|\Z")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'([^\x00-\x08\x0a-\x1f\x7f']*)'")
# Runs of plain characters at once: a group that repeats costs memory for each repeat.
_PLAIN = r'[^\x00-\x08\x0a-\x1f\x7f"\\]*'
_BASIC = re.compile(rf'"({_PLAIN}(?:\\[^\n]{_PLAIN})*)"')
# Up to two quotes may stand before the three that close.
_IN_LITERAL = r"[^\x00-\x08\x0b-\x1f\x7f']*"
_LONG_LITERAL = re.compile(rf"'''(?:\r?\n)?({_IN_LITERAL}(?:(?:\r\n|'(?!'')){_IN_LITERAL})*'{{0,2}})'''")
_IN_BASIC = r'[^\x00-\x08\x0b-\x1f\x7f"\\]*'
_LONG_BASIC = re.compile(
    rf'"""(?:\r?\n)?({_IN_BASIC}(?:(?:\r\n|\\(?:.|\r?\n)|"(?!"")){_IN_BASIC})*"{{0,2}})"""', re.DOTALL
)
_ESCAPE = re.compile(r'\\(?:([btnfr"\\])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([ \t]*\r?\n[ \t\r\n]*))')
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
_DIGITS = r"(?:0|[1-9](?:_?\d)*)"
_OTHER = re.compile(
    rf"{_DATE}(?:[Tt ]{_TIME}(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?|{_TIME}"
    r"|0x[0-9a-fA-F](?:_?[0-9a-fA-F])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*"
    rf"|[+-]?{_DIGITS}(?:\.\d(?:_?\d)*)?(?:[eE][+-]?\d(?:_?\d)*)?|[+-]?(?:inf|nan)",
    re.ASCII,
)
_BOOLEANS = {"true": True, "false": False}
_WORD_END = re.compile(r"[\s,\]}#]|\Z")


def parse(text: str) -> list[Statement]:
    """The statements of a text. Raises NotToml."""
    return _Scanner(text).statements()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text

    def statements(self) -> list[Statement]:
        found = []
        header: tuple[str, ...] = ()
        position = 1 if self._text.startswith("\ufeff") else 0
        while position < len(self._text):
            start = self._blanks(position)
            if self._text[start : start + 1] == "[":
                statement = self._header(start)
                header = statement.path
            elif self._text[start : start + 1] in ("", "\r", "\n", "#"):
                position = self._rest_of_line(start)
                continue
            else:
                statement = self._pair(start, header)
            found.append(statement)
            position = self._rest_of_line(statement.end)
        return found

    def _fault(self, position: int, what: str) -> NotToml:
        return NotToml(f"{what} at line {self._text.count(chr(10), 0, position) + 1}")

    def _blanks(self, position: int) -> int:
        blanks = _BLANKS.match(self._text, position)
        return blanks.end() if blanks else position

    def _rest_of_line(self, position: int) -> int:
        position = self._blanks(position)
        comment = _COMMENT.match(self._text, position)
        end = _LINE_END.match(self._text, comment.end() if comment else position)
        if end is None:
            raise self._fault(position, "the end of the line was expected")
        return end.end()

    def _header(self, start: int) -> Statement:
        brackets = 2 if self._text.startswith("[[", start) else 1
        path, end = self._key(self._blanks(start + brackets))
        if not self._text.startswith("]" * brackets, end):
            raise self._fault(end, "the name of a table does not end")
        return Statement("array" if brackets == 2 else "table", path, None, start, end + brackets)

    def _pair(self, start: int, header: tuple[str, ...]) -> Statement:
        path, value, end = self._assignment(start, 0)
        return Statement("pair", header + path, value, start, end)

    def _assignment(self, start: int, depth: int):
        path, position = self._key(start)
        if self._text[position : position + 1] != "=":
            raise self._fault(position, "an = was expected")
        value, end = self._value(self._blanks(position + 1), depth + len(path) - 1)
        return path, value, end

    def _key(self, position: int) -> tuple[tuple[str, ...], int]:
        """(the parts of a dotted key, the place behind it and its blanks)."""
        parts = []
        while True:
            first = self._text[position : position + 1]
            pattern = {'"': _BASIC, "'": _LITERAL}.get(first, _BARE_KEY)
            match = pattern.match(self._text, position)
            if match is None:
                raise self._fault(position, "a key was expected")
            word = match.group() if pattern is _BARE_KEY else match.group(1)
            parts.append(self._unescaped(word, position) if first == '"' else word)
            if len(parts) > MAX_KEY_PARTS:
                raise self._fault(position, "nested too deep")
            position = self._blanks(match.end())
            if self._text[position : position + 1] != ".":
                return tuple(parts), position
            position = self._blanks(position + 1)

    def _value(self, position: int, depth: int) -> tuple[object, int]:
        if depth > MAX_DEPTH:
            raise self._fault(position, "nested too deep")
        first = self._text[position : position + 1]
        if first == "[":
            return self._array(position, depth)
        if first == "{":
            return self._inline_table(position, depth)
        if first in ('"', "'"):
            return self._string(position)
        match = _WORD_END.search(self._text, position)
        end = match.start() if match else len(self._text)
        word = self._text[position:end]
        if word in _BOOLEANS:
            return _BOOLEANS[word], end
        other = _OTHER.match(self._text, position)  # may hold a blank, between a date and a time
        if other is None or not _WORD_END.match(self._text, other.end()):
            raise self._fault(position, "a value was expected")
        return Other(other.group()), other.end()

    def _string(self, position: int) -> tuple[str, int]:
        for quotes, pattern in (('"""', _LONG_BASIC), ("'''", _LONG_LITERAL), ('"', _BASIC), ("'", _LITERAL)):
            if self._text.startswith(quotes, position):
                match = pattern.match(self._text, position)
                if match is None:
                    raise self._fault(position, "a string does not end")
                text = match.group(1)
                return (self._unescaped(text, position) if quotes[0] == '"' else text), match.end()
        raise self._fault(position, "a string was expected")

    def _unescaped(self, text: str, position: int) -> str:
        def character(match) -> str:
            letter, short, long, _ = match.groups()
            if letter:
                return _ESCAPES[letter]
            number = int(short or long or "0", 16)
            if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
                raise self._fault(position, "an escape in a string means no character")
            return chr(number) if short or long else ""

        if "\\" in _ESCAPE.sub("", text):
            raise self._fault(position, "an unknown escape in a string")
        return _ESCAPE.sub(character, text)

    def _array(self, position: int, depth: int) -> tuple[list, int]:
        items: list = []
        position = self._any_blank(position + 1)
        while self._text[position : position + 1] != "]":
            item, end = self._value(position, depth + 1)
            items.append(item)
            position = self._any_blank(end)
            if self._text[position : position + 1] == ",":
                position = self._any_blank(position + 1)
            elif self._text[position : position + 1] != "]":
                raise self._fault(position, "a comma or ] was expected")
        return items, position + 1

    def _any_blank(self, position: int) -> int:
        """The next place in an array that is neither blank, nor a line's end, nor in a comment."""
        while True:
            position = self._blanks(position)
            if self._text[position : position + 1] not in ("#", "\r", "\n"):
                return position
            position = self._rest_of_line(position)

    def _inline_table(self, position: int, depth: int) -> tuple[dict, int]:
        tree = Tree()
        position = self._blanks(position + 1)
        if self._text[position : position + 1] == "}":
            return {}, position + 1
        while True:
            path, value, end = self._assignment(position, depth + 1)
            tree.pair((), path, value)
            position = self._blanks(end)
            mark = self._text[position : position + 1]
            position = self._blanks(position + 1)
            if mark == "}":
                return tree.value(), end + self._text[end:].index("}") + 1
            if mark != ",":
                raise self._fault(end, "a comma or } was expected")


# What the statements mean together: nested tables, each defined only once.

# How a table came to be, which decides what may be added to it later.
_IMPLIED, _DOTTED, _DECLARED, _ELEMENT = range(4)


class _Table:
    __slots__ = ("entries", "origin")

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.entries: dict[str, object] = {}  # _Table, _TableArray or a value

    def value(self) -> dict:
        return {name: _value(entry) for name, entry in self.entries.items()}


class _TableArray(list):
    """Tables under one [[name]]."""


class Tree:
    """The tables of a text, filled statement by statement. The methods raise NotToml."""

    def __init__(self) -> None:
        self._root = _Table(_DECLARED)

    def value(self) -> dict:
        """Everything as dicts, lists and values."""
        return self._root.value()

    def declare(self, path: tuple[str, ...]) -> None:
        """`[path]`."""
        holder = self._holder(path)
        entry = holder.entries.setdefault(path[-1], _Table(_IMPLIED))
        if not isinstance(entry, _Table) or entry.origin != _IMPLIED:
            raise _twice(path)
        entry.origin = _DECLARED

    def append(self, path: tuple[str, ...]) -> None:
        """`[[path]]`."""
        entry = self._holder(path).entries.setdefault(path[-1], _TableArray())
        if not isinstance(entry, _TableArray):
            raise _twice(path)
        entry.append(_Table(_ELEMENT))

    def pair(self, header: tuple[str, ...], key: tuple[str, ...], value: object) -> None:
        """`key = value` below a header."""
        table = self._holder((*header, ""))
        for name in key[:-1]:
            entry = table.entries.setdefault(name, _Table(_DOTTED))
            if not isinstance(entry, _Table) or entry.origin in (_DECLARED, _ELEMENT):
                raise _twice((*header, *key))
            entry.origin = _DOTTED
            table = entry
        if key[-1] in table.entries:
            raise _twice((*header, *key))
        table.entries[key[-1]] = value

    def _holder(self, path: tuple[str, ...]) -> _Table:
        table = self._root
        for name in path[:-1]:
            entry = table.entries.setdefault(name, _Table(_IMPLIED))
            if isinstance(entry, _TableArray):
                entry = entry[-1]
            if not isinstance(entry, _Table):
                raise _twice(path)
            table = entry
        return table


def tree_of(statements: list) -> dict:
    """The whole content of a text from its toml.Statements, as dicts, lists and values. Raises NotToml."""
    tree = Tree()
    header: tuple[str, ...] = ()
    for statement in statements:
        if statement.kind == "pair":
            tree.pair(header, statement.path[len(header) :], statement.value)
        else:
            header = statement.path
            (tree.declare if statement.kind == "table" else tree.append)(header)
    return tree.value()


def _value(entry: object) -> object:
    if isinstance(entry, _Table):
        return entry.value()
    return [table.value() for table in entry] if isinstance(entry, _TableArray) else entry


def _twice(path: tuple[str, ...]) -> NotToml:
    return NotToml(f"{'.'.join(path).rstrip('.')} is defined twice")
