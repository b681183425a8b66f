"""What TOML statements mean together: nested tables, and the rules on defining each only once."""

from __future__ import annotations


class NotToml(ValueError):
    """The text cannot be read; the message says where, and quotes nothing."""


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
