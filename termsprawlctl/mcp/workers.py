"""Threads that run jobs, at most so many at once, each job in its turn."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ..base import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .provider import Turn


class _Queue:
    """The jobs of one key: `waiting` in order of arrival, `running` with whether they have begun."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Turn] = OrderedDict()
        self.running: dict[Hashable, bool] = {}

    def may_begin(self, turn: Turn) -> bool:
        return all(self.running.values()) if turn.reaches_in else not self.running


class WorkerPool:
    """Runs `run(job)` for each job added; threads start when they are needed, and stay.

    Jobs without a turn run in order of arrival, as soon as a thread is free. A job is
    hashable and added once.
    """

    def __init__(self, limit: int, run: Callable[..., object]) -> None:
        self._limit = limit
        self._run = run
        self._changed = threading.Condition()
        # In order; unlike a deque, it finds any of them at once.
        self._ready: OrderedDict[Hashable, None] = OrderedDict()
        self._turns: dict[Hashable, Turn] = {}
        self._queues: dict[str, _Queue] = {}
        self._threads = 0
        self._idle = 0

    def add(self, job: Hashable, turn: Turn | None = None) -> None:
        """Take a job; never blocks. Raises RuntimeError when there is no thread for it and none can be had."""
        with self._changed:
            if not self._threads:
                self._start_thread()
            if turn is None:
                self._make_ready(job)
            else:
                self._turns[job] = turn
                self._queues.setdefault(turn.key, _Queue()).waiting[job] = turn
                self._advance(turn.key)

    def remove(self, job: Hashable) -> bool:
        """Take a job back; False when it has been started (or was never added)."""
        with self._changed:
            turn = self._turns.get(job)
            if turn is not None and self._queues[turn.key].waiting.pop(job, None) is not None:
                del self._turns[job]
                self._advance(turn.key)  # it may have been what others waited behind
                return True
            if job not in self._ready:
                return False
            del self._ready[job]
            self._leave(job)
            return True

    def begun(self, job: Hashable) -> None:
        """A running job lets those that reach in begin."""
        with self._changed:
            turn = self._turns.get(job)
            if turn is not None:
                self._queues[turn.key].running[job] = True
                self._advance(turn.key)

    def _advance(self, key: str) -> None:
        queue = self._queues[key]
        while queue.waiting:
            job, turn = next(iter(queue.waiting.items()))
            if not queue.may_begin(turn):
                return
            del queue.waiting[job]
            queue.running[job] = False
            self._make_ready(job)
        if not queue.running:
            del self._queues[key]

    def _leave(self, job: Hashable) -> None:
        turn = self._turns.pop(job, None)
        if turn is not None:
            del self._queues[turn.key].running[job]
            self._advance(turn.key)

    def _make_ready(self, job: Hashable) -> None:
        if len(self._ready) >= self._idle and self._threads < self._limit:
            self._start_thread()
        self._ready[job] = None
        self._changed.notify()

    def _start_thread(self) -> None:
        try:
            threads.start(self._work)
        except RuntimeError:
            if not self._threads:
                raise
            return  # the others take the job, later
        self._threads += 1
        self._idle += 1

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ready)
                self._idle -= 1
                job, _ = self._ready.popitem(last=False)
            self._run(job)
            with self._changed:
                self._idle += 1
                self._leave(job)
