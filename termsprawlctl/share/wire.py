"""Frames and shapes of one request over the socket: pure, for both sides.

    client  {"token": T, "request": R}\\n        server  {"status": ...}\\n, then it closes

Both lines are at most MAX_FRAME_BYTES long, their end included.
"""

from __future__ import annotations

import re

from ..base import jsontext

MAX_FRAME_BYTES = 16_384

INVALID_REQUEST = "invalid_request"
UNAUTHORIZED = "unauthorized"
STALE_TARGET = "stale_target"
STALE_REVISION = "stale_revision"
NOT_READY = "not_ready"
USER_ACTIVE = "user_active"
BUSY = "busy"
REQUEST_CONFLICT = "request_conflict"
REQUEST_LIMIT = "request_limit"
TARGET_UNAVAILABLE = "target_unavailable"
CANCELLED = "cancelled"
TIMEOUT_UNKNOWN = "timeout_unknown"
REVOKED = "revoked"
INTERNAL_ERROR = "internal_error"
DEADLINE_EXCEEDED = "deadline_exceeded"
OUTCOME_UNKNOWN = "outcome_unknown"
CODES = (
    INVALID_REQUEST,
    UNAUTHORIZED,
    STALE_TARGET,
    STALE_REVISION,
    NOT_READY,
    USER_ACTIVE,
    BUSY,
    REQUEST_CONFLICT,
    REQUEST_LIMIT,
    TARGET_UNAVAILABLE,
    CANCELLED,
    TIMEOUT_UNKNOWN,
    REVOKED,
    INTERNAL_ERROR,
    DEADLINE_EXCEEDED,
    OUTCOME_UNKNOWN,
)

CONTEXT = "context"
APPLIED = "applied"
REJECTED = "rejected"
STATUSES = (CONTEXT, APPLIED, REJECTED)

HOME = "home"
SESSION = "session"
ROUTES = (HOME, SESSION)

GET_VIEW_CONTEXT = "get_view_context"
SELECT_SESSION = "select_session"

# RFC 9562: the versions that there are, and their variant.
UUID_PATTERN = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
SESSION_ID_PATTERN = "^ses_[0-9A-Za-z_-]+$"
_UUID = re.compile(UUID_PATTERN[1:-1], re.ASCII)
_SESSION_ID = re.compile(SESSION_ID_PATTERN[1:-1], re.ASCII)
_TOKEN = re.compile("[0-9a-f]{64}", re.ASCII)


class InvalidFrame(ValueError):
    """A line that is not one frame of the right shape. Its text never quotes the line, which may hold the token."""


class GetViewContext:
    """A request to read the view."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GetViewContext)

    def __hash__(self) -> int:
        return hash(GetViewContext)


class SelectSession:
    """A request to show a session: `instance_id` and `generation` of the target, and the revision that the caller saw.

    No dataclass: the adapter starts without that module.
    """

    __slots__ = ("expected_revision", "generation", "instance_id", "request_id", "session_id")

    def __init__(
        self, *, request_id: str, instance_id: str, generation: str, expected_revision: int, session_id: str
    ) -> None:
        self.request_id = request_id
        self.instance_id = instance_id
        self.generation = generation
        self.expected_revision = expected_revision
        self.session_id = session_id

    def members(self) -> dict[str, object]:
        """As on the wire."""
        return {
            "requestId": self.request_id,
            "instanceId": self.instance_id,
            "generation": self.generation,
            "expectedRevision": self.expected_revision,
            "sessionId": self.session_id,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SelectSession) and self.members() == other.members()

    def __hash__(self) -> int:
        return hash(tuple(self.members().values()))


def is_uuid(value: object) -> bool:
    """Whether value is the text of a uuid."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def is_session_id(value: object) -> bool:
    """Whether value can be a session id."""
    return isinstance(value, str) and _SESSION_ID.fullmatch(value) is not None


