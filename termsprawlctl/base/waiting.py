"""Waiting with one deadline: for a condition, for descriptors, over many operations of a socket."""

from __future__ import annotations

import io
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Value = TypeVar("Value")

MIN_TIMEOUT_S = 0.001  # zero would make a socket non-blocking


class Deadline:
    """A point in time; `clock` returns seconds and may be replaced in tests."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
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

    A socket's own time-out starts anew with each operation, so a peer that sends a byte
    now and then could hold a call for ever. Here the clock is set once.

    `received` is what was read from the socket before; it comes first. Reads raise
    TimeoutError when the deadline has passed. Closing it leaves the socket open.
    """

    def __init__(self, sock: _socket.socket, deadline: Deadline, received: bytes = b"") -> None:
        super().__init__()
        self._received = received
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def] # typeshed's Buffer has no name at run time
        """Read into the buffer; returns the number of bytes, 0 at the end."""
        if self._received:
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            self._received = self._received[size:]
            return size
        self._sock.settimeout(self._deadline.left_s())
        try:
            return self._sock.recv_into(buffer)
        except OSError as error:
            # Python 3.9's socket.timeout is no TimeoutError yet; it alone has this name there.
            if type(error).__name__ not in ("timeout", "TimeoutError"):
                raise
            raise TimeoutError(f"more than {self._deadline.seconds:g} s") from None


def until(look: Callable[[], Value], timeout_s: float, every_s: float) -> Value:
    """Ask `look()` every so often until its answer is true; the last answer when the time is up.

    It is asked at least once, and once more after the last pause.
    """
    end_s = time.monotonic() + timeout_s
    while True:
        answer = look()
        left_s = end_s - time.monotonic()
        if answer or left_s <= 0:
            return answer
        time.sleep(min(every_s, left_s))


def readable(descriptors: Iterable[int], timeout_s: float | None) -> list[int]:
    """Those that have something to read, or have ended, as soon as there are any; [] when the time is up.

    `timeout_s` None: without end.
    """
    return _ready(descriptors, select.POLLIN, timeout_s)


def writable(descriptor: int, timeout_s: float | None) -> bool:
    """Whether a write would not wait, as soon as that is so; also where nobody reads any more. False when late."""
    return bool(_ready([descriptor], select.POLLOUT, timeout_s))


def _ready(descriptors: Iterable[int], event: int, timeout_s: float | None) -> list[int]:
    # Not select(), which takes no number over 1023: whoever starts this program may have left it many open files.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, event)
    return [descriptor for descriptor, _ in poll.poll(None if timeout_s is None else 1000 * max(0.0, timeout_s))]
