"""The running host: puts the parts together, serves until a signal, cleans up."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
import uuid

from ...app.discovery import Unavailable, read_named
from ...base import log, tempfiles, threads
from ...base.errors import FAILED, OK, CtlError
from ...base.files import Explained, named_directory, private_directory, remove_quietly, write_atomically
from ...base.layout import HOST_SOCKET, DataPaths, state_directory
from ...base.ownership import is_ours
from ...base.program import program_file
from ...base.tmux import MAX_SOCKET_PATH_BYTES, find
from ...operations import guides
from ..http.server import Server
from ..launch import launching
from ..messaging.tasks import TaskStore
from ..operations import HANDLERS
from ..operations.ordering import Turns
from ..operations.receipts import Receipts
from ..registry.projects import ProjectStore
from ..registry.sessions import SessionStore
from ..terminals import nodes
from ..terminals.directory import PlainDirectory
from ..terminals.panes import Panes
from ..terminals.server import Server as TmuxServer
from ..terminals.shells.commands import Commands
from ..terminals.streams import Streams
from .audit import Audit
from .lock import ServerLock
from .monitor import Monitor
from .recovery import recover

QUEUE_WAIT_S = 15.0  # the contract's: an operation that waited longer is dropped
# Calls that run when a signal comes may finish, but a stop must not hang on them.
DRAIN_S = 5.0
# How soon a host notices that its data directory was deleted or taken over.
WATCH_INTERVAL_S = 2.0
_SHORT_PREFIX = "termsprawlctl-"
# What write_atomically() makes on its way.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}")


class Host:
    """What the handlers work with: paths, instance_id, sessions, projects, terminals, turns."""

    def __init__(self, paths: DataPaths, tmux_binary: str, instance_id: str) -> None:
        self.paths = paths
        self.instance_id = instance_id
        self.sessions = SessionStore(paths)
        self.projects = ProjectStore(paths)
        self.tasks = TaskStore(paths.tasks)
        self.turns = Turns(QUEUE_WAIT_S)
        self.operations = tuple(HANDLERS)
        self.program = program_file()
        self.overview = guides.read("overview")
        self.tmux = TmuxServer(tmux_binary, *paths.tmux_base_args(), record=paths.tmux_pid)
        self.panes = Panes(self.tmux)
        self.terminals = nodes.Terminals(self.tmux, self.panes)
        self.audit = Audit(paths.audit)
        self.monitor = Monitor(self)
        self.plain_directory = PlainDirectory(paths.run)
        self.streams = Streams(self.plain_directory, self.panes, self.monitor.note_output, self.monitor.note_end)
        self.commands = Commands(self.plain_directory, self.terminals, self.panes, self.streams)
        self.receipts = Receipts()
        # Set when the host is about to stop: long waits give up.
        self.stopping = threading.Event()

    def preferences(self) -> dict:
        """The user's preferences file; {} where there is none. Raises CtlError when it is not JSON."""
        try:
            return read_named(self.paths.preferences, "preferences file")
        except Unavailable as error:
            if not os.path.exists(self.paths.preferences):
                return {}
            raise CtlError(f"{error}.", "Fix it or move it away.") from None

    def prepare_node(self, node_id: str, project: str) -> dict[str, str]:
        """Write what a node is launched with; returns its environment: paths and ids, never the token."""
        launching.prepare_folder(self.paths, node_id)
        return launching.environment(self.paths, self.program, node_id, project)

    def forget_node(self, node_id: str, project: str) -> None:
        """Revoke the token of a project's node and remove what it was launched with."""
        if not self.sessions.revoke(node_id, project):
            return
        self.monitor.forget_ended({node_id})
        for _ in range(2):  # a descriptor that was short for a moment leaves nothing; the rest goes at the next start
            shutil.rmtree(os.path.join(self.paths.launch, node_id), ignore_errors=True)

    def ended_nodes(self) -> frozenset[str]:
        """The nodes whose terminals are known to have ended."""
        return self.monitor.ended()

    def log(self, text: str) -> None:
        """One line in the log; never a payload or a token."""
        log.say(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {text}")

    def log_fault(self) -> None:
        """The exception being handled, as frames and type: its text may quote a payload."""
        kind, _, trace = sys.exc_info()
        frames = "".join(traceback.format_tb(trace))
        self.log(f"internal error {kind.__name__ if kind else ''}\n{frames}".rstrip())


def serve(paths: DataPaths, *, ready, hold_on_hangup: bool = False) -> int:
    """Run a host until SIGTERM, SIGINT or SIGHUP; returns the exit status.

    `ready()` is called once clients can call. Raises CtlError when the host cannot
    start; nothing is left behind then.
    """
    binary = find()
    lock = ServerLock(paths, str(uuid.uuid4()))
    stop = threading.Event()
    # Python itself starts out with SIGINT as an exception and the others deadly.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    if hold_on_hangup:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lock.acquire()
    try:
        _remove_temporary_files(paths)
        prepare_socket(paths)
        host = Host(paths, binary, lock.instance_id)
        with Explained(f"cannot use the data directory {paths.root}"):
            _write_static_files(host)
        for name in host.tasks.recover():
            host.log(f"{name} among the tasks is no task; it is left as it is")
        host.panes.tidy()
        recover(host)
        host.commands.tidy()
        host.streams.tidy()
        host.audit.event("host-started", pid=os.getpid(), instance=host.instance_id)
        host.monitor.start()
        with Explained("cannot listen on 127.0.0.1"):
            server = Server(host, paths.host_socket())
        listener = threads.start(server.serve_forever)
        lock.publish(server.url)
        host.log(f"serving {paths.root} (pid {os.getpid()})")
        ready()
        status = _wait(host, lock, stop)
        host.stopping.set()
        server.stop()
        listener.join()
        if not server.drain(DRAIN_S):
            host.log("stopped while a call was still running")
        host.monitor.stop()
        host.streams.detach_all()
        host.plain_directory.leave()
        if status == OK:  # else the data directory is gone, or another server's
            remove_quietly(paths.host_socket())
            host.audit.event("host-stopped")
        host.log("stopped; terminals keep running" if status == OK else "stopped")
        return status
    finally:
        lock.release()


def prepare_socket(paths: DataPaths) -> None:
    """Where the usual socket path is too long, move it to a short private directory, said once."""
    socket = paths.tmux_socket()
    # What was short once may have been cleared away, and be another user's directory by now.
    if len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES and is_ours(os.path.dirname(socket)):
        return
    remove_quietly(paths.tmux_socket_pointer)
    if len(os.fsencode(paths.tmux_socket())) <= MAX_SOCKET_PATH_BYTES:
        return
    with Explained(f"cannot use the data directory {paths.root}", "Choose another one with --data DIR."):
        short = _short_socket()
        write_atomically(paths.tmux_socket_pointer, os.fsencode(short) + b"\n")
    log.say(f"termsprawlctl: {paths.root} is too long a path for a socket; tmux's is {short}.")


def _short_socket() -> str:
    """The path for a socket in a new private directory. Raises OSError."""
    # First where nobody else can make one of the same name should it be cleared away; not in XDG_RUNTIME_DIR,
    # which goes when the user logs out. TMPDIR may be long itself.
    state = state_directory(os.environ)
    roots = [] if state is None else [state]
    for root in (*roots, tempfiles.temporary_root(os.environ), "/tmp"):  # noqa: S108 - private, a random name
        sample = os.path.join(root, _SHORT_PREFIX + "0" * 12, "tmux")
        if len(os.fsencode(sample)) > MAX_SOCKET_PATH_BYTES:
            continue
        if root == state:
            try:
                named_directory(root)
            except OSError:
                continue  # a home that is read-only
        return os.path.join(tempfiles.new_directory(root, _SHORT_PREFIX), "tmux")
    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), sample)


