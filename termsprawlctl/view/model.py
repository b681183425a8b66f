"""What there is to draw: boxes in absolute pixels, and links between them. Pure.

Nodes come from the app and may hold anything; what makes no sense is drawn as well as
can be, and nothing in a text can reach the terminal as more than text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from ..base.text import visible


@dataclass(frozen=True)
class Box:
    """A node to draw.

    x, y, width, height: pixels from the canvas's origin; text: a note's words, or a file's
    path; color: a note's, by the canvas's own name; runs: the program in a terminal, "" for
    unknown; ended: whether a terminal's session is gone; elsewhere: whether another program runs it;
    depth: 0 at the top level, 1 in a group.
    """

    id: str
    kind: str
    title: str
    text: str
    color: str
    runs: str
    ended: bool
    elsewhere: bool
    x: float
    y: float
    width: float
    height: float
    depth: int


@dataclass(frozen=True)
class Link:
    """From one box to another, by their ids."""

    sender: str
    recipient: str


@dataclass(frozen=True)
class Picture:
    """All there is to draw."""

    boxes: list[Box]
    links: list[Link]
    # What terminals show, line by line, by their ids; only where it was asked for.
    screens: dict[str, list[str]] = field(default_factory=dict)


DEFAULT_SIZE = (240.0, 120.0)  # the canvas's own smallest, where a node names none
MAX_COORDINATE = 1_000_000.0  # the operations take no larger ones
MAX_DEPTH = 50  # a chain of parents that is longer leads in a circle


def picture(nodes: object, runs: dict[str, str], links: list[tuple[str, str]], *, known: bool) -> Picture:
    """The picture of a canvas_list's nodes.

    `runs` maps ids of terminals that are alive to what runs there, and holds them all if
    `known`. Links to what is not there are left out.
    """
    by_id: dict[str, dict] = {}
    for node in nodes if isinstance(nodes, list) else []:
        if isinstance(node, dict) and isinstance(node.get("id"), str):
            by_id[node["id"]] = node
    boxes = []
    for node in by_id.values():
        x, y, depth = _place(node, by_id)
        width, height = _size(node)
        kind = clean(node.get("type")) or "unknown"
        data = node.get("data")
        data = data if isinstance(data, dict) else {}
        elsewhere = kind == "terminal" and node.get("elsewhere") is True
        # tmux knows best, where it can be asked.
        ended = node["id"] not in runs and (known or node.get("ended") is True)
        ended = ended and kind == "terminal" and not elsewhere
        title = clean(data.get("title"))
        text = clean(data.get("text") or data.get("path") or data.get("url"))
        running = clean(runs.get(node["id"], ""))
        color = clean(data.get("color"))
        place = (x, y, width, height, depth)
        boxes.append(Box(clean(node["id"]), kind, title, text, color, running, ended, elsewhere, *place))
    boxes.sort(key=lambda box: (box.kind != "group", box.depth))  # groups lie below what is in them
    there = {box.id for box in boxes}
    return Picture(boxes, [Link(*pair) for pair in links if set(pair) <= there and pair[0] != pair[1]])


def bounds(boxes: list[Box]) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) around all boxes, in pixels; zeros where there are none."""
    if not boxes:
        return 0.0, 0.0, 0.0, 0.0
    return (
        min(box.x for box in boxes),
        min(box.y for box in boxes),
        max(box.x + box.width for box in boxes),
        max(box.y + box.height for box in boxes),
    )


def label(box: Box) -> str:
    """What a person calls it."""
    return box.title or {"sticky": "note"}.get(box.kind, box.kind)


def state(box: Box) -> str:
    """What a terminal does, a note says, or a file's path."""
    if box.kind == "terminal":
        return "elsewhere" if box.elsewhere else "ended" if box.ended else box.runs
    return box.text


def as_json(drawn: Picture) -> dict:
    """The picture as a JSON value."""
    boxes = [{**asdict(box), "label": label(box)} for box in drawn.boxes]
    return {"boxes": boxes, "links": [{"from": link.sender, "to": link.recipient} for link in drawn.links]}


def clean(value: object) -> str:
    """A text on one line, without anything that a terminal or a browser would obey."""
    return visible(value) if isinstance(value, str) else ""


def _place(node: dict, by_id: dict) -> tuple[float, float, int]:
    """Positions are relative to the parent."""
    x = y = 0.0
    depth = -1
    current: object = node
    while isinstance(current, dict) and depth < MAX_DEPTH:
        position = current.get("position")
        x += _number(position, "x", 0.0)
        y += _number(position, "y", 0.0)
        depth += 1
        parent = current.get("parentId")
        current = by_id.get(parent) if isinstance(parent, str) else None
    return _bounded(x), _bounded(y), depth


def _size(node: dict) -> tuple[float, float]:
    style = node.get("style")
    width, height = _number(style, "width", DEFAULT_SIZE[0]), _number(style, "height", DEFAULT_SIZE[1])
    return max(width, 1.0), max(height, 1.0)


def _number(holder: object, key: str, default: float) -> float:
    value = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:  # noqa: PLR0124 - not NaN
        return float(_bounded(value))  # in this order: no float holds an integer of any size
    return default


def _bounded(value: float) -> float:
    return min(max(value, -MAX_COORDINATE), MAX_COORDINATE)
