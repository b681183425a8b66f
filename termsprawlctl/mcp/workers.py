"""Threads that run jobs in order of arrival, at most so many at once."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ..base import threads


class Lane:
    """Runs `run(job)` for each job added; threads start when they are needed, and stay."""

    def __init__(self, limit: int, run) -> None:
        self._limit = limit
        self._run = run
        self._changed = threading.Condition()
        # Jobs in order of arrival; unlike a deque, it finds any of them at once.
        self._queue: OrderedDict = OrderedDict()
        self._threads = 0
        self._idle = 0

    def add(self, job) -> None:
        """Queue a job, hashable and not queued yet; never blocks.

        Raises RuntimeError when there is no thread for it and none can be had.
        """
        with self._changed:
            if len(self._queue) >= self._idle and self._threads < self._limit:
                self._start_thread()
            self._queue[job] = None
            self._changed.notify()

    def remove(self, job) -> bool:
        """Take a job back; False when it has been started (or was never added)."""
        with self._changed:
            return self._queue.pop(job, self) is None

    def _start_thread(self) -> None:
        try:
            threads.start(self._work)
        except RuntimeError:
            if not self._threads:
                raise
            return  # the others take the job, later
        self._threads += 1

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._queue)
                self._idle -= 1
                job, _ = self._queue.popitem(last=False)
            self._run(job)