def _remove_temporary_files(paths: DataPaths) -> None:
    """Temporary files of writers that were killed, also of files that nobody writes a second time."""
    for directory in paths.own_directories():
        tempfiles.sweep(directory, _TEMPORARY, os.unlink)


def _write_static_files(host: Host) -> None:
    paths = host.paths
    write_atomically(paths.tmux_conf, nodes.CONFIGURATION.encode())
    private_directory(paths.guides)
    for topic in guides.TOPICS:
        write_atomically(os.path.join(paths.guides, f"{topic}.md"), guides.read(topic).encode())


def _wait(host: Host, lock: ServerLock, stop: threading.Event) -> int:
    host.tmux.look()
    while not stop.wait(WATCH_INTERVAL_S):
        if not lock.directory_is_gone():
            if lock.is_ours():
                continue
            host.log("endpoint.json or server.lock is no longer this host's; another server has taken over")
        else:
            host.log("the data directory was deleted")
            # Its socket went with it: nobody could ever reach these terminals again.
            host.tmux.end_process()
            _remove_socket_elsewhere(host)
        return FAILED
    return OK


def _remove_socket_elsewhere(host: Host) -> None:
    """The directory that was made for the socket because the usual path is too long: nothing names it any more."""
    socket = host.tmux.socket
    directory = os.path.dirname(socket)
    if os.path.basename(directory).startswith(_SHORT_PREFIX):
        remove_quietly(socket)
        remove_quietly(os.path.join(directory, HOST_SOCKET))
        with contextlib.suppress(OSError):
            os.rmdir(directory)
