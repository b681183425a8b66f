"""Where runs work: the directory that a call, a session or the server names, else a temporary workspace."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...base.tempfiles import HeldDirectory
    from ..model.types import Report


class Folders:
    """Where a run works: as the call says, as the server was told, or in one temporary workspace."""

    def __init__(self, default: str, warn: Report) -> None:
        self._default = default
        self._warn = warn
        self._warned = False  # of the default, which is the same for each run
        self.workspace = ""  # the temporary one, once it is needed
        self._held: HeldDirectory | None = None

    def choose(self, wanted: str, session: str = "") -> tuple[str, str]:
        """An existing directory, absolute: `wanted`, else `session` (where the session was), and so on.

        Never fails a run: what cannot be used is skipped with a warning. The second value says why the
        first of those that were named was not taken; "" where it was.

        Raises OSError only when not even a temporary directory can be made.
        """
        skipped = ""
        for path, whose in ((wanted, "cwd"), (session, "the session's cwd"), (self._default, "the default cwd")):
            if path.strip():
                problem = _problem(path)
                if not problem:
                    return path, skipped
                skipped = skipped or f"{whose} {path[:300]!r} {problem}"
                if path is not self._default or not self._warned:
                    self._warn(f"{whose} {path[:300]!r} {problem}; using the next in order.")
                self._warned = self._warned or path is self._default
        from ...base.ownership import is_ours

        if not (self.workspace and is_ours(self.workspace)):
            from ...base.tempfiles import HeldDirectory as Held

            if self._held is not None:
                self._held.release()
            # One of a server that was killed goes if it is empty, as ours does.
            self._held = Held("termsprawlctl-workspace-", os.rmdir, _workspace_root())
            self.workspace = self._held.path
        return self.workspace, skipped

    def close(self) -> None:
        """Remove the temporary workspace if nothing is in it."""
        if self.workspace:
            with contextlib.suppress(OSError):  # it may hold the work of the runs
                os.rmdir(self.workspace)
            if self._held is not None:
                self._held.release()


def _workspace_root() -> str:
    """The directory for workspaces: that for temporary files, unless other users may put files there or above.

    CLIs look for configuration in the folders above the one that they work in, and start
    what it says. A place in the user's home serves then, if it is better and in no
    repository, which a CLI would take for the project. Raises OSError.
    """
    from ...base.files import private_directory
    from ...base.layout import state_directory
    from ...base.ownership import others_may_add_above
    from ...base.tempfiles import temporary_root
    from ..runs.snapshot import root_of

    temporary = temporary_root(os.environ)
    state = state_directory(os.environ)
    if others_may_add_above(temporary) and state is not None:
        above = os.path.dirname(state)
        if not (others_may_add_above(above) or root_of(above)):
            with contextlib.suppress(OSError):
                return private_directory(os.path.join(state, "workspaces"))
    return temporary


def _problem(path: str) -> str:
    if not os.path.isabs(path):
        return "is not absolute"
    try:
        if not os.path.isdir(path):
            return "is no directory" if os.path.exists(path) else "does not exist"
        if not os.access(path, os.X_OK):
            return "cannot be entered"
    except ValueError:
        return "is no valid path"
    return ""
