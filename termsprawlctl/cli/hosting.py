"""What `host` does: run, start, look at, tidy and stop the embedded host."""

from __future__ import annotations

import contextlib
import os
import signal

from ..base import console, jsontext
from ..base.console import Notice
from ..base.errors import FAILED, OK, CtlError, UsageError, words_for
from ..base.files import Explained
from ..base.layout import DataPaths, default_data_directory
from ..base.ownership import refuse_another_users
from ..base.program import program_file
from .session import project_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


# These end what is left of agents' runs, too.
TIDYING = ("start", "status", "stop", "prune")


def run(args: Namespace) -> int:
    """Carry out `host ACTION`; returns the exit status. Raises CtlError."""
    if os.name != "posix":
        raise CtlError("the host needs tmux, which this system does not have.", "Run it in WSL.")
    if args.data == "":
        raise UsageError("--data needs a directory.", "Name one, or leave it out.")
    paths = DataPaths(args.data or default_data_directory(os.environ))
    with Explained(
        f"cannot use the data directory {paths.root}", "Run this as that user, or name another one with --data DIR."
    ):
        _refuse_another_users(paths.root)
    actions = {
        "run": _run,
        "start": _start,
        "status": _status,
        "stop": _stop,
        "link": _link,
        "unlink": _unlink,
        "links": _links,
        "watch": _watch,
        "log": _log,
        "prune": _prune,
        "unit": _unit,
    }
    if args.action in TIDYING:
        from ..agents.runs.scratch import end_abandoned

        end_abandoned()
    return actions[args.action](paths, args)


def _refuse_another_users(root: str) -> None:
    # What lies there says which process to end, which tmux server to ask, and where tokens go.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        refuse_another_users(os.stat(root), root)


