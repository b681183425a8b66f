"""Which folder a project id means, and the session of the person who works there."""

from __future__ import annotations

import hashlib
import json
import os

from ...base.errors import CtlError
from ...base.files import Explained, private_directory, read_object, remove_quietly, write_atomically
from ...base.layout import DataPaths
from .sessions import Session, SessionStore
from .status import SHELL_STATUS


def project_id(folder: str) -> str:
    """The id of a folder: the same for every path that leads to it."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()
    return f"p-{digest[:12]}"


def check_folder(folder: str) -> str:
    """The real path of a project's folder. Raises CtlError when it is no directory."""
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise CtlError(f"{folder} is not a directory.", "Name the project's folder with --project DIR.")
    return real


class ProjectStore:
    """The folders that this host serves, one small file each below agent-tools/projects."""

    def __init__(self, paths: DataPaths) -> None:
        self._paths = paths

    def register(self, folder: str) -> str:
        """Serve a folder; returns its project id. Raises CtlError when it is no directory."""
        real = check_folder(folder)
        identity = project_id(real)
        private_directory(self._paths.projects)
        write_atomically(self._file(identity), json.dumps({"cwd": real}).encode())
        return identity

    def forget(self, identity: str) -> None:
        """Serve a project no longer."""
        remove_quietly(self._file(identity))

    def folder(self, identity: str) -> str:
        """The folder of a project. Raises CtlError when it is unknown or gone."""
        folder = self._named(identity)
        if not os.path.isdir(folder):
            raise CtlError(f"The project folder {folder} is gone.", "Put it back, or run termsprawlctl host prune.")
        return folder

    def _named(self, identity: str) -> str:
        """What the file of a project names, whether it is there or not."""
        try:
            folder = read_object(self._file(identity)).get("cwd")
        except (FileNotFoundError, ValueError):
            folder = None
        except OSError as error:  # no descriptor left, for example: that does not make it unknown
            raise CtlError(
                f"Cannot read {self._file(identity)}: {error.strerror}.", "Check its permissions, and ulimit -a."
            ) from None
        if not isinstance(folder, str):
            raise CtlError(f"Unknown project {identity}.", "Start it again with termsprawlctl host start.")
        return folder

    def all(self) -> dict[str, str]:
        """Project id to folder, for those whose folder exists."""
        return {identity: folder for identity, folder in self._registered() if os.path.isdir(folder)}

    def without_folder(self) -> dict[str, str]:
        """Project id to the folder that it had, for those whose folder is certainly gone."""
        return {identity: folder for identity, folder in self._registered() if _is_gone(folder)}

    def _registered(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        try:
            names = sorted(os.listdir(self._paths.projects))
        except OSError:
            return found
        for name in names:
            identity = name[: -len(".json")]
            if name.endswith(".json"):
                try:
                    found.append((identity, self._named(identity)))
                except CtlError:
                    continue
        return found

    def _file(self, identity: str) -> str:
        return os.path.join(self._paths.projects, f"{identity}.json")


def _is_gone(folder: str) -> bool:
    """Whether nothing is there; a folder that cannot be looked at may be."""
    try:
        os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def operator_session(paths: DataPaths, folder: str) -> Session:
    """Register a folder and give its person a session: a node without a terminal, `cli-…`."""
    with Explained(f"cannot use the data directory {paths.root}"):
        identity = ProjectStore(paths).register(folder)
        return SessionStore(paths).provision(operator_node(identity), identity, SHELL_STATUS)


def operator_node(identity: str) -> str:
    """The node id of the person of a project."""
    return "cli-" + identity[len("p-") :]
