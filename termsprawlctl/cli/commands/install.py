"""`install`: one of our MCP servers in an MCP client's own configuration."""

from __future__ import annotations

import contextlib
import os
import re

from ...base import console
from ...base.errors import UsageError
from ...install.clients import CLIENTS, SCOPES, USER, Place
from ..results import require_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EPILOG = """\
examples:
  termsprawlctl install codex                    shows what, and where
  termsprawlctl install claude --write           writes and checks it
  termsprawlctl install vscode --scope project --write
  termsprawlctl install claude --server agent:codex --write -- --cwd ~/src
  termsprawlctl install gemini --server tui --name work --allow --write

Only this entry changes; a backup of the file is kept. The new server is asked
for its tools. In the app the entry names TERMSPRAWL_SESSION_FILE's session and
waits for the app; elsewhere it starts a host where none runs, unless --session
pins a session.
exit status: 0 written or shown, 1 not written or no answer, 2 nothing was tried
"""
SESSION, TUI = "session", "tui"
APP_WAIT_S = "30"  # from the start of a client to that of the app
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.passes_on = "ARGS"
    add_target(parser)
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the server; may be repeated"
    )
    parser.add_argument("--allow", action="store_true", help="have the client call the tools of tui unasked")
    parser.add_argument("--via", metavar="COMMAND", help="have the server run there: 'ssh box', 'docker exec -i web'")
    parser.add_argument("--no-verify", action="store_true", help="do not check the entry afterwards")


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
    parser.add_argument("--name", metavar="NAME", help="the server's name in the client, and of tui's share")
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
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def run(args) -> int:
    from ...base.program import program_file
    from ...install.dialects import Server
    from ...install.plan import Plan

    words = _server_words(args, list(getattr(args, "passed_on", None) or []))
    argv = [*(_sent(args.via) if args.via is not None else [program_file()]), *words]
    if not all(map(console.is_text, argv)):
        raise UsageError("a path is not valid UTF-8, which no configuration file can hold.", "Use another path.")
    server = Server(argv, _environment(args.env))
    found = where(args)
    plan = Plan.install(server, *found, more=_allowed_in_entry(args))
    with _no_host_left(args, words):
        return _install(args, plan, server, allow_rule(args, *found) if args.allow else None)


def _sent(via: str) -> list[str]:
    from ...reach.reaching import send

    return send(via)


@contextlib.contextmanager
def _no_host_left(args, words: list[str]) -> Iterator[None]:
    """Stop the host that only the check of the entry has started; terminals it has none yet."""
    if not args.write or args.no_verify or args.via is not None or "--start-host" not in words:
        yield
        return
    from ...base.layout import DataPaths, default_data_directory
    from ...host.daemon.control import stop
    from ...host.daemon.lock import is_held

    data = words[words.index("--data") + 1] if "--data" in words else default_data_directory(os.environ)
    paths = DataPaths(data)
    ran_before = is_held(paths)
    try:
        yield
    finally:
        if not ran_before:
            stop(paths, kill_sessions=False)


def _install(args, plan, server, rule) -> int:
    from ...install import shell

    output = shell.Output(as_json=args.json, quiet=args.quiet)

    status = shell.install(
        plan,
        server,
        args.scope,
        rule=rule,
        write=args.write,
        verified=not args.no_verify,
        output=output,
        cwd=os.getcwd(),
    )
    if args.server == TUI and not args.allow:
        output.say(
            f"{plan.client.title} asks before it calls the tools, and a key that approves a call in the shared client "
            f"makes the view stale. {'Add --allow' if _can_allow(plan.client) else 'Allow both tools there'}."
        )
    return status


def _can_allow(client) -> bool:
    return bool(client.allowed or client.rule)


def _allowed_in_entry(args) -> dict:
    """Keys of the entry that have the client call the tools without asking. Raises UsageError."""
    if not args.allow:
        return {}
    if args.server != TUI:
        raise UsageError("--allow goes with --server tui.", "Leave it out.")
    client = CLIENTS[args.client]
    if not _can_allow(client):
        raise UsageError(f"{client.title} has no file for it.", "Leave --allow out, and allow both tools there.")
    return client.allowed(_tui_tools()) if client.allowed else {}


