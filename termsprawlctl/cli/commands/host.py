"""`host`: run, start, look at and stop the embedded host."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal

from ...base import console, jsontext
from ...base.console import Notice
from ...base.errors import FAILED, OK, CtlError, UsageError, words_for
from ...base.files import Explained
from ...base.layout import DataPaths, default_data_directory
from ...base.ownership import refuse_another_users

EPILOG = """\
examples:
  eval "$(termsprawlctl host start)"     start it and point this shell at it
  termsprawlctl host status
  termsprawlctl host stop                terminals keep running; start finds them again
  termsprawlctl host stop --kill-sessions
  termsprawlctl host link n-1 n-2        n-1 may send work to n-2 from now on
  termsprawlctl host watch               follow what happens; host log shows what happened

The data directory is --data, else TERMSPRAWL_DATA, else $XDG_STATE_HOME/termsprawlctl
(~/.local/state/termsprawlctl). The project is the current directory unless --project
names another one; its canvas is kept in .termsprawl/project.json there.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(
        dest="action", metavar="run|start|status|stop|link|unlink|links|watch|log", required=True
    )

    def add(name: str, text: str):
        one = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".", epilog=EPILOG)
        one.add_argument("--data", metavar="DIR", help="data directory of the host")
        return one

    run_parser = add("run", "serve in the foreground until interrupted")
    run_parser.add_argument("--project", metavar="DIR", help="project folder, default the current directory")
    run_parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    start_parser = add("start", "start a host in the background and print the line for eval")
    start_parser.add_argument("--project", metavar="DIR", help="project folder, default the current directory")
    status_parser = add("status", "show whether a host runs, and its terminals; exit status 1 when none runs")
    status_parser.add_argument("--json", action="store_true", help="print JSON")
    stop_parser = add("stop", "stop the host")
    stop_parser.add_argument("--kill-sessions", action="store_true", help="end all its terminals, too")
    for name, text in (
        ("link", "let one agent or terminal send work to another"),
        ("unlink", "take a link away again"),
    ):
        link_parser = add(name, text)
        link_parser.add_argument("sender", metavar="FROM", help="id of the node that may send, as in host status")
        link_parser.add_argument("recipient", metavar="TO", help="id of the node that gets the work")
    links_parser = add("links", "list the links of all projects")
    links_parser.add_argument("--json", action="store_true", help="print JSON")
    watch_parser = add("watch", "show what happens on the host, until it ends or Ctrl-C")
    watch_parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    log_parser = add("log", "show what happened on the host")
    log_parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    log_parser.add_argument("--lines", metavar="N", type=int, default=100, help="how many at most, default 100")


def run(args) -> int:
    if os.name != "posix":
        raise CtlError("the embedded host needs tmux, which this system does not have.")
    if args.data == "":
        raise UsageError("--data needs a directory.")
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
    }
    return actions[args.action](paths, args)


def _refuse_another_users(root: str) -> None:
    # What lies there says which process to end, which tmux server to ask, and where tokens go.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        refuse_another_users(os.stat(root), root)


def _run(paths: DataPaths, args) -> int:
    from ...host.daemon.service import serve

    if args.ready_fd is not None:
        return _run_detached(paths, args.ready_fd, serve)
    from ...host.daemon import log
    from ...host.daemon.control import export_line
    from ...host.registry.projects import check_folder, operator_session

    project = check_folder(args.project or os.getcwd())

    def ready() -> None:
        session = operator_session(paths, project)
        log.say("termsprawlctl: the host is ready; Ctrl-C ends it. In another shell:")
        log.tell(os.fsencode(export_line(paths.session(session.node_id))) + b"\n")

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


def _start(paths: DataPaths, args) -> int:
    from ...host.daemon.control import export_line, start

    with Notice("starting the host"):
        session = start(paths, args.project or os.getcwd())
    # As bytes: the directory's name may be no UTF-8, and the shell has to get it as it is.
    console.out_bytes(os.fsencode(export_line(session)) + b"\n")
    return OK


def _status(paths: DataPaths, args) -> int:
    from ...host.daemon.control import status

    state = status(paths)
    console.out((jsontext.pretty(state) if args.json else _describe(state, paths)) + "\n")
    return OK if state["running"] else FAILED


def _stop(paths: DataPaths, args) -> int:
    from ...host.daemon.control import stop

    with Notice("waiting for the host to finish what it is doing"):
        was_running = stop(paths, kill_sessions=args.kill_sessions)
    console.err(
        "termsprawlctl: the host has stopped." if was_running else f"termsprawlctl: no host runs on {paths.root}."
    )
    return OK


def _link(paths: DataPaths, args) -> int:
    from ...host.messaging.links import link

    link(paths, args.sender, args.recipient)
    console.err(f"termsprawlctl: {args.sender} may send work to {args.recipient}.")
    return OK


def _unlink(paths: DataPaths, args) -> int:
    from ...host.messaging.links import unlink

    unlink(paths, args.sender, args.recipient)
    console.err(f"termsprawlctl: {args.sender} may no longer send work to {args.recipient}.")
    return OK


def _links(paths: DataPaths, args) -> int:
    from ...host.messaging.links import listing

    found = listing(paths)
    console.out(jsontext.pretty(found) + "\n" if args.json else "".join(map(_describe_link, found)))
    return OK


def _describe_link(link: dict) -> str:
    notes = [] if link["enabled"] else ["disabled"]
    notes += [f"{node} is gone" for node in link["gone"]]
    return f"{link['from']} -> {link['to']}  {link['folder']}" + (f"  ({', '.join(notes)})" if notes else "") + "\n"


def _watch(paths: DataPaths, args) -> int:
    from ...host.daemon.watching import watch

    return watch(paths, as_json=args.json)


def _log(paths: DataPaths, args) -> int:
    from ...host.daemon.watching import show_log

    if args.lines < 0:
        raise UsageError("--lines needs a number of 0 or more.")
    return show_log(paths, as_json=args.json, lines=args.lines)


_RUNNING = {True: "running", False: "ended", None: "unknown: tmux cannot be asked"}


def _describe(state: dict, paths: DataPaths) -> str:
    from ...view.source import glance

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
    return "\n".join(lines)
