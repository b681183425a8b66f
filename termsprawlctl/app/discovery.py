"""Where the app listens and what opens it: the session file and the endpoint file.

Layout (the app's): `<data>/agent-tools/sessions/<nodeId>.json` holds the token,
`<data>/agent-tools/endpoint.json` the URL. Both are read again for every call, so
that an app that restarted on another port is found by the next call.
"""

from __future__ import annotations

import os
import re

from ..base.files import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ENVIRONMENT_VARIABLE = "TERMSPRAWL_SESSION_FILE"
# The one form the app writes. Anything else (names, other notations of
# 127.0.0.1, user info, control characters, backslashes, another path) might be
# resolved to somewhere else by somebody, and must not see the token. A fragment (#)
# is no part of what is sent.
_ENDPOINT = re.compile(r'http://127\.0\.0\.1:([0-9]{1,5})(/call(?:\?[!"$-\[\]-~]*)?)', re.ASCII)


class Unavailable(Exception):
    """No call can be made; the text is a reason for people and holds no secret."""


class Target:
    """One place to call: port (1-65535) on 127.0.0.1, request target, bearer token.

    `owner` is the user id of the session file's owner, who knows the token anyway; None for
    this user.
    """

    __slots__ = ("endpoint_file", "owner", "port", "request_target", "token")

    def __init__(
        self, port: int, request_target: str, token: str, endpoint_file: str, owner: int | None = None
    ) -> None:
        self.port = port
        self.request_target = request_target
        self.token = token
        self.endpoint_file = endpoint_file
        self.owner = owner


def session_file(option: str | None, environment: Mapping[str, str]) -> str | None:
    """The session file's path: the option wins over the environment; None when neither is set."""
    chosen = environment.get(ENVIRONMENT_VARIABLE) if option is None else option
    return chosen or None


def endpoint_file(session_path: str) -> str:
    """The endpoint file that belongs to a session file: two folders up."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(session_path))), "endpoint.json")


def locate(session_path: str) -> Target:
    """Read both files. Raises Unavailable, and OSError where the session file goes away meanwhile."""
    token = read_named(session_path, "session file").get("token")
    if not isinstance(token, str) or not token:
        raise Unavailable(f"the session file {session_path} holds no token")
    if not re.fullmatch(r"[!-~]+", token):
        raise Unavailable(f"the token in the session file {session_path} cannot be sent in an HTTP header")
    path = endpoint_file(session_path)
    port, request_target = parse_endpoint(read_named(path, "endpoint file").get("url"))
    return Target(port, request_target, token, path, os.stat(session_path).st_uid)


def parse_endpoint(url: object) -> tuple[int, str]:
    """(port, request target) of an endpoint URL. Raises Unavailable unless it is exactly ours."""
    match = _ENDPOINT.fullmatch(url) if isinstance(url, str) else None
    if not match or not 1 <= int(match.group(1)) <= 65535:
        raise Unavailable("Invalid local endpoint")
    return int(match.group(1)), match.group(2)


def read_named(path: str, what: str) -> dict[str, Any]:
    """The JSON object in a small file. Raises Unavailable naming `what` and the path."""
    try:
        return read_object(path)
    except OSError as error:
        raise Unavailable(f"cannot read the {what} {path}: {error.strerror}") from None
    except ValueError as error:
        raise Unavailable(f"the {what} {path} {error}") from None
