"""The socket server of a share: connections, frames and deadlines in; the controller decides."""

from __future__ import annotations

import asyncio
import errno
import hmac
import select
import socket
from collections.abc import Callable

from .. import wire
from .controller import Controller

MAX_CONNECTIONS = 16
CUT_OFF_S = 5.0
# How often to look whether a caller that only closed its sending side has left for good.
HALF_CLOSED_POLL_S = 0.05
# Until the next look whether there is a descriptor for a caller.
REST_S = 0.1
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Share:
    """Serves one controller on a listening socket, inside a running event loop.

    `refresh(done)` has the view observed anew and then calls done(); `report(request, answer)`
    gets each request and what came of it.
    """

    def __init__(
        self,
        controller: Controller,
        token: str,
        refresh: Callable[[Callable[[], None]], object],
        report: Callable[[wire.GetViewContext | wire.SelectSession, dict], None],
    ) -> None:
        self.controller = controller
        self.refresh = refresh
        self.report = report
        self.loop = asyncio.get_running_loop()
        self.connections: set[_Connection] = set()
        self._token = token.encode()
        self._listener: socket.socket | None = None
        self._opening: set[asyncio.Task] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None

    def start(self, listener: socket.socket) -> None:
        """Begin to accept on a bound and listening socket, which stays the caller's to close."""
        listener.setblocking(False)
        self._listener = listener
        self._listen()

    def close(self) -> None:
        """Revoke: accept nobody any more, tell whoever waits, close all connections. Harmless when done twice."""
        self.controller.revoke()
        if self._timer:
            self._timer.cancel()
        if self._rest:
            self._rest.cancel()
        if self._listener:
            self.loop.remove_reader(self._listener)
            self._listener = None
        for connection in list(self.connections):
            connection.finish(wire.rejected(wire.REVOKED))

    def knows(self, token: str) -> bool:
        """Whether it is the right token, in a time that says nothing about it."""
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token)

    def set_timer(self) -> None:
        """Have the controller's deadline enforced when it comes; after each step that may have set one."""
        deadline_s = self.controller.next_deadline_s()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if deadline_s is not None:
            # The loop's clock is time.monotonic, as is the controller's.
            self._timer = self.loop.call_at(deadline_s, self._tick)

    def _listen(self) -> None:
        if self._listener:
            self.loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        # By hand: asyncio's own server forgets a connection that it accepts while it is closed.
        if self._listener is None:
            return
        try:
            sock, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _SHORTAGES:
                # Who waits goes on waiting, and would have us try without a pause.
                self.loop.remove_reader(self._listener)
                self._rest = self.loop.call_later(REST_S, self._listen)
            return  # else it is gone again
        if len(self.connections) >= MAX_CONNECTIONS:
            sock.close()
            return
        connection = _Connection(self)
        self.connections.add(connection)
        opening = self.loop.create_task(self.loop.connect_accepted_socket(lambda: connection, sock))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def _tick(self) -> None:
        self._timer = None
        self.controller.tick()
        self.set_timer()


class _Connection(asyncio.Protocol):
    """One caller: a frame in, a line out."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._received = b""
        self._request: wire.GetViewContext | wire.SelectSession | None = None
        self._finished = False
        self._transport: asyncio.Transport | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what a stream socket gets
        self._transport = transport
        if self._finished:
            transport.abort()
            return
        self._timers.append(self._share.loop.call_later(CUT_OFF_S, transport.abort))

    def data_received(self, data: bytes) -> None:
        if self._finished:
            return  # the rest of what was refused
        self._received += data
        if self._request is not None:
            self._refuse()  # a second frame
            return
        end = self._received.find(b"\n") + 1
        if end:
            if end < len(self._received):
                self._refuse()
            else:
                self._accept()
        elif len(self._received) >= wire.MAX_FRAME_BYTES:
            self._refuse()

    def eof_received(self) -> bool:
        if self._request is None:
            if not self._finished:
                self._refuse()  # half a frame, or none
            return False
        if self._is_gone():
            return False
        self._watch_half_closed()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        self._share.connections.discard(self)
        for timer in self._timers:
            timer.cancel()
        self._finished = True
        self._share.controller.hang_up(self._answer)
        self._share.set_timer()

    def finish(self, answer: dict) -> None:
        """Send the answer and close; the first answer counts."""
        if self._finished:
            return
        self._finished = True
        if self._transport:  # else it is still being opened
            self._transport.write(wire.encode(answer))
            self._transport.close()

    def _accept(self) -> None:
        try:
            frame = wire.parse_request(self._received)
        except wire.InvalidFrame:
            self._refuse()
            return
        self._received = b""
        if not self._share.knows(frame.token):
            self.finish(wire.rejected(wire.UNAUTHORIZED))
            return
        self._request = frame.request
        # The guard looks at what the view is now, not at what it was at the last event.
        self._share.refresh(self._decide)

    def _decide(self) -> None:
        if self._finished or self._transport is None or self._transport.is_closing():
            return
        if isinstance(self._request, wire.SelectSession):
            self._share.controller.select(self._request, self._answer)
            self._share.set_timer()
        else:
            self._answer(self._share.controller.context())

    def _answer(self, answer: dict) -> None:
        if self._request is not None:
            self._share.report(self._request, answer)
        self.finish(answer)

    def _refuse(self) -> None:
        self._share.controller.hang_up(self._answer)
        self._share.set_timer()
        self._finished = True
        if self._transport:
            self._transport.write(wire.encode(wire.rejected(wire.INVALID_REQUEST)))
            # Closing with bytes unread would reset the caller's side; it is left to close, or is cut off.
            self._transport.write_eof()

    def _watch_half_closed(self) -> None:
        if self._finished or self._transport is None:
            return
        if self._is_gone():
            self._transport.abort()
        else:
            self._timers[1:] = [self._share.loop.call_later(HALF_CLOSED_POLL_S, self._watch_half_closed)]

    def _is_gone(self) -> bool:
        """Whether the other side has closed both directions; it may have closed only its own."""
        if self._transport is None:
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