def is_revision(value: object) -> bool:
    """Whether value is a whole number of at least 0. In JSON 3.0 is one, too; True is no number."""
    if isinstance(value, float):
        return value.is_integer() and value >= 0
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_token(value: object) -> bool:
    """Whether value has the shape of a token."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


# Member on the wire: (check, what it has to be).
_SELECT_MEMBERS = {
    "requestId": (is_uuid, "a uuid"),
    "instanceId": (is_uuid, "a uuid, from a view context"),
    "generation": (is_uuid, "a uuid, from a view context"),
    "expectedRevision": (is_revision, "a whole number of at least 0, from a view context"),
    "sessionId": (is_session_id, "a session id (ses_...)"),
}
_VIEW_MEMBERS = {"instanceId", "generation", "revision", "route", "ready", "blocked"}


def select_request(arguments: object) -> SelectSession:
    """The request out of an object with exactly its five members.

    Raises InvalidFrame saying which member is wrong and what it has to be.
    """
    if not isinstance(arguments, dict):
        raise InvalidFrame("the arguments have to be an object")
    unknown = [name for name in arguments if name not in _SELECT_MEMBERS]
    if unknown:
        raise InvalidFrame(f"unknown member {unknown[0][:40]!a}; known: {', '.join(_SELECT_MEMBERS)}")
    for name, (check, wanted) in _SELECT_MEMBERS.items():
        if name not in arguments:
            raise InvalidFrame(f"{name} is missing; it is {wanted}")
        if not check(arguments[name]):
            raise InvalidFrame(f"{name} has to be {wanted}")
    return SelectSession(
        request_id=arguments["requestId"],
        instance_id=arguments["instanceId"],
        generation=arguments["generation"],
        expected_revision=int(arguments["expectedRevision"]),
        session_id=arguments["sessionId"],
    )


class Frame:
    """What a caller sends: the token that it has, and its request."""

    __slots__ = ("request", "token")

    def __init__(self, token: str, request: GetViewContext | SelectSession) -> None:
        self.token = token
        self.request = request


def parse_request(line: bytes) -> Frame:
    """The frame out of one whole line. Raises InvalidFrame."""
    if len(line) > MAX_FRAME_BYTES:
        raise InvalidFrame("the frame is too long")
    frame = _object(line)
    if set(frame) != {"token", "request"} or not is_token(frame["token"]):
        raise InvalidFrame("the frame is not exactly a token and a request")
    request = frame["request"]
    if not isinstance(request, dict):
        raise InvalidFrame("the request is not an object")
    arguments = dict(request)
    operation = arguments.pop("operation", None)
    if operation == GET_VIEW_CONTEXT and not arguments:
        return Frame(frame["token"], GetViewContext())
    if operation == SELECT_SESSION:
        return Frame(frame["token"], select_request(arguments))
    raise InvalidFrame("the operation is unknown or has members that it does not know")


def encode_request(frame: Frame) -> bytes:
    """A frame as the line that goes to the server. Raises InvalidFrame when it is too long."""
    request = frame.request
    if isinstance(request, SelectSession):
        members = {"operation": SELECT_SESSION, **request.members()}
    else:
        members = {"operation": GET_VIEW_CONTEXT}
    return encode({"token": frame.token, "request": members})


def encode(value: dict) -> bytes:
    """One JSON line. Raises InvalidFrame when it is longer than a frame may be."""
    line = jsontext.encode(jsontext.compact(value)) + b"\n"
    if len(line) > MAX_FRAME_BYTES:
        raise InvalidFrame("the frame is too long")
    return line


def parse_answer(line: bytes, request: GetViewContext | SelectSession) -> dict:
    """The server's answer to `request` out of one whole line. Raises InvalidFrame."""
    if len(line) > MAX_FRAME_BYTES or not line.endswith(b"\n") or b"\n" in line[:-1]:
        raise InvalidFrame("the answer is not one line within the cap")
    answer = _object(line)
    status = answer.get("status")
    if status == REJECTED:
        if set(answer) != {"status", "code"} or answer["code"] not in CODES:
            raise InvalidFrame("the answer's code is unknown")
    elif status != (APPLIED if isinstance(request, SelectSession) else CONTEXT):
        raise InvalidFrame("the answer's status does not fit the request")
    elif set(answer) != {"status", "context"} or not is_view(answer["context"]):
        raise InvalidFrame("the answer's context has not the shape of a view")
    return answer


def is_view(value: object) -> bool:
    """Whether value has exactly the shape of a view context."""
    if not isinstance(value, dict) or set(value) - {"sessionId"} != _VIEW_MEMBERS:
        return False
    return (
        is_uuid(value["instanceId"])
        and is_uuid(value["generation"])
        and is_revision(value["revision"])
        and isinstance(value["route"], str)
        and value["route"] in ROUTES
        and isinstance(value["ready"], bool)
        and isinstance(value["blocked"], bool)
        and is_session_id(value.get("sessionId", "ses_none"))
    )


def rejected(code: str) -> dict:
    """The answer that says no."""
    return {"status": REJECTED, "code": code}


def _object(line: bytes) -> dict:
    try:
        value = jsontext.loads(line)
    except ValueError as error:
        raise InvalidFrame(str(error)) from None
    if not isinstance(value, dict):
        raise InvalidFrame("not a JSON object")
    return value
