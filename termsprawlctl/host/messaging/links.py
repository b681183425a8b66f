"""Links between agents, as the user set them up, in the two places where the app has them.

May `source` send work to `target`: an element of the project file's `links`, of kind
`context-inject`, whose config says `agentMessages`. Other kinds, and what else stands in an
element, are somebody else's and stay. May two nodes read each other's transcript: a file
`<project folder>/.termsprawl/links/<lower id>--<higher id>.json`, ids in code point order.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ...base.errors import CtlError
from ...base.files import DIRECTORY_MODE, read_object, remove_quietly, write_atomically
from ...base.layout import DataPaths, is_id
from ..canvas import project_file
from ..canvas.project_file import inside
from ..registry.projects import ProjectStore, operator_node
from ..registry.sessions import SessionStore

KIND = "context-inject"
# A project has a handful; more than this in a folder is something else.
MAX_LINKS = 1000
MAX_LINK_BYTES = 4096
_OURS = "termsprawlctl-"  # how the ids of links begin that this program made
_OLDER = "link-"  # how the files of links began before they stood in the project file


def enabled(folder: str) -> set[tuple[str, str]]:
    """(sender, recipient) of every link of a project's folder along which work may go. Raises CtlError."""
    return enabled_in(project_file.load(folder))


def enabled_in(document: dict[str, Any]) -> set[tuple[str, str]]:
    """The same of a document that has been read."""
    return {(one["source"], one["target"]) for one in _messaging(document)}


def readable(folder: str) -> set[tuple[str, str]]:
    """The pairs of nodes that may read each other's transcript, the lower id first."""
    return {pair for pair in _context_files(folder).values() if pair is not None}


def damaged(folder: str) -> list[str]:
    """The names of the files that stand among a project's links and are none, in order."""
    return [name for name, pair in _context_files(folder).items() if pair is None]


def _context_files(folder: str) -> dict[str, tuple[str, str] | None]:
    """The names of the files of links, and the pair that each is for; None for one that is no link."""
    directory = _directory(folder)
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))[:MAX_LINKS]
    except OSError:
        return {}
    found: dict[str, tuple[str, str] | None] = {}
    for name in names:
        content = read_object(os.path.join(directory, name), MAX_LINK_BYTES, missing={})
        pair = (content.get("a"), content.get("b"))
        is_link = is_id(pair[0]) and is_id(pair[1]) and content.get("version") == 1
        is_link = is_link and name == _file_name(*map(str, pair))
        found[name] = (str(pair[0]), str(pair[1])) if is_link else None
    return found


def link(paths: DataPaths, sender: str, recipient: str) -> None:
    """Let one node of a project send work to another. Raises CtlError; nothing was changed then."""
    project = _common_project(paths, sender, recipient)
    if recipient == operator_node(project):
        raise CtlError(f"{recipient} has no terminal that work could be delivered to.", "Link to an agent.")
    project_file.change(ProjectStore(paths).folder(project), lambda document: _add(document, sender, recipient))


def unlink(paths: DataPaths, sender: str, recipient: str) -> None:
    """Let one node send no more work to another, also where a node is gone. Raises CtlError when it may not anyway."""
    folders = [
        folder for folder in ProjectStore(paths).all().values() if (sender, recipient) in _enabled_or_none(folder)
    ]
    if not folders:
        raise _no_link(f"from {sender} to {recipient}")
    for folder in folders:
        project_file.change(folder, lambda document: _take_out(document, sender, recipient))


def link_context(paths: DataPaths, one: str, other: str) -> None:
    """Let two nodes of a project read each other's transcript. Raises CtlError; nothing was changed then."""
    folder = ProjectStore(paths).folder(_common_project(paths, one, other))
    _write_context(folder, one, other)


def unlink_context(paths: DataPaths, one: str, other: str) -> None:
    """Let two nodes no longer read each other's transcript. Raises CtlError when they may not anyway."""
    pair = _ordered(one, other)
    folders = [folder for folder in ProjectStore(paths).all().values() if pair in readable(folder)]
    if not folders:
        raise _no_link(f"that lets {one} and {other} read each other")
    for folder in folders:
        path = os.path.join(inside(folder, _directory(folder)), _file_name(*pair))
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CtlError(f"Cannot remove {path}: {error.strerror}.", "Check its directory's permissions.") from None


def listing(paths: DataPaths) -> list[dict[str, Any]]:
    """Every link of every project: [{kind: messages or context, from, to, gone: [ids without a session], folder}]."""
    nodes = {session.node_id for session in SessionStore(paths).all()}
    return [
        {
            "kind": kind,
            "from": pair[0],
            "to": pair[1],
            "gone": [node for node in pair if node not in nodes],
            "folder": folder,
        }
        for folder in ProjectStore(paths).all().values()
        for kind, pairs in (("messages", _enabled_or_none(folder)), ("context", readable(folder)))
        for pair in sorted(pairs)
    ]


