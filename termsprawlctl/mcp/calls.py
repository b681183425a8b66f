"""Requests in flight: who still waits for an answer, and what may still be sent to them.

Everything is decided and handed to the writer under one lock, so that nothing follows a
response, and nothing at all a cancellation.
"""

from __future__ import annotations

import sys
import threading
import time

from . import protocol
from .provider import Context, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Work = Callable[["Call"], dict[str, Any]]

# The throttle: about two progress messages a second; a burst of a few goes through, so that
# short calls show all their steps.
PROGRESS_INTERVAL_S = 0.5
PROGRESS_BURST = 3
# Steps that have to wait are sent together, in as few messages of this many characters as hold them.
STEP_SEPARATOR = " · "
MAX_MESSAGE_CHARS = 600
# For a client that has stopped reading: what is left out of a call's steps beyond this is counted.
MAX_HELD_STEPS = 1000

# What may be open at once, running or waiting, as weight() counts it, and what a call costs
# besides. A client that asks for more has lost count; nothing useful holds as much.
MAX_OPEN_BYTES = 16 << 20
CALL_BYTES = 2048
TOO_MANY = (
    f"Too many open calls: with this one they would hold more than {MAX_OPEN_BYTES >> 20} MiB. It was not "
    "carried out; send it again when some of them have been answered, or cancel some."
)


def weight(message: object, line_bytes: int) -> int:
    """What a parsed message holds in memory, beyond CALL_BYTES: its line's bytes, or as much as 32 times that.

    Empty arrays and objects take three bytes of a line, and dozens in memory.
    """
    total, todo = -CALL_BYTES, [message]
    while todo:
        value = todo.pop()
        total += sys.getsizeof(value, 64)  # PyPy cannot tell
        if isinstance(value, dict):
            total += sum(sys.getsizeof(key, 64) for key in value)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return max(total, line_bytes)


class Request:
    """What an answer needs to know of its request: `batch` is what it came in, `size` its weight().

    `asks`: how its client's user is asked (see protocol.asks).
    """

    __slots__ = ("asks", "batch", "id", "modern", "size", "token")

    def __init__(self, request_id: object, *, modern: bool, token: object, batch: Batch | None, size: int = 0) -> None:
        self.asks = ""
        self.id = request_id
        self.modern = modern
        self.token = token
        self.batch = batch
        self.size = size


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


