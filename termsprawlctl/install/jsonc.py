"""JSON text with the place of every part of it, also with comments and trailing commas.

Pure. `json` gives values only; to change one member and keep every other byte, its
place in the text is needed, too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ..base.jsontext import MAX_DIGITS


@dataclass(frozen=True)
class Syntax:
    """Which liberties a client's own parser takes."""

    comments: bool
    trailing_commas: bool


STRICT = Syntax(comments=False, trailing_commas=False)
WITH_COMMENTS = Syntax(comments=True, trailing_commas=False)
JSONC = Syntax(comments=True, trailing_commas=True)

# No client nests deeper than a dozen; Python's stack ends at a thousand frames.
MAX_DEPTH = 200

_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A piece of what stands between quotes. Bounded: for each repeat of a group the machine of
# regular expressions keeps a hundred bytes, and the text may be megabytes.
_IN_STRING = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_BOM = "\ufeff"


class NotJson(ValueError):
    """The text is not what the client could read; the message says where, and quotes nothing."""


class Node:
    """One value. `start` and `end` are its place; `members` (objects) or `items` (arrays) its parts."""

    __slots__ = ("end", "items", "members", "start", "text")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.text: str | None = None  # of a scalar
        self.members: list[Member] | None = None
        self.items: list[Node] | None = None

    def value(self) -> object:
        """As Python's json would give it."""
        if self.members is not None:
            return {member.key: member.node.value() for member in self.members}
        if self.items is not None:
            return [item.value() for item in self.items]
        return json.loads(self.text or "null")

    def find(self, key: str) -> Member | None:
        """The member of an object with this key; None where there is none.

        Raises NotJson when there are two, of which programs take one or the other.
        """
        found = [member for member in self.members or () if member.key == key]
        if len(found) > 1:
            raise NotJson(f"the key {key} stands there twice")
        return found[0] if found else None


@dataclass(frozen=True)
class Member:
    """start: where the key begins; comma: the place of the comma after the value, or None."""

    key: str
    start: int
    node: Node
    comma: int | None


def parse(text: str, syntax: Syntax) -> Node:
    """The root of a text. Raises NotJson with line and column."""
    scanner = _Scanner(text, syntax)
    position = scanner.skip(1 if text.startswith(_BOM) else 0)
    node = scanner.value(position, 0)
    if scanner.skip(node.end) != len(text):
        raise scanner.fault(scanner.skip(node.end), "unexpected text after the end")
    return node


def ends_with_line_comment(text: str, position: int) -> bool:
    """Whether the last of the comments that stand at a position, before anything else, is a //."""
    last = ""
    while True:
        comment = _COMMENT.match(text, _behind_blanks(text, position))
        if comment is None:
            return last.startswith("//")
        last, position = comment.group(), comment.end()


def _behind_blanks(text: str, position: int) -> int:
    blanks = _BLANK.match(text, position)
    return blanks.end() if blanks else position


class _Scanner:
    def __init__(self, text: str, syntax: Syntax) -> None:
        self._text = text
        self._syntax = syntax

    def fault(self, position: int, what: str) -> NotJson:
        line = self._text.count("\n", 0, position) + 1
        column = position - self._text.rfind("\n", 0, position)
        return NotJson(f"{what} at line {line} column {column}")

    def skip(self, position: int) -> int:
        """The next place that is neither blank nor in a comment."""
        while True:
            position = _behind_blanks(self._text, position)
            comment = _COMMENT.match(self._text, position)
            if comment is None:
                return position
            if not self._syntax.comments:
                raise self.fault(position, "a comment, which this client cannot read,")
            position = comment.end()

    def value(self, position: int, depth: int) -> Node:
        node = Node(position)
        first = self._text[position : position + 1]
        if depth > MAX_DEPTH:
            raise self.fault(position, "nested too deep")
        if first == "{":
            node.members, node.end = self._parts(position, "}", lambda at: self._member(at, depth))
        elif first == "[":
            node.items, node.end = self._parts(position, "]", lambda at: self._item(at, depth))
        else:
            end = self._string_end(position) if first == '"' else self._scalar_end(position)
            if end is None:
                raise self.fault(position, "a value was expected" if first else "unexpected end of the text")
            node.text, node.end = self._text[position:end], end
        return node

    def _string_end(self, position: int) -> int | None:
        """The place behind the string that begins here; None where none does."""
        if self._text[position : position + 1] != '"':
            return None
        position += 1
        piece = _IN_STRING.match(self._text, position)
        while piece is not None:
            position = piece.end()
            piece = _IN_STRING.match(self._text, position)
        return position + 1 if self._text[position : position + 1] == '"' else None

    def _scalar_end(self, position: int) -> int | None:
        match = _SCALAR.match(self._text, position)
        if match is not None and len(match.group()) > MAX_DIGITS:
            raise self.fault(position, "a number is too long")
        return None if match is None else match.end()

    def _parts(self, position: int, closing: str, read) -> tuple[list, int]:
        """(what stands between the brackets, the place behind the closing one)."""
        parts: list = []
        position = self.skip(position + 1)
        while self._text[position : position + 1] != closing:
            part, comma, position = read(position)
            parts.append(part)
            if comma is None and self._text[position : position + 1] != closing:
                raise self.fault(position, f"a comma or {closing} was expected")
            if comma is not None and self._text[position : position + 1] == closing:
                if not self._syntax.trailing_commas:
                    raise self.fault(comma, "a comma after the last entry")
                break
        return parts, position + 1

    def _item(self, position: int, depth: int):
        node = self.value(position, depth + 1)
        return node, *self._comma(node.end)

    def _member(self, position: int, depth: int):
        end = self._string_end(position)
        if end is None:
            raise self.fault(position, "a key in double quotes was expected")
        colon = self.skip(end)
        if self._text[colon : colon + 1] != ":":
            raise self.fault(colon, "a colon was expected")
        node = self.value(self.skip(colon + 1), depth + 1)
        comma, behind = self._comma(node.end)
        return Member(json.loads(self._text[position:end]), position, node, comma), comma, behind

    def _comma(self, end: int) -> tuple[int | None, int]:
        """(place of the comma after a part, or None; the next place to read)."""
        position = self.skip(end)
        if self._text[position : position + 1] == ",":
            return position, self.skip(position + 1)
        return None, position
