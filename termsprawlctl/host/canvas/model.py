"""What can be done to a project's document, as pure functions on it.

    {"version": 1, "rev": 7, "nodes": [{"id", "type", "position": {"x", "y"},
     "style": {"width", "height"}, "parentId"?, "data": {"kind": type, ...}}]}

Coordinates and sizes are pixels; the position of a node with a `parentId` is relative to
that group. Keys and node types that are not named here stay as they are. Each function
that changes something either does all of it or raises CtlError before the first change.
"""

from __future__ import annotations

from ...base.errors import CtlError

MIN_WIDTH, MIN_HEIGHT = 240, 120
# What a new node gets: [width, height]. A terminal's is the app's.
SIZES = {"terminal": (720, 420), "sticky": (280, 200), "editor": (720, 520), "diff": (720, 520)}
GAP = 40  # between a new node and its neighbour
# A frame's distance to what it holds; its title needs one more above.
PADDING, TITLE_HEIGHT = 24, 40
STICKY_COLOR = "amber"  # of slate amber lime pink cyan
SELECTED = "selected"
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
    return _add(document, node_id, "terminal", {"title": title, "cwd": folder})


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


def select(document: dict, node_ids: list[str]) -> None:
    """Make these nodes the selection: `selected` is true in them and absent from all others.

    That key is what the canvas itself has in a selected node. It lasts until the user
    selects something else, or another program that writes the file leaves it out.
    """
    chosen = _nodes(document, node_ids)
    for node in document["nodes"]:
        if isinstance(node, dict):
            node.pop(SELECTED, None)
    for node in chosen:
        node[SELECTED] = True


def move(document: dict, node_id: str, x: float, y: float) -> dict:
    """Set a node's position, relative to its group where it has one; returns {x, y}."""
    (node,) = _nodes(document, [node_id])
    return _set(node, "position", x=_plain(x), y=_plain(y))


def resize(document: dict, node_id: str, width: float, height: float) -> dict:
    """Set a node's size, never below the smallest; returns {width, height} as they are now."""
    (node,) = _nodes(document, [node_id])
    return _set(node, "style", width=_plain(max(width, MIN_WIDTH)), height=_plain(max(height, MIN_HEIGHT)))


def group(document: dict, group_id: str, node_ids: list[str], title: str) -> dict:
    """Put a frame around top-level nodes, which are not groups themselves; returns the group's node.

    The nodes stay where they are on the canvas: their positions become relative to the
    frame's corner. The frame goes before them in the list, because a canvas draws in
    order and has to know a parent before its children. A node without a usable size
    counts with the smallest one.
    """
    members = _nodes(document, node_ids)
    for node in members:
        if not is_top_level(node):
            raise CtlError(f"Node {node['id']} is in a group already.", "Only top-level nodes can be grouped.")
        if node.get("type") == "group":
            raise CtlError(f"Node {node['id']} is a group.", "A group cannot go into a group; leave it out.")
    boxes = [_box(node) for node in members]
    left = min(box[0] for box in boxes) - PADDING
    top = min(box[1] for box in boxes) - PADDING - TITLE_HEIGHT
    right = max(box[0] + box[2] for box in boxes) + PADDING
    bottom = max(box[1] + box[3] for box in boxes) + PADDING
    frame = {
        "id": group_id,
        "type": "group",
        "position": {"x": left, "y": top},
        "style": {"width": max(right - left, MIN_WIDTH), "height": max(bottom - top, MIN_HEIGHT)},
        "data": {"kind": "group", "title": title},
    }
    for node, (x, y, _, _) in zip(members, boxes):
        _set(node, "position", x=x - left, y=y - top)
        node["parentId"] = group_id
    first = min(index for index, node in enumerate(document["nodes"]) if any(node is member for member in members))
    document["nodes"].insert(first, frame)
    return frame


def is_top_level(node: dict) -> bool:
    """Whether a node is in no group; null says the same as no parentId."""
    return node.get("parentId") is None


def title(node: dict | None) -> str:
    """The title that the user sees on a node; "" where it has none."""
    data = node.get("data") if node else None
    value = data.get("title") if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def _add(document: dict, node_id: str, kind: str, data: dict) -> dict:
    width, height = SIZES[kind]
    node = {
        "id": node_id,
        "type": kind,
        "position": {"x": _right_edge(document), "y": 0},
        "style": {"width": width, "height": height},
        "data": {"kind": kind, **data},
    }
    document["nodes"].append(node)
    return node


def _nodes(document: dict, node_ids: list[str]) -> list[dict]:
    """The nodes with these ids, each once. Raises CtlError for the first that does not exist."""
    found = []
    for node_id in dict.fromkeys(node_ids):
        node = find(document, node_id)
        if node is None:
            raise CtlError(f"Unknown node: {node_id}.", _LIST)
        found.append(node)
    return found


def _set(node: dict, key: str, **values: float) -> dict:
    """Change values of a node's position or style; returns them. What else stands there stays."""
    holder = node.get(key)
    if not isinstance(holder, dict):
        holder = node[key] = {}
    holder.update(values)
    return values


def _box(node: dict) -> tuple[float, float, float, float]:
    """(x, y, width, height) of a node."""
    position, style = node.get("position"), node.get("style")
    width, height = _number(style, "width"), _number(style, "height")
    return (
        _number(position, "x"),
        _number(position, "y"),
        width if width > 0 else MIN_WIDTH,
        height if height > 0 else MIN_HEIGHT,
    )


def _right_edge(document: dict) -> float:
    """Where there is nothing to the right of: the x of a new top-level node."""
    boxes = [_box(node) for node in document["nodes"] if isinstance(node, dict) and is_top_level(node)]
    return _plain(max([0, *(x + width + GAP for x, _, width, _ in boxes)]))


def _number(holder: object, key: str) -> float:
    value = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return value if abs(value) <= MAX_COORDINATE else 0


def _plain(number: float) -> float:
    """A whole number without the `.0` that other programs do not write."""
    return int(number) if number == int(number) else number
