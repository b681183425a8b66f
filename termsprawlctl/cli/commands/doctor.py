"""`doctor`: one session_info call, printed; with --explain, all that decides about it."""

from __future__ import annotations

from ..results import print_result, require_session

EPILOG = """\
examples:
  termsprawlctl doctor
  termsprawlctl doctor --explain
  termsprawlctl doctor --explain --json 2>checks.json

Prints session_info, the app's answer about this session. "ok": false and exit status 1
mean that the app could not be reached or refused the call; the error says why. --explain
adds a list of checks on standard error: each ok, a warning or failed, with its cause and fix.
"""


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--explain", action="store_true", help="list on standard error what was checked and found")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON too (the result always is)")
    parser.add_argument("--via", metavar="COMMAND", help="run this there: 'ssh box', 'docker exec -i web'")


def plain(words: list[str]) -> dict[str, object] | None:
    return None if words else {"explain": False, "json": False, "via": None}


def run(args) -> int:
    if args.via is not None:
        return _doctor_there(args)
    if args.explain:
        return _explain(args)
    from ...app.transport import call

    return print_result(call(require_session(args.session), "session_info"))


def _doctor_there(args) -> int:
    from ...base import console
    from ...base.processes import run as run_child
    from ...reach.carrier import TIMEOUT_S
    from ...reach.reaching import send

    options = [f"--{name}" for name in ("explain", "json") if getattr(args, name)]
    done = run_child([*send(args.via), "doctor", *options], timeout_s=TIMEOUT_S, with_its_own=True)
    if done.stderr:
        console.err(done.stderr.decode("utf-8", "replace"))
    console.out(done.stdout.decode("utf-8", "replace"))
    return done.status


def _explain(args) -> int:
    import contextlib
    import os

    from ...agents.runs.scratch import end_abandoned
    from ...app.discovery import ENVIRONMENT_VARIABLE, session_file
    from ...base.errors import USAGE, NoSession
    from ...doctor.report import explain, show
    from ..session import host_session

    end_abandoned()
    path, source = session_file(args.session, os.environ), "--session" if args.session else ENVIRONMENT_VARIABLE
    if path is None and args.session is None:
        with contextlib.suppress(NoSession):
            found = host_session(os.environ)
            path, source = (found.path, "the running host") if found else (None, source)
    result, checks = explain(path, source)
    status = USAGE if result is None else print_result(result)
    show(checks, as_json=args.json)
    if result is None and not args.json:
        require_session(args.session)  # says it in the words that agents know
    return status
