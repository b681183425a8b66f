"""What a project file held at one moment, parsed once: its values, and the JSON of each as it stands in the file.

A node that nobody changes is neither parsed nor encoded again, however often its neighbours
move; its bytes in the file stay what they were. Pure: no file is touched here.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from ...base import jsontext
from . import numbers
from .model import is_elsewhere

_BLANKS = re.compile(r"[ \t\n\r]*")


class _Piece:
    """One value, its JSON in the file, and its JSON in an answer once that was asked for; both in UTF-8."""

    __slots__ = ("_answer", "text", "value")

    def __init__(self, value: Any, text: bytes) -> None:
        self.value = value
        self.text = text
        self._answer = b""

    def answer(self) -> bytes:
        if not self._answer:
            self._answer = _compact(self.value)
        return self._answer


class Snapshot:
    """A document with a list of nodes. Nobody changes `document` or anything in it."""

    def __init__(self, fields: dict[str, _Piece], nodes: list[_Piece]) -> None:
        self._fields = fields
        self._nodes = nodes
        self._answer: tuple[set[str], frozenset[str], bytes] | None = None
        self.document: dict[str, Any] = {key: piece.value for key, piece in fields.items()}

    @classmethod
    def parse(cls, data: bytes) -> Snapshot:
        """Of a file's bytes. Raises ValueError where they are no JSON, KeyError where there is no list of nodes."""
        try:
            fields, nodes = _read_document(jsontext.decode(data))
        except (ValueError, IndexError):
            jsontext.loads(data)  # says what is wrong with it
            raise KeyError("nodes") from None
        if not isinstance(fields["nodes"].value, list):
            raise KeyError("nodes")
        return cls(fields, nodes)

    @classmethod
    def empty(cls, version: int) -> Snapshot:
        """Of a project that has no file yet."""
        fields = {"version": version, "rev": 0, "nodes": []}
        return cls({key: _Piece(value, numbers.dumps(value).encode()) for key, value in fields.items()}, [])

    def editable(self) -> dict[str, Any]:
        """A document to edit: its nodes are still these, and are replaced instead of changed."""
        return {key: list(value) if key == "nodes" else copy.deepcopy(value) for key, value in self.document.items()}

    def after(self, document: dict[str, Any]) -> Snapshot:
        """What an edit made of it; itself where nothing is different."""
        unclaimed = {id(piece.value): piece for piece in self._nodes}
        same = [unclaimed.pop(id(node), None) for node in document["nodes"]]
        replaced = {piece.value["id"]: piece for piece in unclaimed.values() if _has_id(piece.value)}
        nodes = [
            piece or _edited(replaced.get(node["id"]) if _has_id(node) else None, node, "\n    ")
            for piece, node in zip(same, document["nodes"])
        ]
        fields = {
            key: _edited(self._fields.get(key), value, "\n  ") for key, value in document.items() if key != "nodes"
        }
        fields = {key: fields.get(key) or _Piece(value, b"") for key, value in document.items()}
        is_same = list(fields) == list(self._fields) and all(
            piece is self._fields[key] for key, piece in fields.items() if key != "nodes"
        )
        return self if is_same and nodes == self._nodes else Snapshot(fields, nodes)

    def set_rev(self, rev: int) -> None:
        """Number a new one."""
        self._fields["rev"] = _Piece(rev, b"%d" % rev)
        self.document["rev"] = rev

    def encoded(self) -> bytes:
        """The file, as people and version control like to read it."""
        nodes = b",\n    ".join([piece.text for piece in self._nodes])
        texts = {key: piece.text for key, piece in self._fields.items()}
        texts["nodes"] = b"[\n    %b\n  ]" % nodes if nodes else b"[]"
        fields = [b"%b: %b" % (numbers.dumps(key).encode(), text) for key, text in texts.items()]
        return b"{\n  %b\n}\n" % b",\n  ".join(fields)

    def answer(self, ours: set[str], ended: frozenset[str] = frozenset()) -> bytes:
        """The nodes as a JSON array; a terminal that is none of `ours`, or has `ended`, says so."""
        known = self._answer
        if known is None or known[:2] != (ours, ended):
            texts = [_marked(piece, ours, ended) for piece in self._nodes]
            known = self._answer = (ours, ended, b"[" + b",".join(texts) + b"]")
        return known[2]


def _marked(piece: _Piece, ours: set[str], ended: frozenset[str]) -> bytes:
    node = piece.value
    if is_elsewhere(node, ours):
        return _compact({**node, "elsewhere": True})
    if _has_id(node) and node["id"] in ended and node.get("type") == "terminal":
        return _compact({**node, "ended": True})
    return piece.answer()


def _edited(before: _Piece | None, value: Any, indent: str) -> _Piece:
    """What is left of a piece once an edit is through with its value."""
    if before is not None and before.value == value:
        return before
    text = numbers.dumps(value, before.text.decode() if before else "")
    return _Piece(value, text.replace("\n", indent).encode())


def _has_id(node: object) -> bool:
    return isinstance(node, dict) and isinstance(node.get("id"), str)


def _compact(value: object) -> bytes:
    return jsontext.encode(jsontext.compact(value))


def _read_document(text: str) -> tuple[dict[str, _Piece], list[_Piece]]:
    """The fields of the object that a text is, and what is in its `nodes`. Raises ValueError, IndexError."""
    fields: dict[str, _Piece] = {}
    nodes: list[_Piece] = []
    index, is_end = _enter(text, _after_blanks(text, 0), "{}")
    while not is_end:
        key, index = jsontext.decode_at(text, index, 1)
        index = _after_blanks(text, index)
        if not isinstance(key, str) or text[index] != ":":
            raise ValueError("no key")
        index = _after_blanks(text, index + 1)
        if key == "nodes" and text[index] == "[":
            nodes, index = _read_list(text, index)
            fields[key] = _Piece([piece.value for piece in nodes], b"")
        else:
            fields[key], index = _read_piece(text, index, 1)
        index, is_end = _next(text, index, "}")
    if _after_blanks(text, index) != len(text):
        raise ValueError("more than one value")
    return fields, nodes


def _read_list(text: str, index: int) -> tuple[list[_Piece], int]:
    pieces = []
    index, is_end = _enter(text, index, "[]")
    while not is_end:
        piece, index = _read_piece(text, index, 2)
        pieces.append(piece)
        index, is_end = _next(text, index, "]")
    return pieces, index


def _read_piece(text: str, index: int, level: int) -> tuple[_Piece, int]:
    value, end = jsontext.decode_at(text, index, level)
    return _Piece(value, text[index:end].encode()), end


def _enter(text: str, index: int, brackets: str) -> tuple[int, bool]:
    """Go into an object or array: where its first item begins, or, True, where it has ended."""
    if text[index] != brackets[0]:
        raise ValueError("another kind of value")
    index = _after_blanks(text, index + 1)
    return (index + 1, True) if text[index] == brackets[1] else (index, False)


def _next(text: str, index: int, closing: str) -> tuple[int, bool]:
    """Go on behind an item: where the next begins, or, True, where all has ended."""
    index = _after_blanks(text, index)
    if text[index] == closing:
        return index + 1, True
    if text[index] != ",":
        raise ValueError("no comma")
    return _after_blanks(text, index + 1), False


def _after_blanks(text: str, index: int) -> int:
    found = _BLANKS.match(text, index)
    return found.end() if found else index
