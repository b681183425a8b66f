"""Where the app listens and what opens it: the session file and the endpoint file.

Layout (the app's): `<data>/agent-tools/sessions/<nodeId>.json` holds the token,
`<data>/agent-tools/endpoint.json` the URL. Both are read again for every call, so
that an app that restarted on another port is found by the next call.
"""

from __future__ import annotations

import os

from ..base.files import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ENVIRONMENT_VARIABLE = "TERMSPRAWL_SESSION_FILE"
# The one form the app writes, with an optional query. Anything else (names, other notations of
# 127.0.0.1, user info, control characters, backslashes, another path) might be
# resolved to somewhere else by somebody, and must not see the token. A fragment (#)
# is no part of what is sent.
_ORIGIN, _PATH = "http://127.0.0.1:", "/call"
_NOT_IN_A_QUERY = "#\\"


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
    if not _is_visible(token):
        raise Unavailable(f"the token in the session file {session_path} cannot be sent in an HTTP header")
    path = endpoint_file(session_path)
    port, request_target = parse_endpoint(read_named(path, "endpoint file").get("url"))
    return Target(port, request_target, token, path, os.stat(session_path).st_uid)


def parse_endpoint(url: object) -> tuple[int, str]:
    """(port, request target) of an endpoint URL. Raises Unavailable unless it is exactly ours."""
    if isinstance(url, str) and url.startswith(_ORIGIN) and _is_visible(url):
        port, slash, rest = url[len(_ORIGIN) :].partition("/")
        path, _, query = f"{slash}{rest}".partition("?")
        is_ours = path == _PATH and not any(one in query for one in _NOT_IN_A_QUERY)
        if is_ours and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535:
            return int(port), slash + rest
    raise Unavailable("Invalid local endpoint")


def _is_visible(text: str) -> bool:
    """Whether it is ASCII without blanks and control characters."""
    return all("!" <= character <= "~" for character in text)


def read_named(path: str, what: str) -> dict[str, Any]:
    """The JSON object in a small file. Raises Unavailable naming `what` and the path."""
    try:
        return read_object(path)
    except OSError as error:
        raise Unavailable(f"cannot read the {what} {path}: {error.strerror}") from None
    except ValueError as error:
        raise Unavailable(f"the {what} {path} {error}") from None
