"""Change one table of a TOML text and keep every other byte.

Pure. Tables are put at the end of the text, where they belong to nobody else.
"""

from __future__ import annotations

import re

from .toml import NotToml, Other, Statement, parse, tree_of

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What a basic string cannot hold as it is.
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read(text: str, path: tuple[str, ...]) -> object:
    """The value at a path of keys; None where there is none. Raises NotToml."""
    value: object = tree_of(parse(text))
    for key in path:
        if not isinstance(value, dict):
            raise NotToml(f"{'.'.join(path)} is not below a table")
        value = value.get(key)
        if value is None:
            return None
    return value


def put(text: str, path: tuple[str, ...], entry: dict) -> str:
    """The text with the table at the path holding `entry`: strings, lists of strings, one level of tables.

    Keys of the table that `entry` does not name stay. Raises NotToml.
    """
    statements = parse(text)
    there = read(text, path)
    if there is None:
        return _appended(text, path, entry)
    if not isinstance(there, dict) or not any(one.kind == "table" and one.path == path for one in statements):
        raise NotToml(f"{'.'.join(path)} is not written as a [table], so it has to be changed by hand")
    for key, value in entry.items():
        if isinstance(value, dict):
            text = put(text, (*path, key), value)
        elif there.get(key) != value:
            text = _set(text, path, key, value)
    return text


def remove(text: str, path: tuple[str, ...]) -> str:
    """The text without the table at the path and all below it; the same text where there is none.

    Raises NotToml.
    """
    if read(text, path) is None:
        return text
    statements = parse(text)
    # From the last to the first, so that the places before stay what they are.
    for first, last in reversed(_blocks(statements, path)):
        text = text[: _line_start(text, first.start)] + text[_line_end(text, last.end) :]
    if read(text, path) is not None:
        raise NotToml(f"{'.'.join(path)} is part of an inline table, so it has to be removed by hand")
    return text


def is_bare(text: str, path: tuple[str, ...]) -> bool:
    """Whether the table at the path has neither an entry nor a comment beside its name. Raises NotToml."""
    if read(text, path) != {}:
        return False
    ends = (one.end for one in parse(text) if one.path == path)
    return not any(text[end : _line_end(text, end)].strip() for end in ends)


def shown(path: tuple[str, ...], entry: dict) -> str:
    """The table as text."""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_shown_value(value)}" for key, value in entry.items() if not isinstance(value, dict)]
    tables = [shown((*path, key), value) for key, value in entry.items() if isinstance(value, dict)]
    return "\n".join(["\n".join(lines), *("\n" + table for table in tables)])


def _appended(text: str, path: tuple[str, ...], entry: dict) -> str:
    if any(one.kind == "pair" and path[: len(one.path)] == one.path for one in parse(text)):
        raise NotToml(f"{'.'.join(path[:-1])} is an inline table, so it has to be changed by hand")
    block = shown(path, entry) + "\n"
    if text.strip("\ufeff"):
        block = ("\n" if text.endswith("\n") else "\n\n") + block
    return text + block.replace("\n", "\r\n" if "\r\n" in text else "\n")


def _set(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    statements = parse(text)
    header = next(at for at, one in enumerate(statements) if one.kind == "table" and one.path == path)
    line = f"{_key(key)} = {_shown_value(value)}"
    for one in statements[header + 1 :]:
        if one.kind != "pair":
            break
        if one.path == (*path, key):
            return text[: one.start] + line + text[one.end :]
    end = statements[header].end
    end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    place = _line_end(text, end)
    newline = "\r\n" if "\r\n" in text else "\n"
    return text[:place] + ("" if text[:place].endswith("\n") else newline) + line + newline + text[place:]


def _blocks(statements: list[Statement], path: tuple[str, ...]) -> list[tuple[Statement, Statement]]:
    """(first, last) statement of each run that defines the path or something below it."""
    blocks = []
    run: list[Statement] = []
    header: tuple[str, ...] = ()
    for one in statements:
        if one.kind != "pair":
            header = one.path
        ours = one.path[: len(path)] == path
        # A header goes with all of its pairs, a pair of a shared header alone.
        if run and (not ours or one.kind != "pair" or header[: len(path)] != path):
            blocks.append((run[0], run[-1]))
            run = []
        if ours:
            run.append(one)
    return blocks + ([(run[0], run[-1])] if run else [])


def _line_start(text: str, place: int) -> int:
    """Where the statement's line begins, with one blank line before a table."""
    start = text.rfind("\n", 0, place) + 1
    if text[place] == "[":
        for blank_line in ("\n\n", "\r\n\r\n"):
            if text[:start].endswith(blank_line):
                return start - len(blank_line) // 2
    return start


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _shown_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown_value, value))}]"
    if isinstance(value, Other):
        return value.text
    return _string(str(value))


def _string(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _SHORT.get(match.group()) or f"\\u{ord(match.group()):04x}", text) + '"'
