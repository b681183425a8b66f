"""`install`: one of our MCP servers in an MCP client's own configuration."""

from __future__ import annotations

import os
import re

from ...base import console
from ...base.errors import UsageError
from ...install.clients import CLIENTS, SCOPES, USER, Place

EPILOG = """\
examples:
  termsprawlctl install codex                    shows what, and where
  termsprawlctl install claude --write           writes and checks it
  termsprawlctl install vscode --scope project --write
  termsprawlctl install claude --server agent:codex --write -- --cwd ~/src
  termsprawlctl install gemini --server tui -- --endpoint /tmp/.../endpoint.json

Only this one entry is changed; the file as it was before is kept beside it. Then the
server is asked for its tools by the very words written, and the client for its list.
The session is --session, else TERMSPRAWL_SESSION_FILE; that of `host start` stays.
exit status: 0 done (or shown), 1 not written or no answer, 2 nothing was tried
"""
SESSION = "session"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.passes_on = "ARGS"
    add_target(parser)
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the server; may be repeated"
    )
    parser.add_argument("--no-verify", action="store_true", help="do not start the server or the client afterwards")


def add_target(parser) -> None:
    """What `install` and `uninstall` have in common."""
    parser.add_argument("client", choices=list(CLIENTS), metavar="CLIENT", help=" ".join(CLIENTS))
    server = parser.add_argument(
        "--server",
        metavar="SERVER",
        default=SESSION,
        help=f"{' | '.join(server_names())} (default {SESSION}); ARGS go on to it",
    )
    server.words = _servers_spelled_out  # for completion
    parser.add_argument("--name", metavar="NAME", help="the server's name in the client (default termsprawl...)")
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=USER,
        metavar="SCOPE",
        help="user (default), or project for the file in this folder",
    )
    parser.add_argument("--file", metavar="FILE", help="the configuration file, if it is elsewhere")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print what would be written (default)")
    what.add_argument("--write", action="store_true", help="write it")
    parser.add_argument("--json", action="store_true", help="print what is or would be done as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but what went wrong")


def run(args) -> int:
    from ...base.program import program_file
    from ...install import shell
    from ...install.dialects import Server
    from ...install.plan import Plan

    words = _server_words(args.server, list(getattr(args, "passed_on", None) or []), args.session)
    argv = [program_file(), *words]
    if not all(map(console.is_text, argv)):
        raise UsageError("a path is not valid UTF-8, which no configuration file can hold.", "Use another path.")
    server = Server(argv, _environment(args.env))
    plan = Plan.install(server, *where(args))
    return shell.install(
        plan,
        server,
        args.scope,
        write=args.write,
        verified=not args.no_verify,
        output=shell.Output(as_json=args.json, quiet=args.quiet),
        cwd=os.getcwd(),
    )


def where(args) -> tuple:
    """What a Plan needs to find the entry. Raises UsageError."""
    name = args.name or default_name(args.server)
    if not NAME.fullmatch(name):
        raise UsageError(f"--name {name!r}: use at most 64 letters, digits, - and _.")
    if args.file == "":
        raise UsageError("--file needs a path.")
    place = Place(os.environ, os.uname().sysname if os.name == "posix" else "Windows", os.getcwd())
    return args.client, name, args.scope, place, args.file and os.path.abspath(args.file)


def server_names() -> list[str]:
    """The servers as --server takes them."""
    from .mcp import SERVERS

    return [SESSION, *("agent:AGENT" if name == "agent" else name for name in SERVERS)]


def _servers_spelled_out() -> list[str]:
    from ...agents.clis.registry import NAMES

    return [
        word
        for name in server_names()
        for word in ([f"agent:{agent}" for agent in NAMES] if name == "agent:AGENT" else [name])
    ]


def default_name(server: str) -> str:
    """`termsprawl` for the session's operations, `termsprawl-codex` for agent:codex."""
    return "termsprawl" if server == SESSION else f"termsprawl-{server.rpartition(':')[2]}"


def _server_words(server: str, extra: list[str], session: str | None) -> list[str]:
    """The words behind the program: what `termsprawlctl mcp` takes. Raises UsageError."""
    from ..parser import command_parser
    from ..results import require_session
    from .mcp import SERVERS

    name, *rest = server.split(":")
    if name != SESSION and name not in SERVERS:
        raise UsageError(f"--server {server}: there is no such server.", f"Known: {', '.join(server_names())}.")
    words = [*rest, *extra] if name == SESSION else [name, *rest, *extra]
    command_parser("mcp").parse_args(words)  # the server's own usage error is better now than in the client
    if name == SESSION:
        # Clients hand little of their environment on: the path goes into the words.
        words += ["--session", os.path.abspath(require_session(session))]
    return ["mcp", *words]


def _environment(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        match = VARIABLE.fullmatch(pair)
        if not match or "\0" in pair:
            raise UsageError(f"--env {pair.partition('=')[0]}: write NAME=VALUE.")
        found[match.group(1)] = match.group(2)
    return found
