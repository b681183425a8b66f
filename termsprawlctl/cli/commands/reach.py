"""`reach`: a host on another machine, over ssh, as if it were here."""

from __future__ import annotations

import argparse
import os

from ...base import console, jsontext
from ...base.errors import FAILED, OK, CtlError, UsageError

EPILOG = """\
examples:
  eval "$(termsprawlctl reach box)"             use the host on box from this shell
  termsprawlctl reach build@10.0.0.7 --project src/app
  termsprawlctl reach list
  termsprawlctl reach check box                 try each step, with its cause and fix
  termsprawlctl reach stop box                  end the connection; the host there keeps running
  termsprawlctl reach stop box --all            the host and its terminals, too

DESTINATION is what ssh takes; ~/.ssh/config counts as it is. tmux and Python 3.9 have to be
there; this file is copied there where it is not yet. A lost connection is made again, with the
same session file. --project is a folder over there (default: the home directory).
"""
ACTIONS = ("list", "stop", "check")


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("action", nargs="?", metavar="ACTION", help="list, stop or check; without it: reach")
    parser.add_argument("destination", nargs="?", metavar="DESTINATION", help="where to, as for ssh")
    parser.add_argument("--project", metavar="DIR", help="the project's folder over there")
    parser.add_argument("--update", action="store_true", help="restart the host there from this file")
    parser.add_argument("--all", action="store_true", help="with stop: end the host and its terminals there, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--keep", metavar="DIR", help=argparse.SUPPRESS)


def run(args) -> int:
    if os.name != "posix":
        raise CtlError("reach needs OpenSSH's connection sharing, which this system does not have.", "Run it in WSL.")
    if args.keep is not None:
        from ...reach.keeper import keep

        return keep(args.keep)
    if args.action not in ACTIONS:
        if args.destination is not None:
            raise UsageError(f"there is no action {args.action!r}.", f"Name one of: {', '.join(ACTIONS)}.")
        args.action, args.destination = "reach", args.action
    if (args.destination is None) != (args.action == "list"):
        raise UsageError(f"{args.action} takes {'no' if args.destination else 'a'} destination.", "See reach --help.")
    for option, action in (("project", "reach"), ("update", "reach"), ("all", "stop")):
        if getattr(args, option) and args.action != action:
            raise UsageError(f"--{option} does not go with {args.action}.", "Leave it out.")
    return {"reach": _reach, "list": _list, "stop": _stop, "check": _check}[args.action](args)


def _batch() -> bool:
    """Whether nobody is there whom ssh could ask."""
    return not (os.isatty(console.STDIN) and os.isatty(console.STDERR))


def _reach(args) -> int:
    from ...base.processes import Interruptible
    from ...host.daemon.control import export_line
    from ...reach.places import Place
    from ...reach.reaching import reach

    place = Place.of(args.destination)
    with console.Notice(f"reaching {args.destination}"), Interruptible():
        session = reach(place, args.project, batch=_batch(), restart=args.update)
    if args.json:
        project = place.record()["projects"][os.path.basename(session)]
        facts = {"destination": place.destination, "sessionFile": session, "project": project}
        console.out(jsontext.pretty(facts) + "\n")
    else:
        console.out_bytes(os.fsencode(export_line(session)) + b"\n")
    return OK


def _list(args) -> int:
    from ...reach.reaching import listing

    found = listing()
    if args.json:
        console.out(jsontext.pretty(found) + "\n")
        return OK
    for one in found:
        state = "connected" if one["connected"] else "not connected"
        keeper = "" if one["keeper"] else "; nothing keeps it: reach it again"
        console.out(f"{one['destination']}  {state}{keeper}\n")
        for session in one["sessions"]:
            console.out(f"  project  {session['project']}\n  session  {session['sessionFile']}\n")
    return OK


def _stop(args) -> int:
    from ...reach.places import Place
    from ...reach.reaching import stop

    place = Place.of(args.destination)
    if not place.record():
        console.err(f"termsprawlctl: {args.destination} is not reached.")
        return OK
    with console.Notice(f"ending the connection to {args.destination}"):
        stop(place, everything=args.all)
    console.err(f"termsprawlctl: the connection to {args.destination} has ended.")
    return OK


def _check(args) -> int:
    from ...doctor import checks
    from ...reach.carrier import StepError
    from ...reach.places import Place
    from ...reach.reaching import check

    found: list[checks.Check] = []

    def report(name: str, evidence: str, fix: str) -> None:
        found.append(checks.warning(name, evidence, "", fix) if fix else checks.ok(name, evidence))

    place = Place.of(args.destination)
    try:
        with console.Notice(f"trying {args.destination}"):
            check(place, report, batch=_batch())
    except StepError as error:
        found.append(checks.failed(error.step, error.message, "", error.remedy))
    if args.json:
        console.out(jsontext.pretty(checks.as_json(found)) + "\n")
    else:
        text = checks.as_text(found, colour=console.wants_colour(console.STDOUT, os.environ))
        console.paint(text + "\n")
    return FAILED if any(one.status == checks.FAILED for one in found) else OK