class _Progress:
    """What a call has to report and was not allowed to send yet, oldest first."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._left_out = 0
        self._value: float = 0
        self._total: float | None = None
        self._sent: float | None = None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def replace(self, message: str, progress: float | None, total: float | None) -> None:
        """The newest alone is worth sending."""
        self._texts, self._left_out = [message], 0
        self._value = self._value + 1 if progress is None else progress
        self._total = total

    def append(self, label: str) -> None:
        """It is sent after those that wait."""
        if not self._texts or self._texts[-1] != label:
            self._texts.append(label)
        if len(self._texts) > MAX_HELD_STEPS:
            del self._texts[0]
            self._left_out += 1
        self._value += 1
        self._total = None

    def take(self, token: object) -> dict[str, Any]:
        """The params of the next message: as many steps as it holds."""
        if self._left_out:
            message, self._left_out = f"({self._left_out} steps left out)", 0
        else:
            message = self._texts.pop(0)
        while self._texts and len(message) + len(STEP_SEPARATOR) + len(self._texts[0]) <= MAX_MESSAGE_CHARS:
            message += STEP_SEPARATOR + self._texts.pop(0)
        if self._sent is not None and self._value <= self._sent:
            self._value = self._sent + 1
        self._sent = self._value
        params = {"progressToken": token, "progress": self._value}
        if self._total is not None:
            params["total"] = self._total
        return {**params, "message": message}


class Call(Context):
    """One request that is being worked on.

    `work(call)` returns its result dict; `request` tells how to answer it.
    """

    def __init__(self, in_flight: InFlight, request: Request, work: Work) -> None:
        super().__init__()
        self._in_flight = in_flight
        self.request = request
        self.work = work
        self.open = True  # still to be answered; changes under the lock of what is in flight only
        self.away = False  # answered with a question: its result waits for the client to come back
        self.result: Callable[[Request], bytes] | None = None  # of a call whose client is away: makes its answer
        self.tool: tuple[str, object] = ("", None)  # its name and arguments
        self.on_begun: Callable[[], object] | None = None
        self.on_ask: Callable[[str, list[tuple[str, str]]], Question | None] | None = None
        self._held = _Progress()
        self._allowance = float(PROGRESS_BURST)
        self._allowance_at_s = 0.0

    def begun(self) -> None:
        if self.on_begun is not None:
            self.on_begun()

    def ask(self, message: str, options: list[tuple[str, str]]) -> Question | None:
        return None if self.on_ask is None else self.on_ask(message, options)

    def progress(self, message: str, progress: float | None = None, total: float | None = None) -> None:
        if self.request.token is not None:
            with self._in_flight.lock:
                if self.open:
                    self._held.replace(message, progress, total)
                    self._send_or_hold()

    def step(self, label: str) -> None:
        if self.request.token is not None:
            with self._in_flight.lock:
                if self.open:
                    self._held.append(label)
                    self._send_or_hold()

    def due_s(self) -> float:
        """When (monotonic) the held progress may be sent."""
        return self._allowance_at_s + (1 - self._allowance) * PROGRESS_INTERVAL_S

    def release(self) -> bool:
        """Send held progress if it is time. Under the lock; False while some is still held."""
        if self.open and self._held and self._may_send():
            self._send_held()
        return not (self.open and self._held)

    def flush(self) -> None:
        """Send all held progress now, before the response. Under the lock."""
        while self._held:
            self._send_held()

    def _send_or_hold(self) -> None:
        if self._may_send():
            self._send_held()
        if self._held:
            self._in_flight.hold(self)

    def _may_send(self) -> bool:
        if not self._in_flight.has_room():
            return False  # its reader is behind
        now = time.monotonic()
        earned = (now - self._allowance_at_s) / PROGRESS_INTERVAL_S
        self._allowance = min(PROGRESS_BURST, self._allowance + earned)
        self._allowance_at_s = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    def _send_held(self) -> None:
        params = self._held.take(self.request.token)
        self._in_flight.send(protocol.encode(protocol.notification("notifications/progress", params)))


class InFlight:
    """All open calls by id, and the one lock under which things are sent to the client.

    `put(bytes)` hands a whole line to the writer; `wake()` wakes the reading thread
    when a held progress changes how long it may sleep; `has_room()` tells whether the
    writer's reader is near enough for progress to be handed over.
    """

    def __init__(
        self,
        put: Callable[[bytes], object],
        wake: Callable[[], object],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        self.lock = threading.RLock()
        self._put = put
        self._wake = wake
        self.has_room = has_room
        # By id; the calls of one id in a dict, to find any of them at once.
        self._open: dict[tuple[type, object], dict[Call, None]] = {}
        self._open_bytes = 0
        self._holding: list[Call] = []

    def send(self, message: bytes) -> None:
        """Send something that belongs to no call."""
        with self.lock:
            self._put(message + b"\n")

    def answer(self, request: Request, answer: bytes | None) -> None:
        """Answer a request that is no open call, or settle it without an answer."""
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

    def part(self, call: Call, answer: bytes) -> None:
        """Answer a call with a question; it goes on. Under the lock."""
        call.away = True
        self.close(call, answer)

    def rejoin(self, call: Call, request: Request) -> None:
        """Its client has come back with a new request. Under the lock. Raises Refused, and nothing is changed."""
        before, call.request = call.request, request
        try:
            self.open(call)
        except protocol.Refused:
            call.request = before
            raise
        call.away, call.open = False, True
        if call.result is not None:
            self.close(call, call.result(request))

    def keep(self, call: Call, result: Callable[[Request], bytes]) -> bool:
        """Keep the result of a call whose client is away; False where it is not."""
        with self.lock:
            if call.away:
                call.result = result
            return call.away

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
            self._wake()

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
