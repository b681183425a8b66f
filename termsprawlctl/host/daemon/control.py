"""Start, look at and stop a host from outside."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import time

from ...app import transport
from ...base.errors import CtlError
from ...base.files import Explained, named_directory, remove_quietly
from ...base.layout import DataPaths, is_id
from ...base.processes import environment_without, spawn_detached
from ...base.processtable import command_line_of
from ...base.program import own_argv
from ...base.tmux import find, refuse_foreign_socket
from ..canvas import model, project_file
from ..registry.projects import ProjectStore, check_folder, operator_node, operator_session
from ..registry.sessions import SessionStore
from ..terminals.directory import PlainDirectory
from ..terminals.nodes import Terminals
from ..terminals.server import Server
from .lock import holder, is_held

START_TIMEOUT_S = 20.0  # a start takes well under a second; a loaded machine gets time
STOP_TIMEOUT_S = 15.0  # more than the host's own limit for calls that still run
POLL_S = 0.05
MAX_LOG_BYTES = 1 << 20  # a log that has grown beyond this is put aside at the next start
READY = b"ready\n"


def start(paths: DataPaths, project: str) -> str:
    """Have a host running and a session for the project; returns the session file's path.

    Raises CtlError with the host's own words when it does not come up.
    """
    check_folder(project)  # before anything is started
    end = time.monotonic() + START_TIMEOUT_S
    session = None
    while True:
        # Looked at each time: the host that was there may have been stopped just now.
        if not is_held(paths):
            _spawn(paths)
            session = None
        session = session or operator_session(paths, project)
        result = transport.call(paths.session(session.node_id), "session_info", deadline_s=5.0)
        if result["ok"]:
            return paths.session(session.node_id)
        if time.monotonic() > end:
            raise CtlError(f"the host does not answer ({result['error']})", f"See {paths.log}.")
        time.sleep(POLL_S)


def export_line(session_path: str) -> str:
    """The shell line that lets every later command find the session."""
    return f"export TERMSPRAWL_SESSION_FILE={shlex.quote(session_path)}"


def status(paths: DataPaths) -> dict:
    """What runs: {running, pid, instanceId, data, projects: [{projectId, folder, sessionFile, terminals, elsewhere}]}.

    `running` of a terminal is None where tmux cannot be asked; `elsewhere` are the terminals of the
    project that another program runs.
    """
    running = is_held(paths)
    owner = (holder(paths) if running else None) or {}
    try:
        alive = terminals_of(paths).alive()
    except CtlError:
        alive = None
    sessions = SessionStore(paths).all()
    projects = []
    for identity, folder in ProjectStore(paths).all().items():
        nodes = [
            one.node_id for one in sessions if one.project_id == identity and one.node_id != operator_node(identity)
        ]
        projects.append(
            {
                "projectId": identity,
                "folder": folder,
                "sessionFile": paths.session(operator_node(identity)),
                "terminals": [
                    {"nodeId": node, "running": None if alive is None else node in alive} for node in sorted(nodes)
                ],
                "elsewhere": _elsewhere(folder, set(nodes)),
            }
        )
    return {
        "running": running,
        "pid": owner.get("pid"),
        "instanceId": owner.get("instanceId"),
        "data": paths.root,
        "projects": projects,
    }


def _elsewhere(folder: str, ours: set[str]) -> list[str]:
    """The ids of the project's terminals that are not ours; none where its file cannot be read."""
    try:
        nodes = project_file.load(folder)["nodes"]
    except CtlError:
        return []
    return [node["id"] for node in nodes if model.is_elsewhere(node, ours) and is_id(node.get("id"))]


def prune(paths: DataPaths) -> dict:
    """Remove ended terminals, and projects whose folder is gone: {running, terminals: [ids], projects: [folders]}.

    A terminal is closed by the running host, as terminal_close does it; without one, or where
    tmux cannot be asked, terminals stay. Raises CtlError.
    """
    state = status(paths)
    closed = []
    for project in state["projects"] if state["running"] else ():
        for terminal in project["terminals"]:
            if terminal["running"] is False:
                arguments = {"nodeId": terminal["nodeId"]}
                if transport.call(project["sessionFile"], "terminal_close", arguments)["ok"]:
                    closed.append(terminal["nodeId"])
    sessions = SessionStore(paths)
    gone = ProjectStore(paths).without_folder()
    for identity in gone:
        for session in sessions.all():
            if session.project_id == identity:
                sessions.revoke(session.node_id, identity)
        ProjectStore(paths).forget(identity)
    return {"running": state["running"], "terminals": closed, "projects": sorted(gone.values())}


