"""`wait`: until a terminal shows a text, falls silent, or what runs there ends."""

from __future__ import annotations

import time

from ...base import console, jsontext
from ...base.errors import OK, UsageError
from ..results import ask, require_session

EPILOG = """\
examples:
  termsprawlctl wait n-1 --text 'listening on'
  termsprawlctl wait n-1 --exit
  termsprawlctl wait n-1 --idle 2 --timeout 60

Looks at all that was written there since this session last typed something, and waits as
long as it takes unless --timeout says otherwise. Needs the embedded host.
exit status: 0 for a text or silence; with --exit that of the command, 125 where it is not
known; 124 when --timeout is over; 1 when the host refuses, 2 when nothing was called
"""
TIMED_OUT, UNKNOWN = 124, 125
_STEP_MS = 25_000  # of one call; a host takes 30,000 at most


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("node", metavar="NODE", help="the terminal")
    parser.add_argument("--text", metavar="TEXT", help="until this text is there")
    parser.add_argument("--exit", action="store_true", help="until what runs there has ended")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="until nothing was written for so long")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer than that")
    parser.add_argument("--json", action="store_true", help="print what ended the wait as JSON")


def run(args) -> int:
    if args.text is None and args.idle is None and not args.exit:
        raise UsageError("nothing is given to wait for.", "Give --text, --idle or --exit.")
    session = require_session(args.session)
    wanted: dict[str, object] = {"nodeId": args.node}
    if args.text is not None:
        wanted["text"] = args.text
    if args.idle is not None:
        wanted["idleMs"] = round(1000 * args.idle)
    if args.exit:
        wanted["exit"] = True
    end_s = None if args.timeout is None else time.monotonic() + args.timeout
    value = _wait(session, wanted, end_s)
    if args.json:
        console.out(jsontext.pretty(value) + "\n")
    elif value.get("match"):
        console.out(value["match"] + "\n")
    if value["reason"] == "timeout":
        return TIMED_OUT
    if value["reason"] != "exit":
        return OK
    status = value.get("exitStatus")
    return UNKNOWN if status is None else status


def _wait(session: str, wanted: dict[str, object], end_s: float | None) -> dict:
    """What ended the wait, over as many calls as it takes."""
    while True:
        left_ms = _STEP_MS if end_s is None else max(0, min(_STEP_MS, round(1000 * (end_s - time.monotonic()))))
        value = ask(session, "terminal_wait", **wanted, timeoutMs=left_ms)
        if value["reason"] != "timeout" or (end_s is not None and time.monotonic() >= end_s):
            return value
