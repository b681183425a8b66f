"""`host`: run, start, look at, tidy and stop the embedded host."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..arguments import Parser

EPILOG = """\
examples:
  eval "$(termsprawlctl host start)"     start it and point this shell at it
  termsprawlctl host status
  termsprawlctl host stop                terminals keep running; start finds them again

Where --project is not given, the project is the nearest folder with .termsprawl or .git,
else the current directory. Its .termsprawl/ holds the canvas: commit it to share the layout
with others, or add it to .gitignore. The data directory is --data, else TERMSPRAWL_DATA,
else $XDG_STATE_HOME/termsprawlctl (~/.local/state/termsprawlctl).
"""
# name: (one line of help, examples)
ACTIONS = {
    "run": ("run in the foreground until interrupted", ("host run", "host run --project ~/src/app")),
    "start": (
        "start a host in the background and print the line for eval",
        ('eval "$(termsprawlctl host start)"', "host start --project ~/src/app", "host start --json"),
    ),
    "status": (
        "show whether a host runs, and its terminals; exit status 1 when none runs",
        ("host status", "host status --json"),
    ),
    "stop": ("stop the host; its terminals keep running", ("host stop", "host stop --kill-sessions")),
    "prune": ("remove ended terminals, and projects whose folder is gone", ("host prune", "host prune --json")),
    "link": ("let one agent or terminal send work to another", ("host link n-1 n-2", "host link --context n-1 n-2")),
    "unlink": ("remove a link", ("host unlink n-1 n-2",)),
    "links": ("list the links of all projects", ("host links", "host links --json")),
    "watch": ("show events on the host until it ends or Ctrl-C", ("host watch", "host watch --json")),
    "log": ("show past events on the host", ("host log --lines 20", "host log --json")),
    "unit": (
        "print a service file that starts the host at login",
        (
            "host unit > ~/.config/systemd/user/termsprawlctl.service",
            "host unit --launchd > ~/Library/LaunchAgents/termsprawlctl.plist",
        ),
    ),
}
JSON = {"watch": "print one JSON object a line", "log": "print one JSON object a line"}


def configure(parser: Parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (text, examples) in ACTIONS.items():
        lines = [f"  {line if line.startswith('eval') else 'termsprawlctl ' + line}\n" for line in examples]
        one = commands.add_parser(
            name,
            help=text,
            description=f"{text[:1].upper()}{text[1:]}.",
            epilog=f"example{'s' * (len(lines) > 1)}:\n{''.join(lines)}",
        )
        one.add_argument("--data", metavar="DIR", help="data directory of the host")
        if name in ("run", "start", "unit"):
            _add_project(one)
        if name in ("start", "status", "prune", "links", "watch", "log"):
            one.add_argument("--json", action="store_true", help=JSON.get(name, "print JSON"))
        if name in ("link", "unlink"):
            one.add_argument("sender", metavar="FROM", help="id of the node that may send, as in host status")
            one.add_argument("recipient", metavar="TO", help="id of the node that gets the work")
            one.add_argument("--context", action="store_true", help="about reading each other's transcript, both ways")
    parsers = commands.choices
    parsers["run"].add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parsers["stop"].add_argument("--kill-sessions", action="store_true", help="end all its terminals, too")
    parsers["log"].add_argument("--lines", metavar="N", type=int, default=100, help="at most this many (default 100)")
    form = parsers["unit"].add_mutually_exclusive_group()
    form.add_argument("--systemd", action="store_true", help="a systemd user unit (default, but for macOS)")
    form.add_argument("--launchd", action="store_true", help="a launchd agent (default on macOS)")


def _add_project(parser: Parser) -> None:
    parser.add_argument("--project", metavar="DIR", help="project folder (default: the one around this folder)")
    parser.add_argument("--new", action="store_true", help="make a project of this folder, even inside another one")


def run(args: argparse.Namespace) -> int:
    from ..hosting import run as carry_out

    return carry_out(args)
