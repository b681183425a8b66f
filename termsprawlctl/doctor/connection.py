"""Does the app listen, who answers, how fast, and does it know this session?"""

from __future__ import annotations

import errno
import os
import socket
import time

from ..app import transport
from .checks import Check, failed, ok, warning
from .session_files import APP_FIX, NO_SESSION_FIX

PROBE_S = 2.0  # loopback answers at once, or not at all
SLOW_MS = 1000.0  # a call that only reads takes a few milliseconds
REVOKED = "Unknown or revoked session"
_BLOCKED = (errno.EPERM, errno.EACCES, errno.ENETUNREACH)


def probe(port: int) -> OSError | None:
    """Open and close a connection to a port of 127.0.0.1; the error where that fails."""
    try:
        socket.create_connection((transport.HOST, port), timeout=PROBE_S).close()
    except OSError as error:
        return error
    return None


def check_connection(port: int, error: OSError | None, endpoint_file: str, sandbox: str) -> Check:
    """`error` is probe()'s, `sandbox` what is known of one ("" for nothing)."""
    where = f"{transport.HOST}:{port}"
    if error is None:
        return ok("connection", f"{where} accepts connections")
    evidence = f"{where}: {os.strerror(error.errno) if error.errno else error}"
    if error.errno in _BLOCKED:
        cause = f"a sandbox blocks loopback{': ' + sandbox if sandbox else ''}; the app may well be running"
        return failed("connection", evidence, cause, "run this outside the sandbox, or allow it loopback")
    if error.errno == errno.ECONNREFUSED:
        cause = f"nobody listens there any more: {endpoint_file} is of an app or host that ended without cleaning up"
        if sandbox:
            cause += f", or this process has a loopback of its own ({sandbox})"
        return failed("connection", evidence, cause, APP_FIX)
    return failed("connection", evidence, "this machine's loopback network does not work as usual", "ping 127.0.0.1")


def timed_call(session_path: str) -> tuple[dict, float]:
    """(ToolResult of session_info, milliseconds that it took)."""
    start = time.monotonic()
    result = transport.call(session_path, "session_info")
    return result, (time.monotonic() - start) * 1000


def check_answer(result: dict, took_ms: float, session: dict, endpoint: dict) -> list[Check]:
    """What the answer tells: `session` and `endpoint` are the contents of the files."""
    if not result["ok"]:
        return [_check_refusal(str(result["error"]))]
    value = result.get("value")
    value = value if isinstance(value, dict) else {}
    return [
        ok("token", "accepted"),
        _check_instance(value, endpoint),
        _check_speed(took_ms),
        _check_node(value, session),
        _check_integration(value, session),
    ]


def _check_refusal(error: str) -> Check:
    if error == REVOKED:
        return failed("token", error, "the node was closed, or the file is of another app", NO_SESSION_FIX)
    if error.startswith(transport.UNAVAILABLE):
        cause = "something else than the app listens there, or the app hangs"
        return failed("answer", error, cause, "start the app or host again")
    return failed("answer", error, "the app refuses session_info", "see the app's own log")


def _check_instance(value: dict, endpoint: dict) -> Check:
    mine, theirs = endpoint.get("instanceId"), value.get("instanceId")
    app = str(value.get("appVersion") or "the app, which does not tell its version")
    if mine and theirs and mine != theirs:
        return warning(
            "app",
            f"{app}, instance {theirs}; the endpoint file names {mine}",
            "the app restarted just now, or two run on one data directory",
            "try again; then end one of them",
        )
    return ok("app", f"{app}, instance {theirs or mine or 'unknown'}")


def _check_speed(took_ms: float) -> Check:
    evidence = f"{took_ms:.0f} ms"
    if took_ms > SLOW_MS:
        return warning("speed", evidence, "the app or the whole machine is busy", "look at the load, for example: top")
    return ok("speed", evidence)


def _check_node(value: dict, session: dict) -> Check:
    mine, theirs = session.get("nodeId"), value.get("nodeId")
    if theirs is not None and mine != theirs:
        return warning(
            "node", f"{theirs}; the session file names {mine}", "the file was edited or copied", NO_SESSION_FIX
        )
    return ok("node", f"{theirs or mine} of project {value.get('projectId') or session.get('projectId')}")


def _check_integration(value: dict, session: dict) -> Check:
    status = value.get("status") if isinstance(value.get("status"), dict) else session.get("status")
    status = status if isinstance(status, dict) else {}
    state, adapter = status.get("state"), status.get("adapter")
    evidence = f"{state or 'unknown'}{f', {adapter}' if adapter else ''}"
    reason = str(status.get("reason") or "")
    if state in ("connected", "cli-fallback"):
        return ok("integration", evidence + (f": {reason}" if reason else ""))
    return warning(
        "integration",
        evidence,
        reason or "the agent has not connected over MCP yet",
        "termsprawlctl install CLIENT --write, or let the agent use `termsprawlctl call`",
    )
