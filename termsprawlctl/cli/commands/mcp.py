"""`mcp`: serve one of the systems to an MCP client over stdio; without a name, the operations."""

from __future__ import annotations

import importlib
import os

from ...base.errors import UsageError

# name: what `mcp --help` says of it. The module is commands/mcp_<name>.py, with
# configure(parser) and run(args).
SERVERS: dict[str, str] = {
    "tui": "serve a shared live TUI: see its view, switch its session",
    "agent": "serve a coding-agent CLI: run a task, follow it, get its answer",
}

EPILOG = """\
examples:
  termsprawlctl mcp
  termsprawlctl mcp --wait 30 --session /path/to/session.json
  termsprawlctl mcp --start-host

Serves until its input ends. The handshake asks the app for session_info and fails when
the app cannot be reached; --wait keeps trying for a while, and without a session waits for
a host to start. Calls are never repeated.
--start-host serves the project around the current directory, or --project, from a host
that it starts where none runs; a session that is named comes first.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=0.0,
        help="how long the handshake tries again while the app is away (default 0)",
    )
    parser.add_argument("--start-host", action="store_true", help="start a host if none runs and no session is named")
    parser.add_argument("--project", metavar="DIR", help="with --start-host: the project folder")
    parser.add_argument("--data", metavar="DIR", help="with --start-host: data directory of the host")
    parser.set_defaults(server=None)
    if SERVERS:
        _add_servers(parser)


def plain(words: list[str]) -> dict[str, object] | None:
    if words not in ([], ["--start-host"]):
        return None
    return {"wait": 0.0, "start_host": bool(words), "project": None, "data": None, "server": None}


def run(args) -> int:
    from ...base import program

    program.pin()
    # Worker threads may still be inside a call: nothing but the process can end them.
    os._exit(_run_bridge(args) if args.server is None else _module(args.server).run(args))


def _run_bridge(args) -> int:
    from ...app.bridge import OPTIONS, Bridge
    from ...mcp.server import serve

    return serve(Bridge(_session(args), args.wait), OPTIONS)


def _session(args) -> str:
    if args.start_host:
        from ..session import started_host_session

        return started_host_session(args)
    if args.project is not None or args.data is not None:
        raise UsageError("--project and --data go with --start-host.", "Add it, or leave them out.")
    from ...app.discovery import session_file

    if args.wait and args.session is None and session_file(None, os.environ) is None:
        from ..session import awaited_host_session

        return awaited_host_session(args.wait)
    from ..results import require_session

    return require_session(args.session)


def _add_servers(parser) -> None:
    from ..arguments import Parser

    class Lazy(Parser):
        """The parser of one server, which imports the server's module only to be used."""

        declared = False
        server = ""

        def declare(self) -> None:
            if not self.declared:
                self.declared = True
                _module(self.server).configure(self)

    servers = parser.add_subparsers(
        dest="server", metavar="SERVER", parser_class=Lazy, title="other servers", description="Each explains itself."
    )
    for name, summary in SERVERS.items():
        servers.add_parser(name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}.").server = name


def _module(name: str):
    return importlib.import_module(f".mcp_{name}", __package__)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds"
