"""`doctor`: one session_info call, printed; with --explain, all that decides about it."""

from __future__ import annotations

from ..results import print_result, require_session

EPILOG = """\
examples:
  termsprawlctl doctor
  termsprawlctl doctor --explain
  termsprawlctl doctor --explain --json 2>checks.json

Prints what the app says of this session. Exit status 1 and "ok": false tell that the
app was not reached or refused; the text says why. --explain adds a list of checks on
standard error, each ok, a warning, or failed with its cause and what mends it.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--explain", action="store_true", help="tell on standard error what was checked and found")
    parser.add_argument("--json", action="store_true", help="the checks as JSON, too (the result always is)")


def run(args) -> int:
    if args.explain:
        return _explain(args)
    from ...app.transport import call

    return print_result(call(require_session(args.session), "session_info"))


def _explain(args) -> int:
    from ...base.errors import USAGE
    from ...doctor.report import explain, show

    result, checks = explain(args.session)
    status = USAGE if result is None else print_result(result)
    show(checks, as_json=args.json)
    if result is None and not args.json:
        require_session(args.session)  # says it in the words that agents know
    return status