def stop(paths: DataPaths, *, kill_sessions: bool) -> bool:
    """End the host, and with kill_sessions every terminal, too; False when none was running.

    Raises CtlError when it does not end in time.
    """
    was_running = is_held(paths)
    asked: int | None = None
    end = time.monotonic() + STOP_TIMEOUT_S
    while is_held(paths):
        owner = holder(paths)
        # Another one, which was starting meanwhile, may take the directory as soon as it is free.
        if owner is not None and owner["pid"] != asked and _is_host(owner["pid"]):
            asked = owner["pid"]
            _ask_to_end(asked)
        if time.monotonic() > end:
            raise _not_ending(paths, asked)
        time.sleep(POLL_S)
    if kill_sessions:
        terminals_of(paths).kill_all()
        _remove_short_socket(paths)
        PlainDirectory(paths.run).clear()
    return was_running


def _remove_short_socket(paths: DataPaths) -> None:
    """Take away the directory that a host made for its socket elsewhere, if it made one."""
    if not os.path.exists(paths.tmux_socket_pointer):
        return
    socket, host_socket = paths.tmux_socket(), paths.host_socket()
    remove_quietly(paths.tmux_socket_pointer)
    remove_quietly(socket)
    remove_quietly(host_socket)  # of a host that was killed
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(socket))


def _is_host(pid: int) -> bool:
    """Whether a process is a host by its command line: a number in a file may mean anybody by now."""
    with Explained(f"cannot see what process {pid} is", "Try again."):
        words = command_line_of(pid)
    return ("host", "run") in zip(words, words[1:])


def _ask_to_end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise CtlError(f"the host (pid {pid}) belongs to another user.", "Run this as that user.") from None


def _not_ending(paths: DataPaths, asked: int | None) -> CtlError:
    if asked is not None:
        return CtlError(f"the host (pid {asked}) does not end.", f"Try: kill -9 {asked}")
    return CtlError(f"a host holds {paths.flock}, but which process it is cannot be told.", f"Try: fuser {paths.flock}")


def terminals_of(paths: DataPaths) -> Terminals:
    """The terminals of a data directory, whether its host runs or not. Raises CtlError without tmux."""
    refuse_foreign_socket(paths.tmux_socket())
    return Terminals(Server(find(), *paths.tmux_base_args(), record=paths.tmux_pid))


def _spawn(paths: DataPaths) -> None:
    with Explained(f"cannot use the data directory {paths.root}", "Choose another one with --data DIR."):
        named_directory(paths.root)
        _put_aside_large_log(paths.log)
        log = os.open(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    reader, writer = os.pipe()
    try:
        argv = own_argv("host", "run", "--data", paths.root, "--ready-fd", str(writer))
        child = spawn_detached(
            argv, environment=environment_without("TERMSPRAWL_SESSION"), cwd="/", stderr=log, pass_fds=(writer,)
        )
    finally:
        os.close(writer)
        os.close(log)
    try:
        answer = _read_answer(reader, time.monotonic() + START_TIMEOUT_S)
    finally:
        os.close(reader)
    if answer == READY:
        child.returncode = 0  # it goes on without us: no warning about a child not waited for
        return
    if answer is None:
        child.kill()
        child.wait()
        raise CtlError(f"the host did not start within {START_TIMEOUT_S:g} s.", f"See {paths.log}.")
    child.wait()
    if not is_held(paths):  # else another start was faster, which is as good
        reason = answer.decode("utf-8", "replace").strip()  # with its next step
        raise CtlError(reason or "the host did not start.", "" if reason else f"See {paths.log}.")


def _read_answer(descriptor: int, end_s: float) -> bytes | None:
    """What the child says before it closes its end; None when it says nothing in time."""
    answer = b""
    readable = select.poll()  # select() knows no descriptors over 1023
    readable.register(descriptor, select.POLLIN)
    while answer != READY:
        if not readable.poll(1000 * max(0.0, end_s - time.monotonic())):
            return None
        chunk = os.read(descriptor, 4096)
        if not chunk:
            break
        answer += chunk
    return answer


def _put_aside_large_log(path: str) -> None:
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:
            os.replace(path, path + ".1")
    except FileNotFoundError:
        return
