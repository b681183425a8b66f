"""The loopback HTTP server: POST /call, one request per connection.

Rules, in this order: a clear head (400, 414, 431, 505), Origin (403), method and path
(403, 404), size, token (401), JSON, the operation table, the project's turn (at most 15 s),
the token once more, the operation. Errors of tools are 400, success is 200; the body is
always a ToolResult.
"""

from __future__ import annotations

import contextlib
import errno
import io
import resource
import socket
import socketserver
import threading
import time

from ...app import http1
from ...base import jsontext
from ...base.errors import CtlError
from ...base.files import Explained
from ...base.waiting import Deadline, DeadlineReader
from ...operations.schema import InvalidCall, validate
from .. import operations
from ..operations.ordering import ExpiredError, InTurn, Later
from .events import note_call

MAX_BODY_BYTES = 128 << 10
# From the first byte to the last of a request; a call is one small local write.
REQUEST_DEADLINE_S = 10.0
# How long a refused client may go on sending before it is cut off, so that it can
# still read the answer.
LINGER_S = 1.0
MAX_CONNECTIONS = 256
# Of the descriptors that this process may have: for everything but connections and the
# terminals' pipes, which share the rest by halves.
RESERVED_DESCRIPTORS = 48
MIN_CONNECTIONS = 8
# Of many calls at once the next waits for a place; who is older than that and showed no token makes room.
PLACE_WAIT_S = 2.0
PROOF_WAIT_S = 0.1
# What accept() says when something has run out: the connection waits, and asking at once keeps a core busy.
_SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
SHORTAGE_PAUSE_S = 0.1
_NEVER = float("inf")
REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    505: "HTTP Version Not Supported",
}
UNSUPPORTED = "Unsupported request"
EXPIRED = "Queued operation expired before execution; no change applied"
REVOKED = "Unknown or revoked session"


