"""The rules of a share: who may navigate when, and what a repeated request gets. Pure.

It knows nothing of sockets or tmux and never waits. The view tells what it sees through
observe() and human_input(), and is asked two things:

    view.validate(session_id, done)   calls done(None) when the session can be shown, else done(the code that says why)
    view.navigate(session_id, done)   shows it, observes anew, then calls done(how it ended: WENT, FENCED or FAILED)

`done` may be called at once, later, or never; a view that raises has failed. What a
caller gets goes to the function that it handed in, exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from .. import wire

# How long the user is left alone after an input of theirs, unless they want it longer.
QUIET_S = 1.5
# From the arrival of a request to the start of its navigation. Shorter than the
# adapter's own deadline, so that it hears the answer.
VALIDATION_S = 4.0
MAX_RECEIPTS = 128

# How a navigation ends. FENCED: the view saw the user act in the last moment, and nothing happened.
WENT, FENCED, FAILED = "went", "fenced", "failed"


@dataclass(frozen=True)
class Identity:
    """Which run of a share this is: two uuids."""

    instance_id: str
    generation: str


@dataclass(frozen=True)
class Observed:
    """What a view sees.

    `workspace`: anything comparable that changes when the user looks at something else; it is
    part of the fence and of no answer. `session_id`: None on the home route. `blocked`: without
    the pause after an input, which is the controller's.
    """

    workspace: object
    session_id: str | None
    ready: bool
    blocked: bool


NOTHING = Observed(workspace=None, session_id=None, ready=False, blocked=True)


class View(Protocol):
    """What is shown to the user, and how to change that."""

    def validate(self, session_id: str, done: Callable[[str | None], None]) -> None: ...

    def navigate(self, session_id: str, done: Callable[[str], None]) -> None: ...


Reply = Callable[[dict], None]


class _Receipt:
    """One request by its id: what was asked, the answer once there is one, and who waits for it."""

    __slots__ = ("answer", "request", "waiting")

    def __init__(self, request: wire.SelectSession) -> None:
        self.request = request
        self.answer: dict | None = None
        self.waiting: list[Reply] = []


class _Flight:
    """The one navigation under way; it ends when the view has settled, answered or not."""

    __slots__ = ("deadline_s", "navigating", "receipt")

    def __init__(self, receipt: _Receipt, deadline_s: float) -> None:
        self.receipt = receipt
        self.deadline_s = deadline_s
        self.navigating = False


class Controller:
    """One share, from its start to its revocation.

    `clock` returns seconds and never goes back; `quiet_s`: how long the user is left alone
    after an input of theirs.
    """

    def __init__(
        self,
        view: View,
        identity: Identity,
        clock: Callable[[], float] = time.monotonic,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._view = view
        self._identity = identity
        self._clock = clock
        self._quiet_s = quiet_s
        self._observed = NOTHING
        self._quiet_until_s = clock()
        self._published: Observed | None = None
        self._revision = 0
        self._receipts: dict[str, _Receipt] = {}
        self._flight: _Flight | None = None
        self.revoked = False

    # What the view reports.

    def observe(self, observed: Observed) -> None:
        """The view's state as it is now."""
        self._observed = observed
        self._publish()

    def human_input(self, at_s: float) -> None:
        """The user did something, at the latest at `at_s` of the clock (it may lie ahead)."""
        self._quiet_until_s = max(self._quiet_until_s, at_s + self._quiet_s)
        if self._published is not None:
            self._revision += 1
        self._publish()

    # What a caller asks.

    def context(self) -> dict:
        """The answer to get_view_context."""
        if self.revoked:
            return wire.rejected(wire.REVOKED)
        return {"status": wire.CONTEXT, "context": self._view_context()}

    def select(self, request: wire.SelectSession, reply: Reply) -> None:
        """Answer select_session through reply(answer), at once or later.

        A repeated request gets the first one's answer, also while that is on its way.
        """
        receipt = self._receipts.get(request.request_id)
        if self.revoked:
            reply(wire.rejected(wire.REVOKED))
        elif receipt is None:
            self._select_first(request, reply)
        elif receipt.request != request:
            reply(wire.rejected(wire.REQUEST_CONFLICT))
        elif receipt.answer is not None:
            reply(receipt.answer)
        else:
            receipt.waiting.append(reply)

    def hang_up(self, reply: Reply) -> None:
        """The caller behind `reply` is gone: it is not called any more, and what only that one wanted is cancelled."""
        flight = self._flight
        if flight is None or reply not in flight.receipt.waiting:
            return
        receipt = flight.receipt
        receipt.waiting.remove(reply)
        if not receipt.waiting and not flight.navigating:
            self._answer(receipt, wire.rejected(wire.CANCELLED))

    def tick(self) -> None:
        """Enforce the deadline; to be called when next_deadline_s() has come."""
        flight = self._flight
        if flight and flight.receipt.answer is None and self._clock() >= flight.deadline_s:
            code = wire.OUTCOME_UNKNOWN if flight.navigating else wire.DEADLINE_EXCEEDED
            self._answer(flight.receipt, wire.rejected(code))

    def next_deadline_s(self) -> float | None:
        """The clock's time at which tick() has something to do."""
        flight = self._flight
        return flight.deadline_s if flight and flight.receipt.answer is None else None

    def revoke(self) -> None:
        """End it all: nothing navigates from here on. Harmless when done twice."""
        self.revoked = True
        flight = self._flight
        if flight and flight.receipt.answer is None:
            # A navigation that has left cannot be taken back, nor be told of as if it had not.
            code = wire.OUTCOME_UNKNOWN if flight.navigating else wire.REVOKED
            self._answer(flight.receipt, wire.rejected(code))

    # A navigation, step by step.

    def _select_first(self, request: wire.SelectSession, reply: Reply) -> None:
        if len(self._receipts) >= MAX_RECEIPTS:
            reply(wire.rejected(wire.REQUEST_LIMIT))
            return
        receipt = self._receipts[request.request_id] = _Receipt(request)
        receipt.waiting.append(reply)
        refusal = self._refusal(request) or (wire.BUSY if self._flight else None)
        if refusal:
            self._answer(receipt, wire.rejected(refusal))
            return
        flight = self._flight = _Flight(receipt, self._clock() + VALIDATION_S)
        try:
            self._view.validate(request.session_id, lambda refusal: self._validated(flight, refusal))
        except Exception:  # noqa: BLE001 - a view may raise anything
            code = wire.OUTCOME_UNKNOWN if flight.navigating else wire.INTERNAL_ERROR
            self._settle(flight, wire.rejected(code))

    def _validated(self, flight: _Flight, refusal: str | None) -> None:
        if self._flight is not flight or flight.navigating:
            return  # the view called twice
        self.tick()
        if flight.receipt.answer is not None:
            self._settle(flight, flight.receipt.answer)
            return
        request = flight.receipt.request
        refusal = refusal or self._refusal(request)
        if refusal:
            self._settle(flight, wire.rejected(refusal))
            return
        flight.navigating = True
        try:
            self._view.navigate(request.session_id, lambda end: self._navigated(flight, end))
        except Exception:  # noqa: BLE001 - it may have got half-way
            self._settle(flight, wire.rejected(wire.OUTCOME_UNKNOWN))

    def _navigated(self, flight: _Flight, end: str) -> None:
        if self._flight is not flight:
            return
        request = flight.receipt.request
        if end == WENT and self._observed.session_id == request.session_id:
            self._settle(flight, {"status": wire.APPLIED, "context": self._view_context()})
        elif end == FENCED:
            self._settle(flight, wire.rejected(self._refusal(request) or wire.USER_ACTIVE))
        else:
            self._settle(flight, wire.rejected(wire.OUTCOME_UNKNOWN))

    def _settle(self, flight: _Flight, answer: dict) -> None:
        if self._flight is flight:
            self._flight = None
        self._answer(flight.receipt, answer)

    def _answer(self, receipt: _Receipt, answer: dict) -> None:
        if receipt.answer is not None:
            return
        receipt.answer = answer
        waiting, receipt.waiting = receipt.waiting, []
        for reply in waiting:
            reply(answer)

    # The fence.

    def _refusal(self, request: wire.SelectSession) -> str | None:
        state = self._publish()
        if self.revoked:
            return wire.REVOKED
        if Identity(request.instance_id, request.generation) != self._identity:
            return wire.STALE_TARGET
        if request.expected_revision != self._revision:
            return wire.STALE_REVISION
        if not state.ready:
            return wire.NOT_READY
        return wire.USER_ACTIVE if state.blocked else None

    def _view_context(self) -> dict:
        state = self._publish()
        view: dict[str, object] = {
            "instanceId": self._identity.instance_id,
            "generation": self._identity.generation,
            "revision": self._revision,
        }
        if state.session_id is None:
            view["route"] = wire.HOME
        else:
            view["route"] = wire.SESSION
            view["sessionId"] = state.session_id
        return {**view, "ready": state.ready, "blocked": state.blocked}

    def _publish(self) -> Observed:
        """The state as it is to be told now; the revision grows when it is another than last time."""
        blocked = self._observed.blocked or self._clock() < self._quiet_until_s
        state = replace(self._observed, blocked=blocked)
        if self._published is not None and state != self._published:
            self._revision += 1
        if self._observed is not NOTHING:
            self._published = state
        return state
