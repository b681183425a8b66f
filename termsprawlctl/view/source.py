"""Where the picture comes from: the canvas from the app, what runs from tmux, links from the project."""

from __future__ import annotations

import os

from ..app import transport
from ..app.discovery import Unavailable, read_named
from ..base import tmux
from ..base.errors import CtlError
from ..base.files import read_object
from ..base.layout import SESSION_PREFIX, DataPaths
from ..base.text import visible
from ..host.canvas import project_file
from ..host.messaging import links
from ..host.registry.projects import ProjectStore
from ..host.terminals.panes import NODE_OPTION
from . import model

_FIELDS = ("window_active", "pane_active", "pane_id", NODE_OPTION, "session_name", "pane_current_command")
_FORMAT = "\t".join(f"#{{{name}}}" for name in _FIELDS)
_ACTIVE = ["1", "1"]


def read(session_path: str, data: str, cwd: str, *, screens: bool = False) -> model.Picture:
    """The canvas of the session's project as it is now. Raises CtlError when the app refuses or is away.

    `data` is the data directory, `cwd` a folder that may be inside the project; with `screens`
    the picture holds what the terminals show.
    """
    result = transport.call(session_path, "canvas_list")
    if not result["ok"]:
        raise CtlError(str(result["error"]), "See `termsprawlctl doctor --explain`.")
    nodes = result.get("value")
    runs = running(DataPaths(data))
    folder = _project_folder(session_path, data, cwd, _ids(nodes))
    pairs = _links(folder) if folder else []
    drawn = model.picture(nodes, runs or {}, pairs, known=runs is not None)
    if screens:
        drawn.screens.update(screens_of(DataPaths(data), [box.id for box in drawn.boxes if box.id in (runs or {})]))
    return drawn


def screens_of(paths: DataPaths, node_ids: list[str]) -> dict[str, list[str]]:
    """What terminals show, without what a browser would obey; those that tmux cannot show are left out."""
    found, panes = {}, _panes(paths) or {}
    for node_id in node_ids:
        try:
            server = tmux.Tmux(tmux.find(), *paths.tmux_base_args())
            shown = server.run("capture-pane", "-p", "-t", panes[node_id][0])
        except (OSError, CtlError, KeyError):
            continue
        # Word by word, because blanks between them count.
        found[node_id] = [" ".join(map(visible, line.split(" "))) for line in shown.rstrip().split("\n")]
    return found


def _links(folder: str) -> list[tuple[str, str]]:
    try:
        return sorted(links.enabled(folder))
    except CtlError:
        return []


def running(paths: DataPaths) -> dict[str, str] | None:
    """Node id to the program in front, for every terminal that is alive; None where tmux cannot tell."""
    panes = _panes(paths)
    return None if panes is None else {node_id: command for node_id, (_, command) in panes.items()}


def _panes(paths: DataPaths) -> dict[str, tuple[str, str]] | None:
    """Node id to its pane and the program in front; None where tmux cannot tell.

    A node's pane is the one that says so, whichever is active; the app's, which say nothing, are the active ones.
    """
    try:
        listing = tmux.Tmux(tmux.find(), *paths.tmux_base_args()).run("list-panes", "-a", "-F", _FORMAT)
    except (OSError, CtlError):
        return None
    own, active_ones = {}, {}
    for line in listing.splitlines():
        *active, pane, node_id, session, command = [*line.split("\t", 5), *[""] * 5][:6]
        if node_id:
            own[node_id] = (pane, command)
        elif active == _ACTIVE and session.startswith(SESSION_PREFIX):
            active_ones[session[len(SESSION_PREFIX) :]] = (pane, command)
    return {**active_ones, **own}


def glance(paths: DataPaths, folder: str) -> dict[str, str]:
    """Node id to `title: program` (either may be missing) of the terminals of a project, as far as they are known."""
    try:
        nodes = project_file.load(folder)["nodes"]
    except CtlError:
        nodes = []
    boxes = model.picture(nodes, running(paths) or {}, [], known=False).boxes
    return {box.id: ": ".join(word for word in (box.title, box.runs) if word) for box in boxes}


def _project_folder(session_path: str, data: str, cwd: str, ids: set) -> str | None:
    """The project's folder: as the embedded host knows it, else around cwd, if its canvas is this one."""
    try:
        project = read_named(session_path, "session file").get("projectId")
        return ProjectStore(DataPaths(data)).folder(str(project))
    except (Unavailable, CtlError):
        pass
    folder = cwd
    while True:
        if ids & _ids_in(project_file.path_of(folder)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _ids_in(path: str) -> set:
    return _ids(read_object(path, project_file.MAX_PROJECT_BYTES, missing={}).get("nodes"))


def _ids(nodes: object) -> set[str]:
    found = [node.get("id") for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return {node_id for node_id in found if isinstance(node_id, str)}
