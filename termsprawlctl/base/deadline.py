"""One deadline over many socket operations.

A socket's own time-out starts anew with each operation, so a peer that sends a
byte now and then could hold a call for ever. Here the clock is set once.
"""

from __future__ import annotations

import io
import socket
import time

MIN_TIMEOUT_S = 0.001  # zero would make the socket non-blocking


class Deadline:
    """A point in time; `clock` returns seconds and may be replaced in tests."""

    def __init__(self, seconds: float, clock=time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def left_s(self) -> float:
        """Seconds until the deadline; raises TimeoutError when there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError(f"more than {self.seconds:g} s")
        return max(left, MIN_TIMEOUT_S)


class DeadlineReader(io.RawIOBase):
    """The receiving side of a socket as a raw stream that keeps one deadline.

    `received` is what was read from the socket before; it comes first. Reads raise
    TimeoutError when the deadline has passed. Closing it leaves the socket open.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline, received: bytes = b"") -> None:
        super().__init__()
        self._received = received
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if self._received:
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            self._received = self._received[size:]
            return size
        self._sock.settimeout(self._deadline.left_s())
        try:
            return self._sock.recv_into(buffer)
        except socket.timeout:
            # Python 3.9's socket.timeout is no TimeoutError yet.
            raise TimeoutError(f"more than {self._deadline.seconds:g} s") from None
