"""`tui`: share a live tmux client with an agent, or use a shared TUI from a shell."""

from __future__ import annotations

EPILOG = """\
examples:
  termsprawlctl tui share --bar                     inside tmux: share this client, show the bar
  termsprawlctl tui sessions                        the ids that select takes
  termsprawlctl tui context --endpoint /tmp/.../endpoint.json
  termsprawlctl tui select ses_... --endpoint /tmp/.../endpoint.json
  termsprawlctl tui revoke /tmp/.../endpoint.json

`termsprawlctl mcp tui --endpoint PATH` gives an MCP client the same two operations.
A share is off until started, keeps nothing, and ends with its process. It keeps out other
users of this machine; every program of the same user that learns the path may use it.
exit status of context and select: 0 context or applied, 1 rejected, 2 not asked.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, text: str):
        # The examples of its own out of the whole list.
        own = [line for line in EPILOG.splitlines() if line.startswith(f"  termsprawlctl tui {name} ")]
        epilog = "\n".join([f"example{'s' * (len(own) > 1)}:", *own]) + "\n"
        return actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.", epilog=epilog)

    context = add("context", "print what a shared TUI shows")
    _add_endpoint(context)

    select = add("select", "show a session in a shared TUI")
    select.add_argument("session_id", metavar="SESSION", help="the session's id, ses_...")
    _add_endpoint(select)

    share = add("share", "share a live tmux client, in the foreground")
    share.add_argument("--client", metavar="TTY", help="which client, as in tmux list-clients (default: this one)")
    share.add_argument(
        "--bar",
        action="store_true",
        help="show a bar with [Revoke] at the bottom of its window; tmux's mouse is on in that session meanwhile",
    )
    _add_server(share)

    sessions = add("sessions", "list ids and names of the tmux sessions")
    sessions.add_argument("--json", action="store_true", help="as a JSON list of {sessionId, name}")
    _add_server(sessions)

    revoke = add("revoke", "end a share, from anywhere")
    revoke.add_argument("path", metavar="PATH", help="the share's endpoint.json")

    # What the bar's pane runs; nothing for people.
    bar = actions.add_parser("bar")
    bar.add_argument("path")
    bar.add_argument("--socket-path", required=True)
    bar.add_argument("--in-session", required=True)
    bar.add_argument("--mouse-was", required=True, choices=["on", "off", "unset"])


def _add_endpoint(parser) -> None:
    parser.add_argument("--endpoint", metavar="PATH", required=True, help="the endpoint.json that the TUI's bar shows")


def _add_server(parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--socket-path", metavar="S", help="the tmux server's socket (tmux -S)")
    group.add_argument("--server-name", metavar="L", help="the tmux server's name (tmux -L)")


def run(args) -> int:
    from ...share import shell

    return getattr(shell, args.action)(args)
