"""The session of a command that nobody named one for, and the folder that is the project."""

from __future__ import annotations

import os

from ..app.discovery import session_file
from ..base import console
from ..base.errors import CtlError, NoSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from ..base.layout import DataPaths

START_HOST = 'Without the app, start a host: eval "$(termsprawlctl host start)"'
LOOK_S = 0.2  # how often a host is looked for that is awaited
# What makes a folder the root of a project.
MARKERS = (".termsprawl", ".git")


class HostSession:
    """The person's session on a running host: its file, and the folder of its project."""

    __slots__ = ("folder", "path")

    def __init__(self, path: str, folder: str) -> None:
        self.path = path
        self.folder = folder


def running_host_session() -> str:
    """The session file that a running host keeps for the project here; it is reported on standard error.

    Raises NoSession.
    """
    found = host_session(os.environ)
    if found is None:
        raise NoSession(START_HOST)
    console.err(f"termsprawlctl: using the running host's session for {found.folder}.")
    return found.path


def awaited_host_session(wait_s: float) -> str:
    """running_host_session(), once a host runs: it may start up to wait_s from now.

    Raises NoSession when none does in time, or before standard input has ended.
    """
    import select
    import time

    end_s = time.monotonic() + wait_s
    hang_up = select.poll()
    hang_up.register(console.STDIN, 0)
    while host_session(os.environ) is None:
        left_s = end_s - time.monotonic()
        if left_s <= 0 or hang_up.poll(min(left_s, LOOK_S) * 1000):
            break
    return running_host_session()


def started_host_session(args: Namespace) -> str:
    """The session that is named, else that of the project on a host, which is started where none runs.

    The project is --project, else the one around the current directory; desktop clients start
    their servers in /, which stands for the home directory. Raises CtlError.
    """
    from ..base.layout import DataPaths, default_data_directory

    named = session_file(args.session, os.environ)
    if named is not None:
        return named
    from ..host.daemon.control import start

    project = args.project or project_folder(None)
    if project == "/":
        project = os.environ.get("HOME") or project
    return start(DataPaths(args.data or default_data_directory(os.environ)), project)


def host_data_directory(session: str) -> str | None:
    """The data directory of a session file, where it is an embedded host's; else None: it is the app's."""
    from ..base.layout import DataPaths

    data = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(session))))
    return data if os.path.exists(DataPaths(data).flock) else None


def host_session(environment: Mapping[str, str]) -> HostSession | None:
    """The session of a running host in the default data directory; None where there is none.

    That of the project around the current directory, else that of its only project. Raises
    NoSession when it serves several, and none of them is around the current directory.
    """
    from ..base.layout import DataPaths, default_data_directory

    try:
        paths = DataPaths(default_data_directory(environment))
        if not os.path.exists(paths.endpoint) or os.stat(paths.root).st_uid != os.geteuid():
            return None  # the answer of most machines, at the price of one look
        return _host_session(paths, os.getcwd())
    except (OSError, CtlError) as error:
        if isinstance(error, NoSession):
            raise
        return None


def _host_session(paths: DataPaths, folder: str) -> HostSession | None:
    from ..host.daemon.lock import is_held
    from ..host.registry.projects import ProjectStore, operator_node

    if not is_held(paths):
        return None
    found = {
        served: HostSession(paths.session(operator_node(identity)), served)
        for identity, served in ProjectStore(paths).all().items()
    }
    found = {served: one for served, one in found.items() if os.path.isfile(one.path)}
    for parent in parents(os.path.realpath(folder)):
        if parent in found:
            return found[parent]
    if len(found) > 1:
        raise NoSession(f"The host serves {', '.join(sorted(found))}: run this in one of these folders.")
    return next(iter(found.values()), None)


def project_folder(option: str | None, *, new: bool = False) -> str:
    """The project that a host serves: --project, else the project around the current directory.

    Its root is the nearest folder with one of MARKERS that belongs to this user, short of the
    home directory; without one, or with `new`, it is the current directory. A root that is not
    the current directory is reported on standard error.
    """
    if option is not None:
        return option
    here = os.path.realpath(os.getcwd())
    root = here if new else project_root(here, os.environ.get("HOME", ""))
    if root != here:
        console.err(f"termsprawlctl: the project is {root}, around this folder; --new makes one of this folder.")
    return root


def project_root(folder: str, home: str) -> str:
    """The nearest folder with a marker; `folder` itself where there is none."""
    home = os.path.realpath(home) if home else ""
    for parent in parents(folder):
        if parent != folder and parent in (home, "/"):
            break
        try:
            if os.stat(parent).st_uid != os.geteuid():
                break  # what somebody else put above this folder decides nothing
        except OSError:
            break
        if any(os.path.exists(os.path.join(parent, marker)) for marker in MARKERS):
            return parent
    return folder


def parents(folder: str) -> list[str]:
    """An absolute folder and all above it, the nearest first."""
    found = [folder]
    while os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found
