"""What a request asks of the host, and the answer: no socket is touched here.

Rules, in this order: a clear head (400, 414, 431, 505), Origin (403), method and path
(403, 404), size, token (401), JSON, the operation table, its turn (at most 15 s),
the token once more, the operation. Errors of tools are 400, success is 200; the body is
always a ToolResult.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...app import http1
from ...base import jsontext
from ...base.errors import CtlError
from ...base.files import Explained
from ...operations.schema import InvalidCall, validate
from .. import operations
from ..operations.binding import Encoded
from ..operations.ordering import ExpiredError, InTurn, Later, terminal_turn, turn_of
from ..registry.sessions import Session
from . import a2a
from .events import note_call

# 64,000 characters of any script, each written as two JSON escapes; the app takes 128 KiB.
MAX_BODY_BYTES = 1 << 20
MAX_CHUNKED_BYTES = 2 * MAX_BODY_BYTES  # with what stands around the chunks
REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
UNSUPPORTED = "Unsupported request"
TOO_LARGE = "Request too large"
EXPIRED = "Queued operation expired before execution; no change applied"
REVOKED = "Unknown or revoked session"
NO_THREAD = "The host has no thread left for this call; nothing was done. Try again once others have ended."
# Answered from memory or from one file, without a turn and without tmux: they need no thread.
QUICK = frozenset({"session_info", "guide_read", "canvas_list"})


# Takes what is called once the work has begun and only waits; returns the bytes to send.
Answer = Callable[[Callable[[], None]], bytes]


class Refused(Exception):
    """A request that is answered with a status of its own; the text is the answer's error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Admitted:
    """A head that is served: whose it is, and how many bytes of body follow; None: they come in chunks."""

    token: str
    session: Session
    length: int | None
    wants_continue: bool
    wants_processing: bool  # to hear once the call only waits
    a2a: a2a.Asked | None  # what it asks of that facade; None for POST /call


def admit(host: Any, head: http1.RequestHead, port: int | None) -> Admitted:
    """Check a request's head; `port` is the one that it came to, None for the socket. Raises Refused."""
    port = _forwarded_port(head) if port is None else port
    facade = a2a.asked(head.method, head.path, port)
    if "origin" in head or (head.method != "POST" and not facade) or not _is_for_us(head, port):
        raise Refused(403, UNSUPPORTED)
    if head.path != "/call" and not facade:
        raise Refused(404, UNSUPPORTED)
    try:
        length = head.length() or (None if head.is_chunked() else 0)
    except http1.BadMessage as bad:
        raise Refused(bad.status, UNSUPPORTED) from None
    if length is not None and length > MAX_BODY_BYTES:
        raise Refused(400, TOO_LARGE)
    token = _token(head)
    session = host.sessions.find(token)
    if session is None:
        raise Refused(401, REVOKED)
    prefer, processing = http1.PREFERS_PROCESSING
    return Admitted(
        token=token,
        session=session,
        length=length,
        wants_continue=head.first("expect").lower() == "100-continue",
        wants_processing=head.first(prefer).lower() == processing,
        a2a=facade,
    )


def body_of(received: bytes, length: int | None) -> tuple[bytes, bytes] | None:
    """The body that has been received, and what came behind it; None while a part is missing. Raises Refused."""
    if length is not None:
        return (received[:length], received[length:]) if len(received) >= length else None
    if len(received) > MAX_CHUNKED_BYTES:
        raise Refused(400, TOO_LARGE)
    if b"\n\r\n" not in received and b"\n\n" not in received:
        return None  # without a look at each chunk, every time that one comes
    stream = io.BytesIO(received)
    try:
        return http1.read_chunks(stream, MAX_BODY_BYTES), received[stream.tell() :]
    except http1.CutShort:
        return None
    except http1.TooLarge:
        raise Refused(400, TOO_LARGE) from None
    except http1.BadMessage as bad:
        raise Refused(bad.status, UNSUPPORTED) from None


