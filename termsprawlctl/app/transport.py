"""One call to the app over loopback HTTP: POST JSON, get a ToolResult.

A ToolResult is `{"ok": true, "value": ...}` or `{"ok": false, "error": "..."}`.
Never raises, never retries: after a broken exchange nobody knows whether a
mutation ran. No proxy variable is honoured and no redirect followed, so the token
stays on this machine.
"""

from __future__ import annotations

# The socket module proper loads enum and selectors for names: as much as all the rest of a quick call.
import _socket as socket
import errno
import io
import os
import select

from ..base import jsontext
from ..base.waiting import Deadline, DeadlineReader
from . import http1
from .discovery import Target, Unavailable, locate
from .peer import owner_of_listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Connected = Callable[[socket.socket], None]
    Begun = Callable[[], None]

HOST = "127.0.0.1"
NO_ARGS = object()  # sent as {}; null is an argument like any other
_LATE = "no complete answer within"
UNAVAILABLE = "Tool connection unavailable"  # how every failure to get an answer begins
DEADLINE_S = 45.0  # the contract's, for the whole exchange
# The largest honest answer is a screenshot of a few megabytes.
MAX_ANSWER_BYTES = 64 << 20
# A large honest answer is a large text. Values of two characters each take thirty times their
# bytes once they are read: a small answer may hold whatever it likes, a large one only so many.
DENSE_BYTES = 8 << 20
MAX_VALUES = 1 << 20
_CHUNK_BYTES = 65536
# What connecting, or even making a socket, fails with in a sandbox without network.
_BLOCKED = (errno.EPERM, errno.EACCES, errno.ENETUNREACH)
_SANDBOX_VARIABLE = "CODEX_SANDBOX_NETWORK_DISABLED"
_REMEDY = "run this command outside the sandbox, or allow it loopback network access"
# Scrubbing needs a token that no ordinary text contains; real ones have 64 digits.
_MIN_SCRUBBED_TOKEN = 16


def call(
    session_path: str,
    operation: str | None = None,
    args: object = NO_ARGS,
    *,
    deadline_s: float = DEADLINE_S,
    connected: Connected | None = None,
    begun: Begun | None = None,
) -> dict[str, Any]:
    """Run one operation; every failure to get an answer is an `ok: false` result, too.

    `operation` is left out of the request when it is None; `args` is any JSON value.
    `deadline_s` bounds the whole exchange, in seconds. `connected(socket)` is called once
    the app is connected and before anything is sent; shutting that socket down, from any
    thread, ends the call. `begun()` is called where the host says that it has taken the
    call up and now only waits; the host is asked to say so where it is given.
    """
    try:
        target = locate(session_path)
        return call_target(target, operation, args, deadline_s=deadline_s, connected=connected, begun=begun)
    except Unavailable as reason:
        return _unavailable(str(reason))
    except Exception as fault:  # noqa: BLE001 - the contract: a call never raises
        return _unavailable(_internal(fault))


def call_target(
    target: Target,
    operation: str | None,
    args: object = NO_ARGS,
    *,
    deadline_s: float = DEADLINE_S,
    connected: Connected | None = None,
    begun: Begun | None = None,
) -> dict[str, Any]:
    """Like call(), for a target that is known already."""
    body: dict[str, object] = {} if operation is None else {"operation": operation}
    body["args"] = {} if args is NO_ARGS else args
    try:
        request = jsontext.wire(body)
        return _tool_result(_exchange(target, request, Deadline(deadline_s), connected, begun), target.token)
    except Unavailable as reason:
        return _unavailable(str(reason))
    except Exception as fault:  # noqa: BLE001 - the contract: a call never raises
        return _unavailable(_internal(fault))


def is_late(result: dict[str, Any]) -> bool:
    """Whether a result of call() says that the deadline was over before the answer was there."""
    return not result["ok"] and str(result["error"]).startswith(f"{UNAVAILABLE}: {_LATE}")


def _internal(fault: Exception) -> str:
    # The text of a foreign exception may quote what was sent.
    return f"internal error ({type(fault).__name__})"


def _unavailable(reason: str) -> dict[str, Any]:
    return {
        "ok": False,
        "error": f"{UNAVAILABLE}: {reason}. Check that termsprawl is running. Mutations are not automatically retried.",
    }


