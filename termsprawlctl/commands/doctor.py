"""`doctor`: one session_info call, printed."""

from __future__ import annotations

from ..session.report import print_result, require_session

EPILOG = """\
example:
  termsprawlctl doctor

Prints what the app says of this session. Exit status 1 and "ok": false tell that the
app was not reached or refused; the text says why.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG


def run(args) -> int:
    from ..session.transport import call

    return print_result(call(require_session(args.session), "session_info"))
