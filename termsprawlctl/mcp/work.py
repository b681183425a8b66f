"""Work on requests: which pool runs them, what becomes of their results, and of their faults."""

from __future__ import annotations

from functools import partial

from ..base import log
from . import protocol
from .calls import Call, InFlight, Request
from .protocol import Refused
from .provider import ProviderFault
from .workers import WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import stdio
    from .asking import Questions
    from .options import Options
    from .provider import Provider, Question, Turn

    Json = dict[str, Any]


class Work:
    """Pools of worker threads, and what is in flight.

    `writer` and `wake()` are the Dispatcher's. `prepared`: the provider is, or is about to
    be. `failed`: a request stays without an answer, for there was no memory even to say so.
    """

    def __init__(self, provider: Provider, options: Options, writer: stdio.Writer, wake: Callable[[], object]) -> None:
        self._provider = provider
        self._writer = writer
        self._wake = wake
        self._info = {"name": provider.name, "version": provider.version}
        self.in_flight = InFlight(writer.put, wake, writer.has_room)
        self._questions: Questions | None = None
        self.calls = WorkerPool(options.max_running, self._perform)
        self.lists = WorkerPool(1, self._perform)
        self.handshakes = WorkerPool(1, self._perform_and_wake)
        self.prepared = False
        self.failed = False

    def prepare(self) -> None:
        """Have the provider load what calls will need, unless it has."""
        if self.prepared:
            return
        self.prepared = True
        try:
            self.calls.add(None)
        except RuntimeError:
            return  # no thread is available now; calls will load what they need

    def stop(self, calls: list[Call]) -> None:
        """End calls that nobody waits for any more."""
        for call in calls:
            if not any(pool.remove(call) for pool in (self.calls, self.lists, self.handshakes)):
                call.cancel()

    def ask(self, call: Call, message: str, options: list[tuple[str, str]]) -> Question | None:
        """Ask the user of the call's client (see Context.ask)."""
        with self.in_flight.lock:
            if self._questions is None:
                from .asking import Questions as Asked

                self._questions = Asked(self.in_flight, self._encode_result)
        return self._questions.ask(call, message, options)

    def questions(self) -> Questions | None:
        """Those that were asked; None where none ever was."""
        return self._questions

    def start(self, pool: WorkerPool, call: Call, turn: Turn | None = None) -> None:
        self.in_flight.open(call)
        try:
            pool.add(call, turn)
        except RuntimeError as fault:
            self.in_flight.close(call, self._encode_fault(call.request, fault))

    def _perform(self, call: Call | None) -> None:
        """Run one call, or prepare for calls, in a worker thread."""
        try:
            self._carry_out(call)
        except BaseException:  # noqa: BLE001 - whoever waits for the answer learns it by the end
            self.failed = True
            self._wake()

    def _perform_and_wake(self, call: Call) -> None:
        """Once a handshake is answered, the reading thread goes on with what was held behind it."""
        self._perform(call)
        self._wake()

    def _carry_out(self, call: Call | None) -> None:
        if call is None:
            self._prepare()
            return
        self._writer.wait_for_room()
        if not call.open:
            return  # cancelled between leaving the queue and here
        try:
            result: object = call.work(call)
        except BaseException as fault:  # noqa: BLE001 - a worker has to survive whatever its tool does
            result = fault
        answer = partial(self._encode_either, result)
        if not self.in_flight.keep(call, answer):
            self.in_flight.close(call, answer(call.request))

    def _encode_either(self, result: object, request: Request) -> bytes:
        """The answer to a request: a result, or a fault."""
        try:
            if not isinstance(result, BaseException):
                return self._encode_result(request, result)
        except BaseException as fault:  # noqa: BLE001 - what no JSON can hold
            result = fault
        return self._encode_fault(request, result)

    def _prepare(self) -> None:
        try:
            self._provider.prepare()
        except Exception as fault:  # noqa: BLE001 - the calls will say what is wrong
            log.log(f"preparing failed: {type(fault).__name__} {log.where(fault)}")

    def answer(self, request: Request, result: Json) -> None:
        """Answer a request that needed no thread."""
        self.in_flight.answer(request, self._encode_result(request, result))

    def refuse(self, request: Request, fault: BaseException) -> None:
        """Answer a request with its fault."""
        self.in_flight.answer(request, self._encode_fault(request, fault))

    def _encode_result(self, request: Request, result: object) -> bytes:
        if not isinstance(result, dict):
            raise TypeError("a provider's result is a dict")
        if request.modern:
            result = protocol.modern_result(result, self._info)
        return protocol.encode(protocol.response(request.id, result))

    def _encode_fault(self, request: Request, fault: BaseException) -> bytes:
        if isinstance(fault, (Refused, ProviderFault)):
            answer = protocol.error(request.id, fault.code, str(fault), fault.data)
        else:
            # The text of a foreign exception may quote what nobody should read.
            log.log(f"internal error: {type(fault).__name__} {log.where(fault)}")
            answer = protocol.error(request.id, protocol.INTERNAL_ERROR, f"Internal error: {type(fault).__name__}")
        return protocol.encode(answer)