def _tool_result(answer: bytes, token: str) -> dict[str, Any]:
    if len(answer) > DENSE_BYTES and sum(map(answer.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise Unavailable(f"the answer holds more than {MAX_VALUES} values")
    try:
        result = jsontext.loads(answer)
        if len(token) >= _MIN_SCRUBBED_TOKEN and (token.encode("ascii") in answer or b"\\" in answer):
            result = _without(token, result)
    except ValueError as error:
        raise Unavailable(f"the answer is not JSON ({error})") from None
    if isinstance(result, dict):
        ok = result.get("ok")
        if ok is True or (ok is False and isinstance(result.get("error"), str)):
            return result
    raise Unavailable("the answer is not a tool result")


def _without(token: str, value: object) -> object:
    """The value without a token that the server sent back, in whatever escapes."""
    # Written anew, it is there in one form only.
    text = jsontext.compact(value)
    form = jsontext.compact(token)[1:-1]
    return jsontext.loads(text.replace(form, "[token removed]")) if form in text else value


def _exchange(
    target: Target, request: bytes, deadline: Deadline, connected: Connected | None, begun: Begun | None
) -> bytes:
    try:
        sock = _connect(target, deadline)
        try:
            _refuse_another_users(sock, target)
            if connected is not None:
                connected(sock)
            return _ask(sock, target, request, deadline, begun)
        finally:
            sock.close()
    except (TimeoutError, socket.timeout):
        raise Unavailable(f"{_LATE} {deadline.seconds:g} s") from None
    except http1.TooLarge:
        raise Unavailable(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB") from None
    except http1.CutShort:
        raise Unavailable("the answer was cut short") from None
    except http1.NoAnswer:
        raise Unavailable("the server closed the connection without an answer") from None
    except ValueError:
        raise Unavailable("the answer is not HTTP") from None
    except OSError as error:
        raise Unavailable(f"the connection broke ({_describe(error)})") from None


def _ask(sock: socket.socket, target: Target, body: bytes, deadline: Deadline, begun: Begun | None) -> bytes:
    fields = {
        "host": f"{HOST}:{target.port}",
        "authorization": f"Bearer {target.token}",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    if begun is not None:
        name, value = http1.PREFERS_PROCESSING
        fields[name] = value
    lines = [f"POST {target.request_target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    # In one piece, which an app on the same machine mostly takes at once.
    early = _Sending(sock, deadline).send("\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body)
    with io.BufferedReader(DeadlineReader(sock, deadline, early), _CHUNK_BYTES) as stream:
        head = http1.read_answer(stream, begun)
        if 300 <= head.status <= 399:
            raise Unavailable(f"the server answered with a redirect ({head.status}), and none is followed")
        return http1.read_body(stream, head, MAX_ANSWER_BYTES)


def _connect(target: Target, deadline: Deadline) -> socket.socket:
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(_not_connected(target, error)) from None
    try:
        sock.settimeout(deadline.left_s())
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((HOST, target.port))
        if sock.getsockname() == sock.getpeername():
            # A free port in the ephemeral range can be given to the connecting socket
            # itself, which then talks to itself.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself")
    except (TimeoutError, socket.timeout):
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise Unavailable(_not_connected(target, error)) from None
    return sock


def _refuse_another_users(sock: socket.socket, target: Target) -> None:
    """Raise Unavailable where the token would go to a user of this machine who does not have it."""
    owner = owner_of_listener(target.port, sock.getsockname()[1])
    if owner is not None and owner not in (0, os.getuid(), target.owner):
        raise Unavailable(
            f"on {HOST}:{target.port} a program of another user listens (uid {owner}), so {target.endpoint_file} is "
            "out of date; nothing was sent"
        )


def _not_connected(target: Target, error: OSError) -> str:
    where = f"{HOST}:{target.port}"
    if error.errno in _BLOCKED:
        return f"this process may not connect to {where} ({_describe(error)}): a sandbox blocks loopback; {_REMEDY}"
    if error.errno != errno.ECONNREFUSED:
        return f"cannot connect to {where} ({_describe(error)})"
    reason = f"nothing listens on {where} (connection refused), so {target.endpoint_file} is out of date"
    if os.environ.get(_SANDBOX_VARIABLE):
        # A sandbox with a network of its own has a loopback of its own, too.
        reason += f", or the sandbox hides it ({_SANDBOX_VARIABLE} is set); {_REMEDY}"
    return reason


def _describe(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__


class _Sending:
    """Sends a request, and stops as soon as an answer is there.

    A server may refuse a large body and close without reading it, and its answer must not
    be lost over that.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._early = b""  # what arrived while there was still something to send
        self._answered = False

    def send(self, data: bytes) -> bytes:
        """Send it; returns what came meanwhile. Where sending breaks, reading will tell."""
        self._sock.setblocking(False)
        try:
            view = memoryview(data)[self._sock.send(data) :]
        except BlockingIOError:
            view = memoryview(data)
        except OSError:
            return b""
        if view:
            self._send_rest(view)
        return self._early

    def _send_rest(self, view: memoryview) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | select.POLLOUT)
        while view and not self._answered:
            for _, ready in poll.poll(1000 * self._deadline.left_s()):
                try:
                    if ready & ~select.POLLOUT:
                        self._receive()
                    if ready & select.POLLOUT and not self._answered:
                        view = view[self._sock.send(view) :]
                except BlockingIOError:
                    continue
                except OSError:
                    self._answered = True  # or nothing came; reading will tell

    def _receive(self) -> None:
        data = self._sock.recv(_CHUNK_BYTES)
        self._early += data
        self._answered = not data or len(self._early) > _CHUNK_BYTES or not _is_interim(self._early)


def _is_interim(received: bytes) -> bool:
    """Whether all that came is interim (1xx), which has no body, or too short to tell."""
    heads = received.replace(b"\r\n", b"\n").split(b"\n\n")
    return all(len(head) < len(b"HTTP/1.1 1") or head[9:10] == b"1" for head in heads)
