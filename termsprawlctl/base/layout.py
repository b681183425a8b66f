"""Where things lie in a data directory, the app's and the embedded host's alike.

    <root>/agent-tools/{endpoint.json,server.lock,preferences.json}
    <root>/agent-tools/sessions/<nodeId>.json     nodeId, projectId, token, status
    <root>/agent-tools/launch/<nodeId>/           what a node was started with
    <root>/agent-tools/tasks/<taskId>.json        what agents asked of each other
    <root>/tmux-sockets/termsprawl                the tmux socket
    <root>/tmux.conf

Only the embedded host: `agent-tools/host.flock`, `agent-tools/guides/`,
`agent-tools/projects/<projectId>.json`, `host.log`, `audit/` (what happened), `run/`
(pipes of terminals' output and scripts of commands that run),
`tmux-sockets/termsprawl.pid` (the tmux server's process id),
`tmux-sockets/http` (the host's own socket, for callers from another machine), and
`tmux-sockets/termsprawl.path`, one line that names the real socket where the
usual path would be too long for the system; `http` is beside it then.
"""

from __future__ import annotations

import os

from .errors import UsageError
from .files import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DATA_VARIABLE = "TERMSPRAWL_DATA"
MAX_NODE_ID_CHARS = 128
SESSION_PREFIX = "ts-"
HOST_SOCKET = "http"  # beside the tmux socket
MAX_POINTER_BYTES = 4096  # a path that the system takes is shorter


class DataPaths:
    """The paths below one data directory; nothing is read or made, except by tmux_socket()."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self.agent_tools = os.path.join(self.root, "agent-tools")
        self.endpoint = os.path.join(self.agent_tools, "endpoint.json")
        self.server_lock = os.path.join(self.agent_tools, "server.lock")
        self.flock = os.path.join(self.agent_tools, "host.flock")
        self.preferences = os.path.join(self.agent_tools, "preferences.json")
        self.sessions = os.path.join(self.agent_tools, "sessions")
        self.projects = os.path.join(self.agent_tools, "projects")
        self.tasks = os.path.join(self.agent_tools, "tasks")
        self.launch = os.path.join(self.agent_tools, "launch")
        self.guides = os.path.join(self.agent_tools, "guides")
        self.tmux_sockets = os.path.join(self.root, "tmux-sockets")
        self.tmux_socket_pointer = os.path.join(self.tmux_sockets, "termsprawl.path")
        self.tmux_pid = os.path.join(self.tmux_sockets, "termsprawl.pid")
        self.tmux_conf = os.path.join(self.root, "tmux.conf")
        self.log = os.path.join(self.root, "host.log")
        self.run = os.path.join(self.root, "run")
        self.audit = os.path.join(self.root, "audit")

    def own_directories(self) -> tuple[str, ...]:
        """Where the embedded host writes files itself; those of single nodes and the audit's are not among them."""
        return (
            self.root,
            self.agent_tools,
            self.sessions,
            self.projects,
            self.tasks,
            self.guides,
            self.tmux_sockets,
            self.run,
        )

    def session(self, node_id: str) -> str:
        """The session file of a node."""
        return os.path.join(self.sessions, f"{node_id}.json")

    def tmux_socket(self) -> str:
        """The socket of the tmux server that holds the nodes' sessions."""
        try:
            line = read_small(self.tmux_socket_pointer, MAX_POINTER_BYTES).partition(b"\n")[0]
        except OSError:
            line = b""
        path = line.decode("utf-8", "surrogateescape")
        if not os.path.isabs(path) or "\0" in path:  # no file, or none that a host wrote
            return os.path.join(self.tmux_sockets, "termsprawl")
        return path

    def host_socket(self) -> str:
        """The socket on which the embedded host answers as on its port."""
        return os.path.join(os.path.dirname(self.tmux_socket()), HOST_SOCKET)

    def tmux_base_args(self) -> list[str]:
        """The words between `tmux` and its command."""
        return ["-S", self.tmux_socket(), "-f", self.tmux_conf]


def default_data_directory(environment: Mapping[str, str]) -> str:
    """The embedded host's data directory: $TERMSPRAWL_DATA, else below $XDG_STATE_HOME or ~/.local/state.

    Raises UsageError when none of them is set, or the first is no absolute path: it would name another
    directory in each folder.
    """
    chosen = environment.get(DATA_VARIABLE)
    if chosen:
        if not os.path.isabs(chosen):
            raise UsageError(f"{DATA_VARIABLE} is not an absolute path: {chosen}.", "Set it to one, or unset it.")
        return os.path.abspath(chosen)
    state = state_directory(environment)
    if state is None:
        raise UsageError("HOME is not set, so there is no default data directory.", "Name one with --data DIR.")
    return state


def state_directory(environment: Mapping[str, str]) -> str | None:
    """What this program keeps for a user lies there: below $XDG_STATE_HOME or ~/.local/state.

    None where none of them is set to an absolute path, as XDG wants it.
    """
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = environment.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "termsprawlctl")


def tmux_session(node_id: str) -> str:
    """The name of a node's tmux session."""
    return SESSION_PREFIX + node_id


def is_id(value: object) -> bool:
    """Whether value can be a node or project id."""
    if not isinstance(value, str) or not value.isascii() or not 1 <= len(value) <= MAX_NODE_ID_CHARS:
        return False
    return value[0].isalnum() and value.replace("-", "").replace("_", "").isalnum()
