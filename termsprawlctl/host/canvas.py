"""The project file `<folder>/.termsprawl/project.json`, as the app reads and writes it.

    {"version": 1, "rev": 7, "nodes": [{"id", "type", "position": {"x", "y"},
     "style": {"width", "height"}, "parentId"?, "data": {...}}]}

Read anew for every change, so that what others wrote is kept; keys and node types
that this host does not know stay as they are.
"""

from __future__ import annotations

import contextlib
import json
import os

from .. import jsontext
from ..errors import CtlError
from ..files import DIRECTORY_MODE, read_small, write_atomically

VERSION = 1
MAX_PROJECT_BYTES = 32 << 20
TERMINAL_SIZE = {"width": 720, "height": 420}  # pixels, what the app gives a new terminal
GAP = 40  # pixels between a new node and its neighbour


def project_file(folder: str) -> str:
    """The path of a folder's project file."""
    return os.path.join(folder, ".termsprawl", "project.json")


def load(folder: str) -> dict:
    """The project's document; an empty one where there is no file yet.

    Raises CtlError when the file cannot be read or is not a project.
    """
    path = project_file(folder)
    try:
        document = jsontext.loads(read_small(path, MAX_PROJECT_BYTES))
    except FileNotFoundError:
        return {"version": VERSION, "rev": 0, "nodes": []}
    except OSError as error:
        raise CtlError(f"Cannot read {path}: {error.strerror}.", "Nothing was changed.") from None
    except ValueError as error:
        raise CtlError(
            f"The project file {path} is not JSON ({error}).", "Mend it or move it away; nothing was changed."
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise CtlError(f"The project file {path} has no list of nodes.", "Mend it or move it away.")
    if document.get("version") != VERSION:
        raise CtlError(f"The project file {path} has version {document.get('version')!r}, not 1; nothing was changed.")
    return document


@contextlib.contextmanager
def changing(folder: str):
    """Load the document, let the caller change it in place, and write it with `rev` one higher.

    The caller holds the project's turn. Raises CtlError; the file is then as it was.
    """
    document = load(folder)
    yield document
    rev = document.get("rev")
    document["rev"] = rev + 1 if isinstance(rev, int) else 1
    path = project_file(folder)
    try:
        os.makedirs(os.path.dirname(path), mode=DIRECTORY_MODE, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=2).encode() + b"\n")
    except OSError as error:
        raise CtlError(f"Cannot write {path}: {error.strerror}.", "Nothing was changed.") from None


def find(document: dict, node_id: str) -> dict | None:
    """The node with this id, or None."""
    for node in document["nodes"]:
        if isinstance(node, dict) and node.get("id") == node_id:
            return node
    return None


def add_terminal(document: dict, node_id: str, title: str, folder: str) -> dict:
    """Put a terminal node to the right of everything that stands at the top level."""
    node = {
        "id": node_id,
        "type": "terminal",
        "position": {"x": _right_edge(document), "y": 0},
        "style": dict(TERMINAL_SIZE),
        "data": {"kind": "terminal", "title": title, "cwd": folder},
    }
    document["nodes"].append(node)
    return node


def remove(document: dict, node_id: str) -> None:
    """Take a node out; one that is not there is no error."""
    document["nodes"] = [
        node for node in document["nodes"] if not (isinstance(node, dict) and node.get("id") == node_id)
    ]


def _right_edge(document: dict) -> float:
    edges = [0]
    for node in document["nodes"]:
        if isinstance(node, dict) and "parentId" not in node:
            left, width = _number(node.get("position"), "x"), _number(node.get("style"), "width")
            edges.append(left + width + GAP)
    return max(edges)


def _number(holder: object, key: str) -> float:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
