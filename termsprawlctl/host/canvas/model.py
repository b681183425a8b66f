"""What can be done to a project's document, as pure functions on it.

    {"version": 1, "rev": 7, "nodes": [{"id", "type", "position": {"x", "y"},
     "style": {"width", "height"}, "parentId"?, "data": {"kind": type, ...}}]}

Coordinates and sizes are pixels; the position of a node with a `parentId` is relative to
that group. Keys and node types that are not named here stay as they are. Each function
that changes something either does all of it or raises CtlError before the first change.
A node that stands in the document is replaced, never changed: others may hold it, too.
"""

from __future__ import annotations

from ...base.errors import CtlError
from .numbers import number_of

# (width, height) of a new node, and of one that names no size itself.
SIZES = {
    "terminal": (720, 420),
    "sticky": (200, 130),
    "group": (200, 130),
    "diff": (560, 360),
    "editor": (640, 420),
    "browser": (320, 240),
    "chat": (420, 480),
}
_OTHER_SIZE = SIZES["sticky"]
# What a node can be resized to.
MIN_SIZES = {"browser": (320, 240)}
MIN_SIZE, MAX_SIZE = (240, 140), (8000, 8000)
GAP = 40  # between a new node and its neighbour
FIRST_X, NEW_Y = 60, 60  # where a new node stands: the first one, and every one
# A frame's distance to what it holds; its title needs more above.
PADDING, TOP_PADDING = 24, 48
STICKY_COLOR = "amber"  # of slate amber lime pink cyan
# Beyond this a number in the file is no place on a canvas, and could overflow here.
MAX_COORDINATE = 1e9
_LIST = "canvas_list lists the nodes of this project."


def find(document: dict, node_id: str) -> dict | None:
    """The node with this id, or None."""
    for node in document["nodes"]:
        if isinstance(node, dict) and node.get("id") == node_id:
            return node
    return None


def add_terminal(document: dict, node_id: str, title: str, folder: str) -> dict:
    """Put a terminal node beside everything else and return it."""
    return _add(document, node_id, "terminal", {"title": title, "cwd": folder, "linkedIds": []})


def add_agent(document: dict, node_id: str, agent: str, command: str, folder: str) -> dict:
    """Put the terminal node of an agent beside everything else and return it; `agent` is its id or `custom`."""
    node = add_terminal(document, node_id, agent, folder)
    node["data"].update(agentId=agent, command=command)
    return node


def add_sticky(document: dict, node_id: str, text: str) -> dict:
    """Put an open note beside everything else and return it."""
    return _add(document, node_id, "sticky", {"text": text, "color": STICKY_COLOR, "collapsed": False})


def add_editor(document: dict, node_id: str, path: str) -> dict:
    """Put an editor beside everything else and return it; it shows the text itself, not a rendering."""
    return _add(document, node_id, "editor", {"path": path, "preview": False})


def add_diff(document: dict, node_id: str, path: str) -> dict:
    """Put a diff beside everything else and return it; against HEAD, so that staged changes show, too."""
    return _add(document, node_id, "diff", {"path": path, "base": "HEAD"})


def remove(document: dict, node_id: str) -> None:
    """Take a node out; one that is not there is no error."""
    document["nodes"] = [
        node for node in document["nodes"] if not (isinstance(node, dict) and node.get("id") == node_id)
    ]


def move(document: dict, node_id: str, x: float, y: float) -> dict:
    """Set a node's position, relative to its group where it has one; returns {x, y}."""
    (node,) = _replaced(document, [node_id])
    return _set(node, "position", x=_plain(x), y=_plain(y))


def resize(document: dict, node_id: str, width: float, height: float) -> dict:
    """Set a node's size, in both places where one can stand; returns {width, height}. Outside the bounds: CtlError."""
    (node,) = nodes(document, [node_id])
    least = MIN_SIZES.get(_kind(node), MIN_SIZE)
    if not (least[0] <= width <= MAX_SIZE[0] and least[1] <= height <= MAX_SIZE[1]):
        raise CtlError(
            f"{width:g}x{height:g} is not a size for {node_id}.",
            f"Choose one from {least[0]}x{least[1]} to {MAX_SIZE[0]}x{MAX_SIZE[1]}.",
        )
    (node,) = _replaced(document, [node_id])
    size = _set(node, "style", width=_plain(width), height=_plain(height))
    node.update(size)
    return size