def migrate(folder: str) -> list[tuple[str, str]]:
    """Turn links of earlier versions, one file each, into these; returns (sender, recipient) of each.

    What they allowed stays allowed: work in their direction, reading in both. Raises CtlError.
    """
    directory = _directory(folder)
    try:
        names = sorted(name for name in os.listdir(directory) if name.startswith(_OLDER) and name.endswith(".json"))
    except OSError:
        return []
    moved, done = [], []
    for name in names[:MAX_LINKS]:
        path = os.path.join(inside(folder, directory), name)
        content = read_object(path, MAX_LINK_BYTES, missing={})
        sender, recipient = content.get("from"), content.get("to")
        if not is_id(sender) or not is_id(recipient):
            continue
        done.append(path)
        if content.get("enabled") is True and sender != recipient:
            moved.append((str(sender), str(recipient)))

    def edit(document: dict[str, Any]) -> None:
        for pair in moved:
            _add(document, *pair)

    if moved:
        project_file.change(folder, edit)
    for pair in moved:
        _write_context(folder, *pair)
    for path in done:
        remove_quietly(path)
    return moved


def _messaging(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The elements that let work be sent."""
    return [one for one in _elements(document) if one["config"].get("agentMessages") is True]


def _elements(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("links")
    return [
        one
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict)
        and one.get("kind") == KIND
        and isinstance(one.get("config"), dict)
        and is_id(one.get("source"))
        and is_id(one.get("target"))
    ]


def _add(document: dict[str, Any], sender: str, recipient: str) -> None:
    known = [one for one in _elements(document) if (one["source"], one["target"]) == (sender, recipient)]
    if known:
        if not any(one["config"].get("agentMessages") is True for one in known):
            known[0]["config"]["agentMessages"] = True
        return
    if document.get("links") is None:
        document["links"] = []
    if not isinstance(document["links"], list):
        raise CtlError("The project file's links are not a list.", "Fix it; nothing was changed.")
    document["links"].append(
        {
            "id": f"{_OURS}{os.urandom(6).hex()}",
            "source": sender,
            "target": recipient,
            "kind": KIND,
            "auto": False,
            "config": {"kind": KIND, "wrapper": False, "pastePointer": False, "agentMessages": True},
            "createdAt": int(time.time() * 1000),
        }
    )


def _take_out(document: dict[str, Any], sender: str, recipient: str) -> None:
    """A link that this program made goes; one of somebody else keeps all but the messages."""
    for one in _messaging(document):
        if (one["source"], one["target"]) == (sender, recipient):
            if str(one.get("id", "")).startswith(_OURS):
                document["links"] = [other for other in document["links"] if other is not one]
            else:
                one["config"]["agentMessages"] = False


def _common_project(paths: DataPaths, one: str, other: str) -> str:
    project = _project_of(paths, one)
    if _project_of(paths, other) != project:
        raise CtlError(f"{one} and {other} belong to different projects.", "Link nodes of one project.")
    if one == other:
        raise CtlError(f"{one} cannot be linked to itself.", "Name two nodes.")
    return project


def _write_context(folder: str, one: str, other: str) -> None:
    directory, pair = inside(folder, _directory(folder)), _ordered(one, other)
    content = {"version": 1, "a": pair[0], "b": pair[1]}
    try:
        os.makedirs(directory, mode=DIRECTORY_MODE, exist_ok=True)
        write_atomically(os.path.join(directory, _file_name(*pair)), json.dumps(content).encode() + b"\n")
    except OSError as error:
        raise CtlError(
            f"Cannot write to {directory}: {error.strerror}.", "Check its permissions and its disk."
        ) from None


def _enabled_or_none(folder: str) -> set[tuple[str, str]]:
    try:
        return enabled(folder)
    except CtlError:  # a damaged project file links nobody
        return set()


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _file_name(one: str, other: str) -> str:
    low, high = _ordered(one, other)
    return f"{low}--{high}.json"


def _directory(folder: str) -> str:
    return os.path.join(folder, ".termsprawl", "links")


def _no_link(which: str) -> CtlError:
    return CtlError(f"There is no link {which}.", "`termsprawlctl host links` lists them.")


def _project_of(paths: DataPaths, node_id: str) -> str:
    for session in SessionStore(paths).all():
        if session.node_id == node_id:
            return session.project_id
    raise CtlError(f"Unknown node: {node_id}.", "`termsprawlctl host status` lists the nodes.")