def _run(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.service import serve

    if args.ready_fd is not None:
        return _run_detached(paths, args.ready_fd, serve)
    from ..base import log
    from ..host.daemon.control import export_line
    from ..host.registry.projects import check_folder, operator_session

    project = check_folder(project_folder(args.project, new=args.new))

    def ready() -> None:
        session = operator_session(paths, project)
        log.say("termsprawlctl: the host is ready; Ctrl-C ends it. In another shell:")
        log.hand_over(os.fsencode(export_line(paths.session(session.node_id))) + b"\n")

    return serve(paths, ready=ready)


def _run_detached(paths: DataPaths, descriptor: int, serve) -> int:
    """Run for `host start`, which waits at the other end of a pipe for "ready" or for what is wrong."""

    is_waiting = True

    def answer(text: str) -> None:
        nonlocal is_waiting
        if is_waiting:  # else the number means another file by now
            is_waiting = False
            try:
                os.write(descriptor, text.encode())
            except OSError:
                # Whoever started it was ended, and may have started and stopped another one since.
                os.kill(os.getpid(), signal.SIGTERM)
            os.close(descriptor)

    try:
        return serve(paths, ready=lambda: answer("ready\n"), hold_on_hangup=True)
    except CtlError as error:
        answer(str(error))
        raise
    except Exception as fault:
        answer(words_for(fault))
        raise


def _start(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.control import export_line, start, status

    project = project_folder(args.project, new=args.new)
    with Notice("starting the host"):
        session = start(paths, project)
    if args.json:
        state = status(paths)
        facts = {"sessionFile": session, "project": os.path.realpath(project), "data": paths.root, "pid": state["pid"]}
        facts |= {"instanceId": state["instanceId"], "socket": paths.host_socket()}
        console.out(jsontext.pretty(facts) + "\n")
        return OK
    # As bytes: the directory's name may be no UTF-8, and the shell has to get it as it is.
    console.out_bytes(os.fsencode(export_line(session)) + b"\n")
    return OK


def _status(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.control import status

    state = status(paths)
    console.out((jsontext.pretty(state) if args.json else _describe(state, paths)) + "\n")
    return OK if state["running"] else FAILED


def _stop(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.control import stop

    with Notice("waiting for the host to finish what it is doing"):
        was_running = stop(paths, kill_sessions=args.kill_sessions)
    console.err(
        "termsprawlctl: the host has stopped." if was_running else f"termsprawlctl: no host runs on {paths.root}."
    )
    return OK


def _prune(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.control import prune

    done = prune(paths)
    if args.json:
        console.out(jsontext.pretty(done) + "\n")
        return OK
    for node in done["terminals"]:
        console.out(f"removed the ended terminal {node}\n")
    for folder in done["projects"]:
        console.out(f"removed the project {folder}: its folder is gone\n")
    if not done["running"]:
        console.err("termsprawlctl: no host runs, so ended terminals were left. Start it, then prune again.")
    elif not done["terminals"] and not done["projects"]:
        console.err("termsprawlctl: there was nothing to remove.")
    return OK


def _unit(paths: DataPaths, args: Namespace) -> int:
    from .unit import launchd_agent, systemd_unit

    argv = [program_file(), "host", "run", "--data", paths.root, "--project"]
    argv.append(os.path.abspath(project_folder(args.project, new=args.new)))
    make = launchd_agent if args.launchd or (os.uname().sysname == "Darwin" and not args.systemd) else systemd_unit
    console.out(make(argv, os.environ.get("PATH", os.defpath), paths.log))
    return OK


def _link(paths: DataPaths, args: Namespace) -> int:
    from ..host.messaging.links import link, link_context

    if args.context:
        link_context(paths, args.sender, args.recipient)
        console.err(f"termsprawlctl: {args.sender} and {args.recipient} may read each other's transcript.")
        return OK
    link(paths, args.sender, args.recipient)
    console.err(f"termsprawlctl: {args.sender} may send work to {args.recipient}.")
    return OK


def _unlink(paths: DataPaths, args: Namespace) -> int:
    from ..host.messaging.links import unlink, unlink_context

    if args.context:
        unlink_context(paths, args.sender, args.recipient)
        console.err(f"termsprawlctl: {args.sender} and {args.recipient} may no longer read each other's transcript.")
        return OK
    unlink(paths, args.sender, args.recipient)
    console.err(f"termsprawlctl: {args.sender} may no longer send work to {args.recipient}.")
    return OK


def _links(paths: DataPaths, args: Namespace) -> int:
    from ..host.messaging.links import listing

    found = listing(paths)
    console.out(jsontext.pretty(found) + "\n" if args.json else "".join(map(_describe_link, found)))
    return OK


def _describe_link(link: dict) -> str:
    notes = [f"{node} is gone" for node in link["gone"]]
    sign = "->" if link["kind"] == "messages" else "<-reads->"
    return f"{link['from']} {sign} {link['to']}  {link['folder']}" + (f"  ({', '.join(notes)})" if notes else "") + "\n"


def _watch(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.watching import watch

    return watch(paths, as_json=args.json)


def _log(paths: DataPaths, args: Namespace) -> int:
    from ..host.daemon.watching import show_log

    if args.lines < 0:
        raise UsageError("--lines needs a number of 0 or more.", "For example: --lines 20")
    return show_log(paths, as_json=args.json, lines=args.lines)


_RUNNING = {True: "running", False: "ended", None: "unknown: tmux cannot be asked"}


def _describe(state: dict, paths: DataPaths) -> str:
    from ..view.source import glance

    lines = [
        f"host      running, pid {state['pid']}" if state["running"] else "host      not running",
        f"data      {state['data']}",
    ]
    for project in state["projects"]:
        lines += [f"project   {project['folder']}", f"  session   {project['sessionFile']}"]
        seen = glance(paths, project["folder"])
        for terminal in project["terminals"]:
            line = f"  terminal  {terminal['nodeId']}  {_RUNNING[terminal['running']]}"
            lines.append(f"{line}  {seen.get(terminal['nodeId'], '')}".rstrip())
        lines += [f"  terminal  {node}  elsewhere: another program runs it" for node in project["elsewhere"]]
    return "\n".join(lines)
