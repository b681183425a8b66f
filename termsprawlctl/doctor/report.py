"""Run every check around one session_info call, and show them."""

from __future__ import annotations

import os

from ..app.discovery import Unavailable, endpoint_file, read_named
from ..base import console, jsontext
from . import checks, connection, session_files, surroundings


def explain(path: str | None, source: str) -> tuple[dict | None, list[checks.Check]]:
    """(ToolResult of session_info, or None where there is no session; all checks).

    `path` is the session file's, `source` what named it.

    What cannot be looked at because of an earlier failure has no check.
    """
    environment = os.environ
    found = [session_files.check_named(path, source)]
    result, reached = None, False
    sandbox = surroundings.sandbox(environment)
    if path is not None:
        found += session_files.check_session_file(path)
        more, endpoint, port = session_files.check_endpoint_file(endpoint_file(path))
        if os.path.isdir(os.path.dirname(path)):  # else the path is wrong, and the other one with it
            found += more
        if port is not None:
            error = connection.probe(port)
            reached = error is None
            found.append(connection.check_connection(port, error, endpoint_file(path), sandbox))
        result, took_ms = connection.timed_call(path)
        # Without a connection or a file the call says once more what stands above.
        if reached and not any(check.status == checks.FAILED for check in found):
            found += connection.check_answer(result, took_ms, _content(path), endpoint)
    seen = checks.Seen(environment, sandbox, reached=reached)
    return result, found + [check(seen) for check in checks.SURROUNDINGS]


def show(found: list[checks.Check], *, as_json: bool) -> None:
    """Write the checks to standard error."""
    if as_json:
        console.err(jsontext.pretty(checks.as_json(found)))
    else:
        text = checks.as_text(found, colour=console.wants_colour(console.STDERR, os.environ))
        console.paint(text + "\n", console.STDERR)


def _content(path: str) -> dict:
    try:
        return read_named(path, "session file")
    except Unavailable:
        return {}
