"""`tui`: share a live tmux client with an agent, or use a shared TUI from a shell."""

from __future__ import annotations

EPILOG = """\
examples:
  termsprawlctl tui share                           inside tmux: share this client
  termsprawlctl tui share --only 'work*' --for 1h   these sessions, and no longer than that
  termsprawlctl tui share --detach --name work      in the background, at a path that stays the same
  termsprawlctl tui status                          what is shared
  termsprawlctl tui back                            where you were before the agent's last switch
  termsprawlctl tui revoke                          end it, from anywhere
  termsprawlctl tui sessions                        the ids that select takes
  termsprawlctl tui context --endpoint /tmp/.../endpoint.json
  termsprawlctl tui select ses_... --endpoint /tmp/.../endpoint.json

`mcp tui --endpoint PATH` gives an MCP client the same two operations.
A share ends with its process. It keeps out other users of this machine, not the programs of
yours that learn the path. Meanwhile the client's status line shows TUIMCP [Revoke].
exit status of context and select: 0 context or applied, 1 rejected, 2 not asked.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, text: str):
        # The examples of its own out of the whole list.
        own = [line for line in EPILOG.splitlines() if f"{line} ".startswith(f"  termsprawlctl tui {name} ")]
        epilog = "\n".join([f"example{'s' * (len(own) > 1)}:", *own]) + "\n"
        return actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.", epilog=epilog)

    context = add("context", "print what a shared TUI shows")
    _add_endpoint(context)

    select = add("select", "show a session in a shared TUI")
    select.add_argument("session_id", metavar="SESSION", help="the session's id, ses_...")
    _add_endpoint(select)

    _configure_share(add("share", "share a live tmux client, in the foreground"))

    sessions = add("sessions", "list ids and names of the tmux sessions")
    sessions.add_argument("--json", action="store_true", help="as a JSON list of {sessionId, name}")
    _add_server(sessions).add_argument(
        "--endpoint", metavar="PATH", help="those that the share at this endpoint.json lets an agent select"
    )

    status = add("status", "list the shares that are running")
    status.add_argument("--json", action="store_true", help="as a JSON list")

    revoke = add("revoke", "end a share, from anywhere")
    revoke.add_argument("path", metavar="PATH", nargs="?", help="the share's endpoint.json (default: the only share)")
    revoke.add_argument("--all", action="store_true", help="end all shares")
    _add_binding(revoke)
    revoke.add_argument("--by", choices=["click", "key", "command"], default="command", help=_HIDDEN)

    _add_binding(add("back", "show what the client showed before the agent's last switch"))


def _configure_share(share) -> None:
    share.add_argument("--client", metavar="TTY", help="which client, as in tmux list-clients (default: this one)")
    share.add_argument(
        "--only", metavar="NAME", nargs="+", help="the sessions that can be selected, by name; patterns like work*"
    )
    share.add_argument("--for", dest="lasts", metavar="TIME", help="end by itself after this time: 45s, 10m, 1h30m")
    share.add_argument("--read-only", action="store_true", help="the view can be read, and no session selected")
    share.add_argument(
        "--pause",
        metavar="SECONDS",
        type=float,
        default=1.5,
        help="how long you are left alone after each key, or up to a second longer (1.5 to 60, default: 1.5)",
    )
    share.add_argument("--key", metavar="KEY", help="the key after the prefix that revokes (default: R, if it is free)")
    share.add_argument("--name", help="share at a path that is the same each time, and private as any")
    share.add_argument("--detach", action="store_true", help="run in the background, print the path and return")
    _add_server(share)


def _add_endpoint(parser) -> None:
    parser.add_argument("--endpoint", metavar="PATH", required=True, help="the endpoint.json that `tui share` prints")


def _add_server(parser):
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--socket-path", metavar="S", help="the tmux server's socket (tmux -S)")
    group.add_argument("--server-name", metavar="L", help="the tmux server's name (tmux -L)")
    return group


_HIDDEN = "==SUPPRESS=="  # argparse.SUPPRESS; what the bindings inside tmux say


def _add_binding(parser) -> None:
    parser.add_argument("--at-client", metavar="PID", help=_HIDDEN)
    parser.add_argument("--socket-path", metavar="S", help=_HIDDEN)


def run(args) -> int:
    from ...share import shell

    try:
        return getattr(shell, args.action)(args)
    finally:
        shell.clear_dead()
