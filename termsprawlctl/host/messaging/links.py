"""Links between agents: who may send work to whom, as the user set it up.

One small file each in `<project folder>/.termsprawl/links/`, under any name:
`{"from": nodeId, "to": nodeId, "enabled": true}`. A file that says anything else links
nobody. A link leads one way: it lets `from` send work to `to`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import namedtuple

from ...base.errors import CtlError
from ...base.files import DIRECTORY_MODE, read_object, write_atomically
from ...base.layout import DataPaths, is_id
from ..canvas.project_file import inside
from ..registry.projects import ProjectStore, operator_node
from ..registry.sessions import SessionStore

# sender and recipient: node ids; file: where the link stands.
Link = namedtuple("Link", "sender recipient enabled file")
# A project has a handful; more than this in a folder is something else.
MAX_LINKS = 1000
MAX_LINK_BYTES = 4096


def read(folder: str) -> list[Link]:
    """The links of a project's folder, enabled or not, in the order of their files' names."""
    directory = _directory(folder)
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".json") and not name.startswith("."))
    except OSError:
        return []
    links = [_read_one(os.path.join(directory, name)) for name in names[:MAX_LINKS]]
    return [link for link in links if link is not None]


def enabled(folder: str) -> set[tuple[str, str]]:
    """(sender, recipient) of every enabled link of a project's folder."""
    return {(link.sender, link.recipient) for link in read(folder) if link.enabled}


def link(paths: DataPaths, sender: str, recipient: str) -> None:
    """Let one node of a project send work to another. Raises CtlError; nothing was changed then."""
    project = _project_of(paths, sender)
    if _project_of(paths, recipient) != project:
        raise CtlError(f"{sender} and {recipient} belong to different projects.", "Link nodes of one project.")
    if sender == recipient:
        raise CtlError(f"{sender} cannot be linked to itself.")
    if recipient == operator_node(project):
        raise CtlError(f"{recipient} has no terminal that work could be delivered to.", "Link to an agent.")
    folder = ProjectStore(paths).folder(project)
    content = {"from": sender, "to": recipient, "enabled": True}
    directory = inside(folder, _directory(folder))
    name = hashlib.sha256(f"{sender} {recipient}".encode()).hexdigest()[:16]
    try:
        os.makedirs(directory, mode=DIRECTORY_MODE, exist_ok=True)
        write_atomically(os.path.join(directory, f"link-{name}.json"), json.dumps(content).encode() + b"\n")
    except OSError as error:
        raise CtlError(f"Cannot write to {directory}: {error.strerror}.") from None


def unlink(paths: DataPaths, sender: str, recipient: str) -> None:
    """Remove the link from one node to another, also where a node is gone. Raises CtlError when there is none."""
    found = [
        one.file
        for folder in ProjectStore(paths).all().values()
        for one in read(folder)
        if (one.sender, one.recipient) == (sender, recipient)
    ]
    if not found:
        raise CtlError(f"There is no link from {sender} to {recipient}.", "`termsprawlctl host links` lists them.")
    for file in found:
        try:
            os.unlink(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CtlError(f"Cannot remove {file}: {error.strerror}.") from None


def listing(paths: DataPaths) -> list[dict]:
    """Every link of every project: [{from, to, enabled, gone: [ids without a session], folder}]."""
    nodes = {session.node_id for session in SessionStore(paths).all()}
    return [
        {
            "from": one.sender,
            "to": one.recipient,
            "enabled": one.enabled,
            "gone": [node for node in (one.sender, one.recipient) if node not in nodes],
            "folder": folder,
        }
        for folder in ProjectStore(paths).all().values()
        for one in read(folder)
    ]


def _directory(folder: str) -> str:
    return os.path.join(folder, ".termsprawl", "links")


def _read_one(path: str) -> Link | None:
    content = read_object(path, MAX_LINK_BYTES, missing={})
    if not is_id(content.get("from")) or not is_id(content.get("to")):
        return None
    return Link(content["from"], content["to"], content.get("enabled") is True, path)


def _project_of(paths: DataPaths, node_id: str) -> str:
    for session in SessionStore(paths).all():
        if session.node_id == node_id:
            return session.project_id
    raise CtlError(f"Unknown node: {node_id}.", "`termsprawlctl host status` lists the nodes.")
