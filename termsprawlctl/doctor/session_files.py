"""Are the session file and the endpoint file there, private, and what the app writes?"""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat

from ..app.discovery import ENVIRONMENT_VARIABLE, Unavailable, parse_endpoint, read_named
from ..base.layout import is_id
from .checks import Check, failed, ok, warning

NO_SESSION_FIX = 'run this in a terminal of the app, or: eval "$(termsprawlctl host start)"'
APP_FIX = "start the app, or: termsprawlctl host start"
_TOKEN = re.compile(r"[0-9a-f]{64}")
_STATES = ("connected", "cli-fallback", "needs-setup")


def check_named(path: str | None, source: str) -> Check:
    """Is there a session to look at? `source` is what named it."""
    if path is None:
        cause = f"neither --session nor {ENVIRONMENT_VARIABLE} names one, and no host keeps one for this folder"
        return failed("session", "none", cause, NO_SESSION_FIX)
    if not os.path.isabs(path):
        return warning(
            "session",
            f"{path}, from {source}",
            "a relative path means another file in every folder",
            f"name it as {os.path.abspath(path)}",
        )
    return ok("session", f"{path}, from {source}")


def check_session_file(path: str) -> list[Check]:
    """Found, readable, private, shaped."""
    checks, content = _check_file("session file", path, NO_SESSION_FIX, "the node is closed, or the path is wrong")
    if content is None:
        return checks
    wrong = []
    token = content.get("token")
    if not isinstance(token, str) or not token:
        return [*checks, failed("session shape", "it holds no token", "it is not a session file", NO_SESSION_FIX)]
    if not _TOKEN.fullmatch(token):
        wrong.append("the token is not 64 hexadecimal digits")
    wrong += [f"{key} is missing or no id" for key in ("nodeId", "projectId") if not is_id(content.get(key))]
    status = content.get("status")
    if not isinstance(status, dict) or status.get("state") not in _STATES:
        wrong.append(f"status.state is none of {', '.join(_STATES)}")
    if wrong:
        cause = "another program wrote it, or another version of the app"
        return [*checks, warning("session shape", "; ".join(wrong), cause, "start the node or the host again")]
    return [*checks, ok("session shape", f"node {content['nodeId']} of project {content['projectId']}")]


def check_endpoint_file(path: str) -> tuple[list[Check], dict, int | None]:
    """(checks, what the file holds, the port; None where no call can be made)."""
    checks, content = _check_file("endpoint file", path, APP_FIX, "the app, or its host, is not running")
    if content is None:
        return checks, {}, None
    try:
        port, _ = parse_endpoint(content.get("url"))
    except Unavailable:
        cause = "only http://127.0.0.1:PORT/call is used, so that the token stays on this machine"
        return [*checks, failed("endpoint", "Invalid local endpoint", cause, APP_FIX)], content, None
    return [*checks, ok("endpoint", f"port {port}")], content, port


def _check_file(name: str, path: str, fix: str, absent: str) -> tuple[list[Check], dict | None]:
    try:
        content = read_named(path, name)
    except Unavailable as reason:
        cause, fix = _why_unreadable(path, absent, fix)
        return [failed(name, str(reason), cause, fix)], None
    try:
        status = os.stat(path)
    except OSError as error:
        return [failed(name, f"{path}: {error.strerror}", "it went away just now", "try again")], None
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        cause = "other users of this machine may open it" if mode & 0o007 else "its group may open it"
        return [warning(name, f"{path}, mode {mode:04o}", cause, f"chmod 600 {shlex.quote(path)}")], content
    return [ok(name, f"{path}, mode {mode:04o}")], content


def _why_unreadable(path: str, absent: str, fix: str) -> tuple[str, str]:
    """(cause, fix) for a file that cannot be read or is not what it should be."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return absent, fix
    except PermissionError:
        return "this user may not enter the folder, or a sandbox hides it", "run this as the app's user"
    except (OSError, ValueError):
        return "the path is no usable one", fix
    if not os.access(path, os.R_OK):
        return f"it belongs to another user ({os.strerror(errno.EACCES)})", "run this as the app's user"
    return "it is not what the app writes", fix