def allow_rule(args, client: str, name: str, scope: str, place: Place, file: str | None):
    """The Rule beside the entry of `--server tui`; None where there is none, or it is in the entry. Raises CtlError."""
    from ...install.clients import PROJECT, configuration_file
    from ...install.configfile import refuse_way_out

    make = CLIENTS[client].rule if args.server == TUI else None
    if make is None:
        return None
    rule = make(name, _tui_tools(), scope, place, file or configuration_file(client, scope, place))
    if scope == PROJECT and not file:
        refuse_way_out(rule.file, place.folder)
    return rule


def _tui_tools() -> list[str]:
    from ...share import wire

    return [wire.GET_VIEW_CONTEXT, wire.SELECT_SESSION]


def where(args) -> tuple:
    """What a Plan needs to find the entry. Raises UsageError."""
    name = args.name or default_name(args.server)
    if not NAME.fullmatch(name):
        raise UsageError(f"--name {name!r} is not a name.", "Use at most 64 letters, digits, - and _.")
    if args.file == "":
        raise UsageError("--file needs a path.", "Name a file, or leave it out.")
    place = Place(os.environ, os.uname().sysname if os.name == "posix" else "Windows", os.getcwd())
    return args.client, name, args.scope, place, args.file and os.path.abspath(args.file)


def server_names() -> list[str]:
    """The servers as --server takes them."""
    from .mcp import SERVERS

    return [SESSION, *("agent:AGENT" if name == "agent" else name for name in SERVERS)]


def _servers_spelled_out() -> list[str]:
    from ...agents.clis.registry import ACP_NAMES, NAMES

    return [
        word
        for name in server_names()
        for word in ([f"agent:{agent}" for agent in (*NAMES, *ACP_NAMES)] if name == "agent:AGENT" else [name])
    ]


def default_name(server: str) -> str:
    """`termsprawl` for the session's operations, `termsprawl-codex` for agent:codex."""
    return "termsprawl" if server == SESSION else f"termsprawl-{server.rpartition(':')[2]}"


def _server_words(args, extra: list[str]) -> list[str]:
    """The words behind the program: what `termsprawlctl mcp` takes. Raises UsageError."""
    from ..parser import command_parser
    from .mcp import SERVERS

    server, session = args.server, args.session
    if server == TUI and not extra:
        extra = _tui_words(args.name)
    name, *rest = server.split(":")
    if name != SESSION and name not in SERVERS:
        raise UsageError(f"--server {server}: there is no such server.", f"Known: {', '.join(server_names())}.")
    words = [*rest, *extra] if name == SESSION else [name, *rest, *extra]
    if name == SESSION:
        words += ["--start-host"] if args.via is not None else _session_words(session)
    command_parser("mcp").parse_args(words)  # the server's own usage error is better now than in the client
    # Clients hand little of their environment on: the session's path goes into the words.
    return [
        "mcp",
        *words,
        *(["--session", os.path.abspath(session)] if session and name == SESSION and args.via is None else []),
    ]


def _tui_words(name: str | None) -> list[str]:
    """How the entry finds the share of this name, which may begin later than the client. Raises UsageError."""
    from ...share.endpoint import require_posix

    if name is None:
        raise UsageError(
            "--server tui needs a share.",
            "--name NAME for that of `tui share --name NAME`, or -- --endpoint PATH for one that is running.",
        )
    require_posix()
    from ...share.directory import named_path

    return ["--endpoint", named_path(name), "--later"]


def _session_words(session: str | None) -> list[str]:
    """How the entry finds its session again after a reboot. Raises NoSession.

    A session that --session names is the user's choice. That of the app is awaited: the app
    keeps it over a restart. A host's is not named at all, because the host and its sessions may
    go: the entry starts the host.
    """
    from ...app.discovery import session_file
    from ...base.layout import default_data_directory
    from ..session import host_data_directory

    if session is not None:
        require_session(session)
        return []
    named = session_file(None, os.environ)
    data = host_data_directory(named) if named else default_data_directory(os.environ)
    if named and data is None:
        return ["--wait", APP_WAIT_S, "--session", os.path.abspath(named)]
    # Without our own variables, which no client hands on.
    usual = default_data_directory({name: os.environ.get(name, "") for name in ("HOME", "XDG_STATE_HOME")})
    return ["--start-host", *(["--data", str(data)] if data != usual else [])]


def _environment(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        match = VARIABLE.fullmatch(pair)
        if not match or "\0" in pair:
            raise UsageError(f"--env {pair.partition('=')[0]} is not a variable.", "Write NAME=VALUE.")
        found[match.group(1)] = match.group(2)
    return found
