"""What `doctor` and `call` share: the session to use and the form of a printed result."""

from __future__ import annotations

import os

from ..app.discovery import session_file
from ..base import console, jsontext
from ..base.errors import FAILED, OK, CtlError, NoSession, UsageError

_MAX_DIGITS = 9  # of an item's number; int() refuses thousands


def require_session(option: str | None) -> str:
    """The session file's path: --session, the variable, or what a running host keeps for the project here.

    Raises NoSession; whether the file exists is not looked at.
    """
    path = session_file(option, os.environ)
    if path is None:
        from .session import START_HOST, running_host_session

        if option is not None:
            raise NoSession(START_HOST)
        path = running_host_session()
    return path


def ask(session: str, operation: str, **args: object) -> dict:
    """The value of an operation. Raises CtlError with the host's own words."""
    from ..app.transport import call

    result = call(session, operation, args)
    if not result["ok"]:
        raise CtlError(str(result["error"]), "See `termsprawlctl doctor --explain`.")
    return result["value"]


def print_result(result: dict) -> int:
    """Print a ToolResult as JSON with 2-space indent; returns the exit status."""
    console.out(jsontext.pretty(result) + "\n")
    return exit_status(result)


def exit_status(result: dict) -> int:
    """0 for success, 1 when the operation was refused, failed, or was not reached."""
    return OK if result["ok"] else FAILED


def deliver(field: str | None, save: str | None):
    """What to do with a ToolResult: a function from it to the exit status.

    Made before the call, so that a picture is not asked for when there is no place
    for it. Raises UsageError.
    """
    if save is not None:
        directory = os.path.dirname(os.path.abspath(save))
        if not save or os.path.isdir(save) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
            raise UsageError(f"cannot write {save or 'a file without a name'}.", "Name a file in a writable directory.")

    def delivery(result: dict) -> int:
        status = OK
        if save is not None:
            result, status = _save_image(result, save)
        shown = print_result(result) if field is None else _print_field(result, field)
        return status or shown

    return delivery


def _print_field(result: dict, field: str) -> int:
    value: object = result
    for position, name in enumerate(field.split(".")):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _is_number(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            console.err(_missing_field(result, field, value, position))
            return FAILED
    console.out((value if isinstance(value, str) else jsontext.compact(value)) + "\n")
    return exit_status(result)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= _MAX_DIGITS


def _missing_field(result: dict, field: str, value: object, position: int) -> str:
    if not result["ok"]:
        return f"termsprawlctl: {result['error']}"
    where = ".".join(field.split(".")[:position]) or "the result"
    if isinstance(value, dict):
        there = "has " + ", ".join(value) if value else "is empty"
    elif isinstance(value, list):
        there = f"is a list of {len(value)}"
    else:
        there = "has no fields"
    return f"termsprawlctl: the result has no {field}: {where} {there}."


def _save_image(result: dict, path: str) -> tuple[dict, int]:
    """(result with the picture replaced by where it went, exit status); unchanged when that failed."""
    import base64
    import binascii

    from ..base.files import write_output

    value = result.get("value")
    image = value.get("image") if isinstance(value, dict) else None
    if not result["ok"]:
        return result, FAILED
    if not isinstance(image, str):
        console.err("termsprawlctl: the result holds no value.image; nothing was saved.")
        return result, FAILED
    try:
        data = base64.b64decode(image, validate=True)
        write_output(path, data)
    except (binascii.Error, ValueError):
        console.err("termsprawlctl: value.image is not base64; nothing was saved.")
        return result, FAILED
    except OSError as error:
        console.err(f"termsprawlctl: cannot write {path}: {error.strerror}. The result below still holds the picture.")
        return result, FAILED
    rest = {name: item for name, item in result["value"].items() if name != "image"}
    saved = {"saved": os.path.abspath(path), "bytes": len(data)}
    return {**result, "value": {**rest, **saved}}, OK