class Refused(Exception):
    """A request that is answered with a status of its own; the text is the answer's error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ClientGone(OSError):
    """The client hung up, or was too slow; nobody is left to tell."""


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves one host on 127.0.0.1 at a port of the system's choice."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.host = host
        # Every open connection, oldest first: since when; never once it has shown a valid token.
        self._connections: dict[socket.socket, float] = {}
        self._places = threading.Condition()
        self._idle = threading.Condition()
        self._running = 0
        self._max_connections = connections_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/call"

    def get_request(self):
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _SHORTAGE:
                with self._places:
                    self._drop_stranger(0.0)
                time.sleep(SHORTAGE_PAUSE_S)
            raise

    def process_request(self, request, client_address) -> None:
        try:
            if self._admit(request):
                super().process_request(request, client_address)
                return
        except RuntimeError:  # no thread is to be had; the client sees that nothing was answered
            self._leave(request)
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address) -> None:
        with self._idle:
            self._running += 1
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def prove(self, request) -> None:
        """The connection has shown a valid token: it keeps its place. Raises ClientGone when it lost it already."""
        with self._places:
            if request not in self._connections:
                raise ClientGone
            self._connections[request] = _NEVER

    def _admit(self, request) -> bool:
        """A place for a connection: one that gets free in time, or that of the oldest one without a valid token.

        So whoever opens connections and says nothing keeps nobody out who has a token.
        """
        end_s = time.monotonic() + PLACE_WAIT_S
        with self._places:
            while len(self._connections) >= self._max_connections and not self._drop_stranger(PROOF_WAIT_S):
                if time.monotonic() > end_s:
                    return False
                self._places.wait(PROOF_WAIT_S / 2)
            self._connections[request] = time.monotonic()
            return True

    def _leave(self, request) -> None:
        with self._places:
            self._connections.pop(request, None)
            self._places.notify()

    def _drop_stranger(self, age_s: float) -> bool:
        """End the oldest connection without a valid token if it is that old; False when there is none."""
        latest_s = time.monotonic() - age_s
        stranger = next((one for one, since_s in self._connections.items() if since_s <= latest_s), None)
        if stranger is None:
            return False
        del self._connections[stranger]
        with contextlib.suppress(OSError):  # it may have ended by now
            stranger.shutdown(socket.SHUT_RDWR)  # its thread reads the end and closes it
        return True

    def handle_error(self, request, client_address) -> None:  # noqa: ARG002 - socketserver's signature
        self.host.log_fault()

    def drain(self, timeout_s: float) -> bool:
        """Wait until no request runs; False when the time is up first."""
        with self._idle:
            return self._idle.wait_for(lambda: self._running == 0, timeout_s)


def connections_within(descriptors: int) -> int:
    """How many connections a process may hold that may have so many descriptors (-1: any number)."""
    if descriptors < 0:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))


class Handler(socketserver.BaseRequestHandler):
    """One connection: one request, one JSON answer, closed. No access log: requests hold what people type."""

    server: Server

    def handle(self) -> None:
        self._stream = io.BufferedReader(DeadlineReader(self.request, Deadline(REQUEST_DEADLINE_S)))
        # The client went away or was too slow: nobody is left to tell.
        with contextlib.suppress(OSError):
            self._handle()

    def _handle(self) -> None:
        try:
            head = http1.read_request(self._stream)
        except http1.BadMessage as bad:
            self._answer(bad.status, _no(UNSUPPORTED))
            return
        if head is not None:
            self._answer(*self._result(head))

    def _result(self, head: http1.RequestHead) -> tuple[int, dict]:
        """(status, ToolResult) of this request. Raises ClientGone."""
        host = self.server.host
        try:
            return 200, {"ok": True, "value": self._run(host, head)}
        except Refused as no:
            return no.status, _no(str(no))
        except (InvalidCall, CtlError) as no:
            return 400, _no(str(no))
        except ExpiredError:
            return 400, _no(EXPIRED)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001 - one call's fault must not end the host
            host.log_fault()
            return 500, _no("Internal error of the host; its log tells more")

    def _run(self, host, head: http1.RequestHead) -> object:
        length = _check_head(head)
        token = _token(head)
        session = host.sessions.find(token)
        if session is None:
            raise Refused(401, REVOKED)
        self.server.prove(self.request)
        if head.first("expect").lower() == "100-continue":
            self.request.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = self._request(length)
        began_s, value = time.monotonic(), None
        try:
            value = self._perform(host, token, session, request)
            return value
        finally:
            note_call(host, session, request, value, round(1000 * (time.monotonic() - began_s)))

    @staticmethod
    def _perform(host, token: str, session, request: dict) -> object:
        args = request.get("args")
        operation = validate(request.get("operation"), args)

        def in_turn(action) -> object:
            with host.turns.turn(session.project_id):
                if host.sessions.find(token) is None:
                    raise Refused(401, REVOKED)
                return action()

        # A full disk or a directory that is gone is the user's to mend, not a fault of the host.
        with Explained(f"{operation.name} failed"):
            value = in_turn(lambda: operations.run(host, session, operation.name, args))
            # What takes long must not hold up the project's other operations.
            if isinstance(value, Later):
                value = value.finish()
            return in_turn(value.run) if isinstance(value, InTurn) else value

    def _request(self, length: int) -> dict:
        try:
            body = self._stream.read(length)
        except OSError:
            raise ClientGone from None
        if len(body) < length:
            raise ClientGone
        try:
            request = jsontext.loads(body)
        except ValueError as error:
            raise Refused(400, f"The request is not JSON: {error}") from None
        if not isinstance(request, dict):
            raise Refused(400, "The request is not a JSON object")
        return request

    def _answer(self, status: int, result: dict) -> None:
        body = jsontext.encode(jsontext.compact(result))
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.request.settimeout(REQUEST_DEADLINE_S)
        self.request.sendall(head.encode() + body)
        self._linger()

    def _linger(self) -> None:
        """Read on for a moment: closing with unread bytes would reset the connection and lose the answer."""
        deadline = Deadline(LINGER_S)
        with contextlib.suppress(OSError):
            self.request.shutdown(socket.SHUT_WR)
            while True:
                self.request.settimeout(deadline.left_s())
                if not self.request.recv(65536):
                    return


def _check_head(head: http1.RequestHead) -> int:
    """The length of the body, once the head is one that is served. Raises Refused."""
    if "origin" in head or head.method != "POST":
        raise Refused(403, UNSUPPORTED)
    if head.path != "/call":
        raise Refused(404, UNSUPPORTED)
    try:
        length = head.length() or 0
    except http1.BadMessage as bad:
        raise Refused(bad.status, UNSUPPORTED) from None
    if "transfer-encoding" in head:
        raise Refused(400, UNSUPPORTED)
    if length > MAX_BODY_BYTES:
        raise Refused(400, "Request too large")
    return length


def _token(head: http1.RequestHead) -> str:
    kind, _, token = head.first("authorization").partition(" ")
    return token.strip(" ") if kind.lower() == "bearer" else ""


def _no(error: str) -> dict:
    return {"ok": False, "error": error}
