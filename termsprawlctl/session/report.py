"""What `doctor` and `call` share: the session to use and the form of a printed result."""

from __future__ import annotations

import os

from .. import console, jsontext
from ..errors import FAILED, OK, NoSession
from .discovery import session_file


def require_session(option: str | None) -> str:
    """The session file's path. Raises NoSession; whether the file exists is not looked at."""
    path = session_file(option, os.environ)
    if path is None:
        raise NoSession
    return path


def print_result(result: dict) -> int:
    """Print a ToolResult as JSON with 2-space indent; returns the exit status."""
    console.out(jsontext.pretty(result) + "\n")
    return exit_status(result)


def exit_status(result: dict) -> int:
    """0 when the tool said yes, 1 when it said no or was not reached."""
    return OK if result["ok"] else FAILED