def request_of(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises Refused."""
    try:
        request = jsontext.loads(body)
    except ValueError as error:
        raise Refused(400, f"The request is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise Refused(400, "The request is not a JSON object")
    return request


def is_quick(request: dict[str, Any]) -> bool:
    """Whether the answer waits for nothing."""
    operation = request.get("operation")
    return isinstance(operation, str) and operation in QUICK


def answer(host: Any, admitted: Admitted, request: dict[str, Any], begun: Callable[[], None]) -> bytes:
    """The answer to a request; waits as long as it takes. `begun()` is called once that is all that it does."""
    return _answer(host, lambda: _noted(host, admitted, request, _turns(host, admitted), begun))


def a2a_answer(host: Any, admitted: Admitted, facade: a2a.Asked, body: bytes, begun: Callable[[], None]) -> bytes:
    """The answer of the A2A facade; as answer()."""

    def call(operation: str, args: dict[str, Any]) -> object:
        request = {"operation": operation, "args": args}
        return _noted(host, admitted, request, _turns(host, admitted), begun)

    return _answered(host, lambda: _encoded(*a2a.respond(facade, admitted.session.node_id, body, call)))


def _turns(host: Any, admitted: Admitted) -> Callable[[str | None, Callable[[], object]], object]:
    """What runs an action once its turn has come, if it has to wait for one."""

    def in_turn(key: str | None, action: Callable[[], object]) -> object:
        if key is None:
            return action()
        with host.turns.turn(key):
            if host.sessions.find(admitted.token) is None:
                raise Refused(401, REVOKED)
            return action()

    return in_turn


def refusal(status: int, text: str) -> bytes:
    """A whole answer that says no."""
    return _encoded(status, {"ok": False, "error": text})


def _answer(host: Any, work: Callable[[], object]) -> bytes:
    return _answered(host, lambda: _success(work()))


def _answered(host: Any, work: Callable[[], bytes]) -> bytes:
    try:
        return work()
    except Refused as no:
        return refusal(no.status, str(no))
    except (InvalidCall, CtlError) as no:
        return refusal(400, str(no))
    except ExpiredError:
        return refusal(400, EXPIRED)
    except Exception:  # noqa: BLE001 - one call's fault must not end the host
        host.log_fault()
        return refusal(500, "Internal error of the host; its log tells more")


def _noted(
    host: Any, admitted: Admitted, request: dict[str, Any], in_turn: Callable[..., object], begun: Callable[[], None]
) -> object:
    """Run a request's operation, and note it in the audit log however it ends."""
    began_s, value = time.monotonic(), None
    try:
        value = _perform(host, admitted.session, request, in_turn, begun)
        return value
    finally:
        note_call(host, admitted.session, request, value, round(1000 * (time.monotonic() - began_s)))
        _follow_output(host, request, value)


def _follow_output(host: Any, request: dict[str, Any], value: object) -> None:
    """Attach to a new terminal at once: the first output is soonest missed, and the monitor looks only now and then."""
    if request.get("operation") in ("terminal_open", "agent_launch") and isinstance(value, dict):
        with contextlib.suppress(CtlError):
            host.streams.get(value["nodeId"])


def _perform(
    host: Any, session: Session, request: dict[str, Any], in_turn: Callable[..., object], begun: Callable[[], None]
) -> object:
    args: Any = request.get("args")
    operation = validate(request.get("operation"), args)
    key = turn_of(operation, session.project_id, args)
    # A full disk or a directory that is gone is the user's to fix, not a fault of the host.
    with Explained(f"{operation.name} failed"):
        value = in_turn(key, lambda: operations.run(host, session, operation.name, args))
        while True:
            # What takes long must not hold up other operations.
            if isinstance(value, Later):
                begun()
                value = value.finish()
            elif isinstance(value, InTurn):
                own = key if value.node_id is None else terminal_turn(session.project_id, value.node_id)
                value = in_turn(own, value.run)
            else:
                return value


def _is_for_us(head: http1.RequestHead, port: int) -> bool:
    """Whether a request names this machine, if any: a page whose name leads here (DNS rebinding) names its own."""
    for host in head.all("host"):
        name, colon, given = host.partition(":")
        if name not in ("127.0.0.1", "localhost") or (colon and given != str(port)):
            return False
    return True


def _forwarded_port(head: http1.RequestHead) -> int:
    """The port of the caller's machine that leads to our socket: who got through to it is this user."""
    port = head.first("host").rpartition(":")[2]
    return int(port) if port.isdecimal() and port.isascii() else 0


def _token(head: http1.RequestHead) -> str:
    kind, _, token = head.first("authorization").partition(" ")
    return token.strip(" ") if kind.lower() == "bearer" else ""


def _success(value: object) -> bytes:
    text = value.text if isinstance(value, Encoded) else jsontext.encode(jsontext.compact(value))
    return _with_head(200, b'{"ok":true,"value":%b}' % text)


def _encoded(status: int, result: dict[str, object]) -> bytes:
    return _with_head(status, jsontext.encode(jsontext.compact(result)))


def _with_head(status: int, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