def group(document: dict, group_id: str, node_ids: list[str], title: str) -> dict:
    """Put a frame around top-level nodes, which are not groups themselves; returns the group's node.

    The nodes stay where they are on the canvas: their positions become relative to the
    frame's corner. The frame goes before them in the list, because a canvas draws in
    order and has to know a parent before its children.
    """
    members = nodes(document, node_ids)
    for node in members:
        if not is_top_level(node):
            raise CtlError(f"Node {node['id']} is in a group already.", "Only top-level nodes can be grouped.")
        if node.get("type") == "group":
            raise CtlError(f"Node {node['id']} is a group.", "A group cannot go into a group; leave it out.")
    boxes = [_box(node) for node in members]
    left = min(box[0] for box in boxes) - PADDING
    top = min(box[1] for box in boxes) - TOP_PADDING
    right = max(box[0] + box[2] for box in boxes) + PADDING
    bottom = max(box[1] + box[3] for box in boxes) + PADDING
    frame = {
        "id": group_id,
        "type": "group",
        "position": {"x": left, "y": top},
        "style": {"width": right - left, "height": bottom - top},
        "data": {"kind": "group", "title": title},
    }
    identities = set(map(id, members))
    first = next(index for index, node in enumerate(document["nodes"]) if id(node) in identities)
    for node, (x, y, _, _) in zip(_replaced(document, node_ids), boxes):
        _set(node, "position", x=x - left, y=y - top)
        node["parentId"] = group_id
    document["nodes"].insert(first, frame)
    return frame


def is_top_level(node: dict) -> bool:
    """Whether a node is in no group; null says the same as no parentId."""
    return node.get("parentId") is None


def is_elsewhere(node: object, ours: set[str]) -> bool:
    """Whether another program (the app, or a relay) runs the terminal of a node; `ours` are the nodes of this host."""
    if not isinstance(node, dict) or node.get("type") != "terminal":
        return False
    data = node.get("data")
    return node.get("id") not in ours or (isinstance(data, dict) and bool(data.get("relayTerm")))


def title(node: dict | None) -> str:
    """The title that the user sees on a node; "" where it has none."""
    return text_of(node, "title")


def text_of(node: dict | None, key: str) -> str:
    """A text of a node's data; "" where it has none."""
    data = node.get("data") if node else None
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def _add(document: dict, node_id: str, kind: str, data: dict) -> dict:
    width, height = SIZES[kind]
    node = {
        "id": node_id,
        "type": kind,
        "position": {"x": _right_edge(document), "y": NEW_Y},
        "style": {"width": width, "height": height},
        "data": {"kind": kind, **data},
    }
    document["nodes"].append(node)
    return node


def nodes(document: dict, node_ids: list[str]) -> list[dict]:
    """The nodes with these ids, each once. Raises CtlError for the first that does not exist."""
    wanted = set(node_ids)
    found: dict[str, dict] = {}
    for node in document["nodes"]:
        node_id = node.get("id") if isinstance(node, dict) else None
        if isinstance(node_id, str) and node_id in wanted:
            found.setdefault(node_id, node)
    for node_id in node_ids:
        if node_id not in found:
            raise CtlError(f"Unknown node: {node_id}.", _LIST)
    return [found[node_id] for node_id in dict.fromkeys(node_ids)]


def _replaced(document: dict, node_ids: list[str]) -> list[dict]:
    """Copies of the nodes with these ids, each once, which take their places. Raises CtlError as nodes()."""
    found = nodes(document, node_ids)
    copies = {id(node): dict(node) for node in found}
    document["nodes"][:] = [copies.get(id(node), node) for node in document["nodes"]]
    return list(copies.values())


def _set(node: dict, key: str, **values: float) -> dict:
    """Change values of a new node's position or style; returns them. What else stands there stays."""
    holder = node.get(key)
    node[key] = {**(holder if isinstance(holder, dict) else {}), **values}
    return values


def _box(node: dict) -> tuple[float, float, float, float]:
    """(x, y, width, height) of a node."""
    position = node.get("position")
    return (_number(position, "x"), _number(position, "y"), *_size(node))


def _size(node: dict) -> tuple[float, float]:
    """Its own where it has both numbers, else its style's, else what one of its type gets."""
    for holder in (node, node.get("style")):
        width, height = _number(holder, "width"), _number(holder, "height")
        if width > 0 and height > 0:
            return width, height
    return SIZES.get(_kind(node), _OTHER_SIZE)


def _kind(node: dict) -> str:
    kind = node.get("type")
    return kind if isinstance(kind, str) else ""


def _right_edge(document: dict) -> float:
    """Where there is nothing to the right of: the x of a new top-level node."""
    boxes = [_box(node) for node in document["nodes"] if isinstance(node, dict) and is_top_level(node)]
    return _plain(max(x + width for x, _, width, _ in boxes) + GAP) if boxes else FIRST_X


def _number(holder: object, key: str) -> float:
    value = number_of(holder.get(key)) if isinstance(holder, dict) else None
    return value if value is not None and abs(value) <= MAX_COORDINATE else 0


def _plain(number: float) -> float:
    """A whole number without the `.0` that other programs do not write."""
    return int(number) if number == int(number) else number
