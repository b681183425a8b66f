"""One call over the socket: connect, one line out, one line in. Never a second try."""

from __future__ import annotations

import socket
import time

from ..base.errors import UsageError
from ..base.waiting import Deadline
from ..mcp.provider import Context
from . import endpoint, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Union

    Request = Union[wire.GetViewContext, wire.SelectSession]

DEADLINE_S = 4.5
# The answer is whole with its line end; what follows would be a second line, for which
# the server's closing is waited for. One that never closes costs no more than this.
CLOSING_S = 0.5
RECEIVE_BYTES = 4096


def call(
    path: str, request: Request, context: Context | None = None, clock: Callable[[], float] = time.monotonic
) -> dict:
    """Send `request` to the endpoint at `path`; returns the answer, a rejection included.

    `context` may cancel the call from another thread. Raises nothing: what goes wrong is
    told as a rejection.
    """
    context = context or Context()
    try:
        target = endpoint.load(path)
    except UsageError:
        return wire.rejected(wire.TARGET_UNAVAILABLE)
    members = target.members
    if isinstance(request, wire.SelectSession) and not members.is_target_of(request):
        return wire.rejected(wire.STALE_TARGET)
    try:
        frame = wire.encode_request(wire.Frame(members.token, request))
    except wire.InvalidFrame:
        return wire.rejected(wire.INVALID_REQUEST)  # longer than a frame may be
    answer = _exchange(target, frame, request, context, Deadline(DEADLINE_S, clock))
    view = answer.get("context")
    if view and not members.is_target_of(view):
        return wire.rejected(wire.STALE_TARGET)
    return answer


def _exchange(target: endpoint.Endpoint, frame: bytes, request: Request, context: Context, deadline: Deadline) -> dict:
    if context.cancelled.is_set():
        return wire.rejected(wire.CANCELLED)
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:  # no descriptor is free
        return wire.rejected(wire.TARGET_UNAVAILABLE)
    with sock:
        context.on_cancel(lambda: _shut(sock))
        try:
            return _talk(sock, target.socket_path, frame, request, context, deadline)
        finally:
            context.on_cancel(None)


def _talk(sock: socket.socket, path: str, frame: bytes, request: Request, context: Context, deadline: Deadline) -> dict:
    try:
        sock.settimeout(deadline.left_s())
        sock.connect(path)
        # A cancellation while connecting found nothing to shut yet.
        if context.cancelled.is_set():
            return wire.rejected(wire.TARGET_UNAVAILABLE)
        sock.settimeout(deadline.left_s())
        sock.sendall(frame)
    except OSError:
        # Not all of the frame left, so the server has no line to act on.
        return wire.rejected(wire.TARGET_UNAVAILABLE)
    line = _receive(sock, deadline)
    if line is None:
        return wire.rejected(wire.TIMEOUT_UNKNOWN)
    try:
        return wire.parse_answer(line, request)
    except wire.InvalidFrame:
        return wire.rejected(wire.INVALID_REQUEST)


def _receive(sock: socket.socket, deadline: Deadline) -> bytes | None:
    """All that the server sent until it closed, or went over the cap; None where that is no whole line."""
    received = b""
    while len(received) <= wire.MAX_FRAME_BYTES:
        whole = received.endswith(b"\n")
        try:
            left_s = deadline.left_s()
            sock.settimeout(min(left_s, CLOSING_S) if whole else left_s)
            chunk = sock.recv(RECEIVE_BYTES)
        except OSError:
            # Time-outs, and a reset by a server that closed with some of our bytes unread.
            return received if whole else None
        if not chunk:
            return received if b"\n" in received else None
        received += chunk
    return received


def _shut(sock: socket.socket) -> None:
    # Wakes the thread that waits in this socket; unlike close() it leaves the descriptor's number taken.
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
