"""Change one member of a JSON text and keep every other byte.

Pure. What is put in looks like its neighbours: their indentation, their line ends,
and a comma after the last one where they have it.
"""

from __future__ import annotations

import json
import re

from .jsonc import Member, Node, NotJson, Syntax, ends_with_line_comment, parse

DEFAULT_INDENT = "  "
_BLANKS = " \t"


def read(text: str, syntax: Syntax, path: tuple[str, ...]) -> object:
    """The value at a path of keys; None where there is none.

    A blank text is an empty object. Raises NotJson also where something on the way is
    no object.
    """
    found = _walk(parse(_or_empty(text), syntax), path)
    return None if found is None else found.value()


def put(text: str, syntax: Syntax, path: tuple[str, ...], value: object) -> str:
    """The text with the value at the path, objects on the way made where they are missing.

    Raises NotJson.
    """
    text = _or_empty(text)
    holder = parse(text, syntax)
    _require_object(holder, ())
    for depth, key in enumerate(path):
        member = holder.find(key)
        if member is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, holder, key, value)
        if depth == len(path) - 1:
            indent = _line_indent(text, member.start)
            return text[: member.node.start] + _shown(text, value, indent) + text[member.node.end :]
        holder = member.node
        _require_object(holder, path[: depth + 1])
    raise ValueError("an empty path")


def remove(text: str, syntax: Syntax, path: tuple[str, ...]) -> str:
    """The text without the member at the path; the same text where there is none. Raises NotJson."""
    holder = _walk(parse(_or_empty(text), syntax), path[:-1])
    if holder is None:
        return text
    _require_object(holder, path[:-1])
    member = holder.find(path[-1])
    return text if member is None else _cut(text, holder, member)


def add_items(text: str, syntax: Syntax, path: tuple[str, ...], items: list[str]) -> str:
    """The text with these strings in the list at the path, behind what is there. Raises NotJson."""
    for item in items:
        node = _walk(parse(_or_empty(text), syntax), path)
        there = [] if node is None else _items(node, path)
        if not there:
            text = put(text, syntax, path, [item])
        elif item not in [one.value() for one in there]:
            last = there[-1]
            own_line = _starts_line(text, last.start)
            between = _newline(text) + _line_indent(text, last.start) if own_line else " "
            text = _spliced(text, last.end, f",{between}{json.dumps(item)}")
    return text


def remove_items(text: str, syntax: Syntax, path: tuple[str, ...], items: list[str]) -> str:
    """The text without these strings in the list at the path. Raises NotJson."""
    for item in items:
        node = _walk(parse(_or_empty(text), syntax), path)
        there = [] if node is None else _items(node, path)
        found = next((at for at, one in enumerate(there) if one.value() == item), None)
        if found is None or node is None:
            continue
        if len(there) == 1:
            start, end = node.start + 1, node.end - 1
        elif found:
            start, end = there[found - 1].end, there[found].end
        else:
            start, end = there[0].start, there[1].start
        text = text[:start] + text[end:]
    return text


def is_bare(text: str, syntax: Syntax, path: tuple[str, ...]) -> bool:
    """Whether the object at the path has neither a member nor a comment. Raises NotJson."""
    node = _walk(parse(_or_empty(text), syntax), path)
    return node is not None and node.members == [] and not text[node.start + 1 : node.end - 1].strip()


def _or_empty(text: str) -> str:
    return text if text.strip("\ufeff \t\r\n") else "{}\n"


def _walk(node: Node, path: tuple[str, ...]) -> Node | None:
    _require_object(node, ())
    for depth, key in enumerate(path):
        _require_object(node, path[:depth])
        member = node.find(key)
        if member is None:
            return None
        node = member.node
    return node


def _items(node: Node, path: tuple[str, ...]) -> list[Node]:
    if node.items is None:
        raise NotJson(f"{'.'.join(path)} is not a list")
    return node.items


def _require_object(node: Node, path: tuple[str, ...]) -> None:
    if node.members is None:
        raise NotJson(f"{'.'.join(path) or 'it'} is not a JSON object")


def _insert(text: str, holder: Node, key: str, value: object) -> str:
    members = holder.members or []
    last = members[-1] if members else None
    if last is not None and not _starts_line(text, last.start):
        member = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        if last.comma is None:
            return _spliced(text, last.node.end, f", {member}")
        return _spliced(text, last.comma + 1, f" {member},")
    newline = _newline(text)
    outer = _line_indent(text, holder.start)
    indent = _line_indent(text, last.start) if last else outer + _unit(text)
    added = f"{newline}{indent}{json.dumps(key)}: {_shown(text, value, indent)}"
    # Behind the last comment inside the braces, where there is one.
    closing = holder.end - 1
    place = len(text[:closing].rstrip(" \t\r\n"))
    line_end = place + len(text[place:closing]) - len(text[place:closing].lstrip(_BLANKS))
    place = line_end if line_end < closing else place
    if last is None and "\n" not in text[place:closing]:
        added += newline + outer
    if last is not None and last.comma is not None:
        added += ","
    text = _spliced(text, place, added)
    return _spliced(text, last.node.end, ",") if last is not None and last.comma is None else text


def _cut(text: str, holder: Node, member: Member) -> str:
    members = holder.members or []
    position = members.index(member)
    previous = members[position - 1] if position else None
    start, end = member.start, member.node.end if member.comma is None else member.comma + 1
    blanks_end = end + len(text[end:]) - len(text[end:].lstrip(_BLANKS))
    ends_line = text[blanks_end : blanks_end + 1] in ("", "\n", "\r")
    # Where the brackets close on its line they go up a line, unless a // there would swallow them.
    before = previous.comma or 0 if previous is not None and member is members[-1] else None
    may_join = before is not None and not ends_with_line_comment(text, before + 1)
    if _starts_line(text, start) and (ends_line or may_join):
        start = len(text[:start].rstrip(_BLANKS)) - 1  # the line's end before it goes, too
        start -= text[start - 1 : start] == "\r"
        end = blanks_end if ends_line else end
    elif previous is not None and not _starts_line(text, start):
        start = len(text[:start].rstrip(_BLANKS))
    else:
        end = blanks_end
    shorter = text[:start] + text[end:]
    if len(members) == 1 and not shorter[holder.start + 1 : holder.end - 1 - (end - start)].strip():
        return shorter[: holder.start + 1] + shorter[holder.end - 1 - (end - start) :]
    if previous is not None and previous.comma is not None and member.comma is None:
        shorter = shorter[: previous.comma] + shorter[previous.comma + 1 :]
    return shorter


def _spliced(text: str, place: int, added: str) -> str:
    return text[:place] + added + text[place:]


def _shown(text: str, value: object, indent: str) -> str:
    """The value over several lines, as it stands in a text behind a line with this indentation."""
    shown = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return shown.replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """One step of indentation: what stands before the first key that begins a line."""
    match = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return match.group(1) if match else DEFAULT_INDENT


def _starts_line(text: str, place: int) -> bool:
    return text[:place].rstrip(_BLANKS)[-1:] in ("\n", "")


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(_BLANKS))]
