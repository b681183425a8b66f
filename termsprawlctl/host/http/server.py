"""The HTTP server on loopback and on a socket of the user's own: POST /call, one request per connection.

One thread reads all connections and answers what never waits; a call that may wait gets a
thread of its own once its whole request is there and its token is known. So strangers, slow
or many, cost no thread. No access log: requests hold what people type.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ...app import http1
from ...base import threads
from ...base.files import remove_quietly
from ...base.waiting import Deadline
from . import calls

# From the first byte to the last of a request; a call is one small local write.
REQUEST_DEADLINE_S = 10.0
# How long a refused client may go on sending before it is cut off, so that it can still read the answer:
# closing with unread bytes would reset the connection.
LINGER_S = 1.0
MAX_CONNECTIONS = 256
# Of the descriptors that this process may have: for everything but connections and the
# terminals' pipes, which share the rest by halves.
RESERVED_DESCRIPTORS = 48
MIN_CONNECTIONS = 8
# So many are kept from clients that have shown no token: a call starts a tmux with three pipes and opens files.
KEPT_DESCRIPTORS = 14
# Of many calls at once the next waits for a place; who is older than that and showed no token makes room.
PLACE_WAIT_S = 2.0
PROOF_WAIT_S = 0.1
# What accept() says when something has run out: the connection waits, and asking at once keeps a core busy.
_SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
SHORTAGE_PAUSE_S = 0.1
BACKLOG = 128
READ_BYTES = 64 << 10
# No head is longer; a longer start of a request is no head.
_MAX_HEAD_BYTES = http1.MAX_LINE_BYTES + http1.MAX_FIELDS_BYTES
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PROCESSING = b"HTTP/1.1 %d Processing\r\n\r\n" % http1.PROCESSING


class Connection:
    """One client, from its accept to its close."""

    __slots__ = ("admitted", "is_over", "is_watched", "port", "received", "since_s", "socket")

    def __init__(self, connected: socket.socket, port: int | None) -> None:
        self.socket = connected
        self.port = port  # that it came to; None for the socket
        self.since_s = time.monotonic()
        self.received = b""
        self.admitted: calls.Admitted | None = None  # once its head was read and its token is known
        self.is_over = False  # answered or given up: what it still sends is thrown away
        self.is_watched = False  # the selector waits for it


class CallThreads:
    """A thread for each call that may wait, and how many there are."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0

    def start(self, work: Callable[[], None]) -> bool:
        """Run work() in a thread of its own; False where there is none."""

        def run() -> None:
            try:
                work()
            finally:
                self._count(-1)

        self._count(1)
        try:
            threads.start(run)
        except RuntimeError:
            self._count(-1)
            return False
        return True

    def _count(self, change: int) -> None:
        with self._changed:
            self._running += change
            self._changed.notify_all()

    def drain(self, timeout_s: float) -> bool:
        """Wait until none runs; False when the time is up first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._running == 0, timeout_s)


class Server:
    """Serves one host on 127.0.0.1 at a port of the system's choice, and on a unix socket where `path` names one.

    Raises OSError.
    """

    def __init__(self, host: Any, path: str = "") -> None:
        self._host = host
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._max_connections = connections_within(descriptors)
        self._crowded_from = crowded_from(descriptors)
        self._listeners, self.port = _listeners(path)
        self.url = f"http://127.0.0.1:{self.port}/call"
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._clear_wakes)
        # Of these the reading thread alone knows: who still sends, oldest first, and who is answered but not gone.
        self._sending: dict[Connection, None] = {}
        self._lingering: dict[Connection, float] = {}  # until when
        self._accepts_from_s: float | None = 0.0  # None: now
        self._full_since_s = 0.0
        # Of these the threads of calls know, too.
        self._lock = threading.Lock()
        self.open_connections = 0
        self._threads = CallThreads()
        self._is_stopping = False

    # The reading thread

    def serve_forever(self) -> None:
        """Read and answer until stop()."""
        while not self._is_stopping:
            self._make_places()
            for key, _ in self._selector.select(self._pause_s()):
                try:
                    key.data()
                except Exception:  # noqa: BLE001 - one connection's fault must not end the host
                    self._host.log_fault()
            self._end_late()
        self._selector.close()
        for listening in self._listeners:
            listening.close()
        for connection in [*self._sending, *self._lingering]:
            connection.socket.close()

    def _pause_s(self) -> float | None:
        """Until something is due; None: for as long as nothing comes."""
        now_s = time.monotonic()
        # All that wait have waited for the same time: the oldest is due first.
        due = [until_s for until_s in (next(iter(self._lingering.values()), None), self._accepts_from_s) if until_s]
        if self._sending:
            due.append(next(iter(self._sending)).since_s + REQUEST_DEADLINE_S)
        return max(0.0, min(due) - now_s) if due else None

    def _make_places(self) -> None:
        """Listen again where it was paused and there is a place, or can be."""
        if self._accepts_from_s is None or time.monotonic() < self._accepts_from_s:
            return
        if self.open_connections >= self._max_connections and not self._drop_stranger(PROOF_WAIT_S):
            self._accepts_from_s = time.monotonic() + PROOF_WAIT_S / 2
            if time.monotonic() > self._full_since_s + PLACE_WAIT_S:
                self._full_since_s = time.monotonic()
                for listening in self._listeners:
                    with contextlib.suppress(OSError):
                        listening.accept()[0].close()
            return
        self._accepts_from_s = None
        for listening, port in self._listeners.items():
            self._selector.register(listening, selectors.EVENT_READ, partial(self._accept, listening, port))

    def _stop_accepting(self, pause_s: float) -> None:
        for listening in self._listeners:
            self._selector.unregister(listening)
        self._accepts_from_s = time.monotonic() + pause_s
        self._full_since_s = time.monotonic()

    def _accept(self, listening: socket.socket, port: int | None) -> None:
        for _ in range(BACKLOG):
            if self._accepts_from_s is not None:
                return  # paused by another listener's clients
            if self.open_connections >= self._max_connections:
                self._stop_accepting(0.0)
                return
            try:
                connected, _ = listening.accept()
            except OSError as error:
                if error.errno in _SHORTAGE:
                    self._drop_stranger(0.0)
                    self._stop_accepting(SHORTAGE_PAUSE_S)
                return
            for _ in range(2 if connected.fileno() >= self._crowded_from else 0):  # two for one: they become fewer
                self._drop_stranger(0.0)
            connected.setblocking(False)
            connection = Connection(connected, port)
            with self._lock:
                self.open_connections += 1
            self._sending[connection] = None
            self._serve(connection)

    def _drop_stranger(self, age_s: float) -> bool:
        """End the oldest connection without a valid token if it is that old; False when there is none.

        So whoever opens connections and says nothing keeps nobody out who has a token.
        """
        latest_s = time.monotonic() - age_s
        for connection in self._sending:
            if connection.since_s > latest_s:
                return False
            if connection.admitted is None:
                self._close(connection)
                return True
        return False

    def _end_late(self) -> None:
        now_s = time.monotonic()
        while self._sending and next(iter(self._sending)).since_s + REQUEST_DEADLINE_S <= now_s:
            self._close(next(iter(self._sending)))
        while self._lingering and next(iter(self._lingering.values())) <= now_s:
            self._close(next(iter(self._lingering)))

    def _serve(self, connection: Connection) -> None:
        try:
            self._read(connection)
        except Exception:  # noqa: BLE001 - one connection's fault must not end the host
            self._host.log_fault()
            self._close(connection)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            self._watch(connection)
            return
        except OSError:
            self._close(connection)
            return
        if connection.is_over:
            if not data:
                self._close(connection)
            return
        connection.received += data
        if connection.admitted is None and (b"\n" in data or not data or len(connection.received) > _MAX_HEAD_BYTES):
            self._read_head(connection, is_end=not data)
        if connection.is_over:
            return
        if connection.admitted is not None:
            self._read_body(connection, connection.admitted, is_end=not data)
        else:
            self._watch(connection)

    def _read_head(self, connection: Connection, *, is_end: bool) -> None:
        stream = io.BytesIO(connection.received)
        try:
            head = http1.read_request(stream)
            if head is None:
                self._close(connection)
                return
            connection.admitted = calls.admit(self._host, head, connection.port)
        except http1.CutShort:
            if is_end:
                self._answer(connection, calls.refusal(400, calls.UNSUPPORTED))
            return
        except http1.BadMessage as bad:
            self._answer(connection, calls.refusal(bad.status, calls.UNSUPPORTED))
            return
        except calls.Refused as no:
            self._answer(connection, calls.refusal(no.status, str(no)))
            return
        connection.received = connection.received[stream.tell() :]
        if connection.admitted.wants_continue and not connection.received:
            with contextlib.suppress(OSError):  # that it has gone shows when it is read
                connection.socket.send(_CONTINUE)

    def _read_body(self, connection: Connection, admitted: calls.Admitted, *, is_end: bool) -> None:
        try:
            found = calls.body_of(connection.received, admitted.length)
        except calls.Refused as no:
            self._answer(connection, calls.refusal(no.status, str(no)))
            return
        if found is None:
            if is_end:
                self._close(connection)  # it hung up half way
            else:
                self._watch(connection)
            return
        body, connection.received = found
        if admitted.a2a is not None:
            answer: calls.Answer = partial(calls.a2a_answer, self._host, admitted, admitted.a2a, body)
        else:
            try:
                request = calls.request_of(body)
            except calls.Refused as no:
                self._answer(connection, calls.refusal(no.status, str(no)))
                return
            answer = partial(calls.answer, self._host, admitted, request)
            if calls.is_quick(request):
                self._answer(connection, answer(lambda: None))
                return
        if not self._start(connection, partial(self._work, connection, admitted, answer)):
            self._answer(connection, calls.refusal(503, calls.NO_THREAD))

    def _start(self, connection: Connection, work: Callable[[], None]) -> bool:
        """Give a connection to a thread of its own; False where there is none."""
        self._leave_reader(connection)
        return self._threads.start(work)

    def _answer(self, connection: Connection, answer: bytes) -> None:
        """Send an answer from the reading thread; a client that does not take it in one go gets a thread for it."""
        connection.is_over = True
        try:
            sent = connection.socket.send(answer)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return
        if sent < len(answer):
            if not self._start(connection, partial(self._finish, connection, answer[sent:])):
                self._close(connection)
        elif connection.admitted is not None and not connection.received:
            self._close(connection)  # all of it was read: nothing is left that a close could lose
        else:
            self._linger(connection)

    def _linger(self, connection: Connection) -> None:
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        self._sending.pop(connection, None)
        self._lingering[connection] = time.monotonic() + LINGER_S
        self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        if not connection.is_watched:
            self._selector.register(connection.socket, selectors.EVENT_READ, partial(self._serve, connection))
            connection.is_watched = True

    def _leave_reader(self, connection: Connection) -> None:
        """From now on a thread of its own has it."""
        if connection.is_watched:
            self._selector.unregister(connection.socket)
            connection.is_watched = False
        self._sending.pop(connection, None)
        self._lingering.pop(connection, None)

    def _close(self, connection: Connection) -> None:
        if connection.socket.fileno() < 0:
            return  # closed already
        connection.is_over = True
        self._leave_reader(connection)
        connection.socket.close()
        self._forget()

    def _clear_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, READ_BYTES)

    # The threads of calls

    def _work(self, connection: Connection, admitted: calls.Admitted, answer: calls.Answer) -> None:
        def begun() -> None:
            if admitted.wants_processing:
                with contextlib.suppress(OSError):  # it may be gone; what was begun is finished all the same
                    connection.socket.send(_PROCESSING)

        self._finish(connection, answer(begun))

    def _finish(self, connection: Connection, answer: bytes) -> None:
        """Send what a client takes its time for, and close."""
        with connection.socket as client, contextlib.suppress(OSError):  # it is gone or too slow: nobody is left
            _send_patiently(client, answer)
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            self.open_connections -= 1
        if self._accepts_from_s is not None:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it wakes anyway
            os.write(self._wake_write, b"\0")

    # From outside

    def stop(self) -> None:
        """Accept and read no more; calls that run go on."""
        self._is_stopping = True
        self._wake()

    def drain(self, timeout_s: float) -> bool:
        """Wait until no call runs; False when the time is up first."""
        return self._threads.drain(timeout_s)


def _listeners(path: str) -> tuple[dict[socket.socket, int | None], int]:
    """(what listens, with its port where it has one; the port). Raises OSError."""
    on_loopback = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    on_loopback.bind(("127.0.0.1", 0))
    port = on_loopback.getsockname()[1]
    found: dict[socket.socket, int | None] = {on_loopback: port}
    if path:
        found[_at_path(path)] = None
    for listening in found:
        listening.listen(BACKLOG)
        listening.setblocking(False)
    return found, port


def _at_path(path: str) -> socket.socket:
    """A unix socket at a path in a private directory of our own; one of an ended host makes room. Raises OSError."""
    remove_quietly(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(path)
        os.chmod(path, 0o600)
    except BaseException:
        bound.close()
        raise
    return bound


def _send_patiently(client: socket.socket, answer: bytes) -> None:
    client.settimeout(REQUEST_DEADLINE_S)
    client.sendall(answer)
    # What it sent beyond its request is read first: closing would reset the connection and lose the answer.
    client.shutdown(socket.SHUT_WR)
    deadline = Deadline(LINGER_S)
    client.settimeout(LINGER_S)
    while client.recv(READ_BYTES):
        client.settimeout(deadline.left_s())


def connections_within(descriptors: int) -> int:
    """How many connections a process may hold that may have so many descriptors (-1: any number)."""
    if descriptors < 0:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))


def crowded_from(descriptors: int) -> int:
    """The number of the descriptor from which on they run out: the system gives the lowest that is free."""
    return descriptors - KEPT_DESCRIPTORS if descriptors >= 0 else sys.maxsize
