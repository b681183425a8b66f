"""Requests in flight: who still waits for an answer, and what may still be said to them.

Everything is decided and handed to the writer under one lock, so that nothing follows a
response, and nothing at all a cancellation.
"""

from __future__ import annotations

import threading
import time
from collections import namedtuple

from . import protocol
from .provider import Context

# About two progress messages a second; a burst of a few goes through, so that short
# calls show all their steps.
PROGRESS_INTERVAL_S = 0.5
PROGRESS_BURST = 3

# What may be open at once, running or waiting, and what a call costs besides the bytes of
# its line. A client that asks for more has lost count; nothing useful holds as much.
MAX_OPEN_BYTES = 16 << 20
CALL_BYTES = 2048
TOO_MANY = (
    f"Too many open calls: those that wait already hold {MAX_OPEN_BYTES >> 20} MiB. This one was not "
    "carried out; send it again when some of them have been answered, or cancel some."
)

# batch: the Batch that the request came in, or None; size: the bytes of its line.
Request = namedtuple("Request", "id modern token batch size", defaults=(0,))


class Batch:
    """Collects the responses to an array of requests; one array answers it."""

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._open = 1  # the batch itself, while its messages are being dispatched

    def expect(self) -> None:
        """One more answer, or none of it, will be settled."""
        self._open += 1

    def settle(self, answer: bytes | None) -> bytes | None:
        """Take an answer (None: there is none); returns the whole array once it is complete."""
        if answer is not None:
            self._answers.append(answer)
        self._open -= 1
        if self._open or not self._answers:
            return None
        return b"[" + b",".join(self._answers) + b"]"


class Call(Context):
    """One request that is being worked on.

    `work(call)` returns its result dict; `request` tells how to answer it.
    """

    def __init__(self, book: Book, request: Request, work) -> None:
        super().__init__()
        self._book = book
        self.request = request
        self.work = work
        self.open = True  # still to be answered; changes under the book's lock only
        self._last: float | None = None
        self._held: dict | None = None  # the newest progress that came too soon
        self._allowance = float(PROGRESS_BURST)
        self._allowance_at_s = 0.0

    def progress(self, message: str, progress: float | None = None, total: float | None = None) -> None:
        if self.request.token is None:
            return
        with self._book.lock:
            if self.open:
                self._held = self._params(message, progress, total)
                if not self._may_send():
                    self._book.hold(self)
                else:
                    self._send_held()

    def due_s(self) -> float:
        """When (monotonic) the held progress may be sent."""
        return self._allowance_at_s + (1 - self._allowance) * PROGRESS_INTERVAL_S

    def release(self) -> bool:
        """Send the held progress if it is time. Under the book's lock; False while it is not."""
        if not (self.open and self._held):
            return True
        if self._may_send():
            self._send_held()
        return self._held is None

    def flush(self) -> None:
        """Send the held progress now, before the response. Under the book's lock."""
        if self._held:
            self._send_held()

    def _params(self, message: str, progress: float | None, total: float | None) -> dict:
        last = self._last
        if progress is None:
            progress = 1 if last is None else last + 1
        elif last is not None and progress <= last:
            progress = last + 1
        self._last = progress
        params = {"progressToken": self.request.token, "progress": progress}
        if total is not None:
            params["total"] = total
        return {**params, "message": message}

    def _may_send(self) -> bool:
        if not self._book.has_room():
            return False  # its reader is behind: the newest alone is kept for it
        now = time.monotonic()
        earned = (now - self._allowance_at_s) / PROGRESS_INTERVAL_S
        self._allowance = min(PROGRESS_BURST, self._allowance + earned)
        self._allowance_at_s = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    def _send_held(self) -> None:
        params, self._held = self._held, None
        self._book.send(protocol.encode(protocol.notification("notifications/progress", params)))


class Book:
    """All open calls by id, and the one lock under which things are said to the client.

    `put(bytes)` hands a whole line to the writer; `rouse()` wakes the reading thread
    when a held progress changes how long it may sleep; `has_room()` tells whether the
    writer's reader is near enough for progress to be handed over.
    """

    def __init__(self, put, rouse, has_room=lambda: True) -> None:
        self.lock = threading.RLock()
        self._put = put
        self._rouse = rouse
        self.has_room = has_room
        # By id; the calls of one id in a dict, to find any of them at once.
        self._open: dict[tuple, dict[Call, None]] = {}
        self._open_bytes = 0
        self._holding: list[Call] = []

    def send(self, message: bytes) -> None:
        """Say something that belongs to no call."""
        with self.lock:
            self._put(message + b"\n")

    def answer(self, request: Request, answer: bytes | None) -> None:
        """Answer a request that is in no book, or settle it without one."""
        with self.lock:
            if request.batch is not None:
                answer = request.batch.settle(answer)
            if answer is not None:
                self._put(answer + b"\n")

    def open(self, call: Call) -> None:
        """Enter a call before it starts. An id may be in use twice; both are answered.

        Raises Refused while so much is open that this call has to wait its turn outside.
        """
        with self.lock:
            if self._open and self._open_bytes + self._cost(call) > MAX_OPEN_BYTES:
                raise protocol.Refused(protocol.INTERNAL_ERROR, TOO_MANY)
            self._open.setdefault(protocol.id_key(call.request.id), {})[call] = None
            self._open_bytes += self._cost(call)

    def close(self, call: Call, answer: bytes | None) -> None:
        """Answer a call, unless it was cancelled in the meantime."""
        with self.lock:
            if call.open:
                call.flush()
                self._forget(call)
                self.answer(call.request, answer)

    def cancel(self, request_id: object) -> list[Call]:
        """Close the calls of this id without an answer and return them; [] when there is none."""
        with self.lock:
            return self._cancel(list(self._open.get(protocol.id_key(request_id), ())))

    def cancel_all(self) -> list[Call]:
        """Close all calls without an answer and return them."""
        with self.lock:
            return self._cancel(self.calls())

    def calls(self) -> list[Call]:
        """All open calls."""
        with self.lock:
            return [call for calls in self._open.values() for call in calls]

    def is_empty(self) -> bool:
        """Whether no call is open: each is cancelled, or its answer is with the writer."""
        with self.lock:
            return not self._open

    def hold(self, call: Call) -> None:
        """Remember that a call has a progress to send later. Under the lock."""
        if call not in self._holding:
            self._holding.append(call)
            self._rouse()

    def release_due(self) -> float | None:
        """Send held progress that is due; returns seconds until the next, None for never.

        While there is no room nothing is due: whoever calls this looks for room by itself.
        """
        if not self._holding or not self.has_room():
            return None
        with self.lock:
            self._holding = [call for call in self._holding if not call.release()]
            if not self._holding:
                return None
            return max(0.0, min(call.due_s() for call in self._holding) - time.monotonic())

    def _forget(self, call: Call) -> None:
        call.open = False
        key = protocol.id_key(call.request.id)
        del self._open[key][call]
        if not self._open[key]:
            del self._open[key]
        self._open_bytes -= self._cost(call)

    def _cancel(self, calls: list[Call]) -> list[Call]:
        for call in calls:
            self._forget(call)
            self.answer(call.request, None)
        return calls

    @staticmethod
    def _cost(call: Call) -> int:
        return call.request.size + CALL_BYTES
