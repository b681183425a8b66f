"""The terminal of one node: the tmux session that a second client may attach to.

NodeTerminal works on the app's data directory and on the embedded host's alike, without asking
either: the files in it say where the tmux server listens.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from ..app.discovery import session_file
from ..base import layout, tmux
from ..base.errors import CtlError, UsageError


def data_directory(option: str | None, session_option: str | None, environment) -> str:
    """The data directory to look in: --data, else the session file's, else the embedded host's.

    The session file lies in `<data>/agent-tools/sessions/`. Raises UsageError.
    """
    if option is not None:
        if not option:
            raise UsageError("--data needs a directory.", "Name one, or leave it out.")
        return os.path.abspath(option)
    session = session_file(session_option, environment)
    if session:
        return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(session))))
    return layout.default_data_directory(environment)


@dataclass(frozen=True)
class Client:
    """A client of tmux: width and height in characters, term the kind of terminal as it names it."""

    pid: int
    tty: str
    width: int
    height: int
    term: str


class Node:
    """A node's tmux session, by name, wherever it is; nothing is looked at before check().

    `data` is a data directory of this machine that leads to it. Raises UsageError for a node id that is none.
    """

    def __init__(self, data: str, node_id: str) -> None:
        if not layout.is_id(node_id):
            raise UsageError(
                f"{node_id!r} is not a node id.", "A node id has letters, digits, - and _ only; canvas_list shows them."
            )
        self.paths = layout.DataPaths(data)
        self.node_id = node_id
        self.session = layout.tmux_session(node_id)

    @property
    def preferences(self) -> str:
        """The file that names the preferred emulator."""
        return self.paths.preferences

    def check(self) -> None:
        """Raise CtlError unless exactly this session is there, on a server of our own."""
        raise NotImplementedError

    def clients(self) -> list[Client]:
        """The clients of exactly this session that somebody looks at; raises CtlError when it is gone."""
        raise NotImplementedError

    def attach_argv(self) -> list[str]:
        """The command that shows the session as one more client; the others stay attached. Valid after check()."""
        raise NotImplementedError

    def attach(self, environment: Mapping[str, str]) -> None:
        """Become that command, in the current terminal; returns never. Raises CtlError."""
        raise NotImplementedError

    def remedy(self) -> str:
        """How to see the terminal where no window can be opened, ready to paste."""
        own = shlex.join(["termsprawlctl", "attach", self.node_id, "--data", self.paths.root])
        return f"Without a window: `{own}`"


class NodeTerminal(Node):
    """The session of a node on this machine.

    `server` is the tmux server where the caller knows it; else the data directory's.
    Raises UsageError for a node id that is none, CtlError where tmux is missing.
    """

    def __init__(self, data: str, node_id: str, *, server: tmux.Tmux | None = None) -> None:
        super().__init__(data, node_id)
        if server is None:
            server = tmux.Tmux(tmux.find(), *self.paths.tmux_base_args())
        self.server = server

    @property
    def socket(self) -> str:
        """The path of the tmux server's socket."""
        return self.server.base[self.server.base.index("-S") + 1]

    def attach_argv(self) -> list[str]:
        # The plain target also means a prefix where the session is gone.
        return [*self.server.base, "attach-session", "-t", self.session]

    def remedy(self) -> str:
        return f"{super().remedy()}, or: {shlex.join(self.attach_argv())}"

    def check(self) -> None:
        self._check_socket()
        try:
            self.server.run("has-session", "-t", tmux.exact(self.session))
        except tmux.TmuxError as error:
            raise self._gone(error.message) from None

    def clients(self) -> list[Client]:
        template = (
            "#{client_control_mode} #{client_pid} #{client_width} #{client_height} #{client_tty} #{client_termname}"
        )
        try:
            lines = self.server.run("list-clients", "-t", tmux.exact(self.session), "-F", template).split("\n")
        except tmux.TmuxError as error:
            raise CtlError(f"the terminal of node {self.node_id} ended ({error.message}).", "Open another.") from None
        found = []
        for line in lines:
            words = line.split(" ", 5)
            if len(words) == 6 and words[0] != "1":
                _, pid, width, height, tty, term = words
                found.append(Client(int(pid), tty, int(width), int(height), term))
        return found

    def _check_socket(self) -> None:
        path = self.socket
        tmux.check_socket_path(path)
        try:
            status = os.stat(path)
        except PermissionError:
            raise CtlError(f"this user may not reach the tmux socket {path}.", "Run this as the app's user.") from None
        except OSError as error:
            raise CtlError(
                f"no tmux server of {self.paths.root}: {path}: {error.strerror}.",
                "Start the app or `termsprawlctl host start`, or name another data directory with --data.",
            ) from None
        if not stat.S_ISSOCK(status.st_mode):
            raise CtlError(f"{path} is not a socket, so there is no tmux server.", "Is --data right?")
        tmux.refuse_foreign_socket(path)

    def _gone(self, words: str) -> CtlError:
        try:
            lines = self.server.run("list-sessions", "-F", "#{session_name}").split("\n")
        except tmux.TmuxError:
            return CtlError(
                f"no tmux server answers on {self.socket} ({words}).", "Start the app or `termsprawlctl host start`."
            )
        prefix = layout.SESSION_PREFIX
        others = sorted(line[len(prefix) :] for line in lines if line.startswith(prefix))
        there = f"Nodes with a terminal: {', '.join(others)}." if others else "No node has a terminal there."
        return CtlError(f"node {self.node_id} has no terminal in {self.paths.root} ({words}).", there)

    def attach(self, environment: Mapping[str, str]) -> None:
        """Also inside another tmux."""
        self.check()
        need_terminal(self.node_id)
        if self._own_session(environment) == self.session:
            # The client would draw itself inside itself, without end.
            raise CtlError(f"this is the terminal of node {self.node_id} already.", "Run this in another terminal.")
        argv = self.attach_argv()
        try:
            os.execve(argv[0], argv, tmux.server_environment(environment))  # noqa: S606 - an argv, no shell
        except OSError as error:
            raise CtlError(f"cannot run {argv[0]}: {error.strerror}.", "Install tmux again.") from None

    def _own_session(self, environment: Mapping[str, str]) -> str | None:
        """The session of the pane that this process runs in, if the node's server holds it."""
        pane = environment.get("TMUX_PANE", "")
        # socket,pid,session: the path may hold commas itself.
        socket = environment.get("TMUX", "").rsplit(",", 2)[0]
        try:
            if not pane.startswith("%") or not os.path.samefile(socket, self.socket):
                return None
            return self.server.display(pane, "#{session_name}")
        except (OSError, ValueError, CtlError):
            return None


def need_terminal(node_id: str) -> None:
    """Raise CtlError where nobody could look at the node."""
    if not (os.isatty(0) and os.isatty(1)):
        raise CtlError(
            "attach needs a terminal on standard input and output.",
            f"Run it at a shell, or open a window: termsprawlctl external {node_id}",
        )
