"""`run`: one command in a terminal's own shell, its output as it comes, and its exit status."""

from __future__ import annotations

import shlex
import time

from ...base import console, jsontext
from ...base.errors import INTERRUPTED, CtlError, UsageError
from ..results import ask, require_session

EPILOG = """\
examples:
  termsprawlctl run -- make test
  termsprawlctl run n-1 -- 'cd src && ls'
  termsprawlctl run --timeout 600 n-1 -- ./deploy.sh
  termsprawlctl run --json -- uname -a

One word after -- is a command line as one would type it; several are quoted. Without NODE
the command runs in a new terminal, which is closed afterwards. Ctrl-C is passed on to the
command; a second one leaves it to itself. Needs the embedded host.
exit status: the command's own; 124 when --timeout is over, 125 when it is not known, 130 interrupted,
1 when the host refuses, 2 when nothing was called
"""
TIMED_OUT, UNKNOWN = 124, 125
# How soon output is shown that has come: at once while there is some, less often later.
_FAST_S, _SLOW_S = 0.05, 0.4
_END_S = 5.0  # how long an interrupted command may take to end


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.passes_on = "COMMAND ..."
    parser.add_argument("node", nargs="?", metavar="NODE", help="the terminal (default: a new one)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="interrupt the command after so long")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object at the end: nodeId, output, exitStatus, durationMs"
    )


def run(args) -> int:
    words = getattr(args, "passed_on", [])
    if not words:
        raise UsageError("no command is given.", "Write it after --, as in `termsprawlctl run -- make test`.")
    command = words[0] if len(words) == 1 else shlex.join(words)
    session = require_session(args.session)
    node = args.node or ask(session, "terminal_open", title=command[:40])["nodeId"]
    try:
        return _Following(session, node, as_json=args.json).run(command, args.timeout)
    finally:
        if args.node is None:  # also one that the command has ended: it is still on the canvas
            ask(session, "terminal_close", nodeId=node)


class _Following:
    """A command and its output, from its start to its end."""

    def __init__(self, session: str, node: str, *, as_json: bool) -> None:
        self._session = session
        self._node = node
        self._as_json = as_json
        self._kept: list[str] = []
        self._cursor = ""
        self._status: int | None = None
        self._is_over = False

    def run(self, command: str, timeout_s: float | None) -> int:
        """Start the command and follow it; returns the exit status."""
        began_s = time.monotonic()
        value = ask(self._session, "terminal_run", nodeId=self._node, command=command, timeoutMs=0)
        self._take(value)
        limit_s = None if timeout_s is None else began_s + timeout_s
        interrupts, is_late = 0, False
        while not self._is_over:
            try:
                self._follow(limit_s)
                if not self._is_over:  # the time is up
                    is_late = True
                    self._interrupt()
                    self._follow(time.monotonic() + _END_S)
                    break
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 1:
                    break
                self._interrupt()
        status = TIMED_OUT if is_late else self._exit_status(interrupted=interrupts > 0)
        if self._as_json:
            value = {
                "nodeId": self._node,
                "output": "".join(self._kept),
                "exitStatus": self._status,
                "durationMs": round(1000 * (time.monotonic() - began_s)),
                "timedOut": is_late,
            }
            console.out(jsontext.pretty(value) + "\n")
        return status

    def _exit_status(self, *, interrupted: bool) -> int:
        if self._status is not None:
            return self._status
        return INTERRUPTED if interrupted else UNKNOWN

    def _interrupt(self) -> None:
        if not self._is_over:
            ask(self._session, "terminal_interrupt", nodeId=self._node)

    def _follow(self, until_s: float | None) -> None:
        """Show what comes until the command is over, or the time is."""
        pause_s = _FAST_S
        while not self._is_over and (until_s is None or time.monotonic() < until_s):
            time.sleep(pause_s)
            try:
                value = ask(self._session, "terminal_since", nodeId=self._node, cursor=self._cursor)
            except CtlError as error:
                self._note_end(error)
                return
            self._take(value)
            self._is_over = "exitStatus" in value or "ended" in value
            is_quiet = not value["output"] and not value["more"]
            pause_s = min(_SLOW_S, 1.5 * pause_s) if is_quiet else 0.0 if value["more"] else _FAST_S

    def _note_end(self, error: CtlError) -> None:
        """The terminal is gone: the command ended it, or the host did."""
        if "has ended" not in error.message:
            raise error
        self._is_over = True

    def _take(self, value: dict) -> None:
        self._cursor = value.get("cursor", self._cursor)
        if value.get("exitStatus") is not None:
            self._status = value["exitStatus"]
        text = value["output"]
        self._kept.append(text)
        if not self._as_json:
            console.out(text)
