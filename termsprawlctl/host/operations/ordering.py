"""Which operations run one at a time, in the order in which they came."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...operations.table import Operation


class ExpiredError(Exception):
    """The turn did not come in time; nothing was executed."""


class Later:
    """The answer of an operation whose rest may take long and needs no turn: `finish()` returns the value.

    Or it returns InTurn, where only a part of it takes long.
    """

    def __init__(self, finish) -> None:
        self.finish = finish


class InTurn:
    """What is left to do of an operation needs its turn again, or a terminal's: `run()` returns the value, or Later."""

    def __init__(self, run, node_id: str | None = None) -> None:
        self.run = run
        self.node_id = node_id


def turn_of(operation: Operation, project_id: str, args: dict) -> str | None:
    """The key of the turn that an operation waits for; None: for none.

    What only looks goes at once. What types into a terminal or ends it waits for that
    terminal, so that a long start there holds up nobody else; all else for the project.
    """
    if operation.read_only:
        return None
    # Without a nodeId it makes one, as those do that steer nothing.
    return terminal_turn(project_id, args["nodeId"]) if operation.steers and "nodeId" in args else project_id


def terminal_turn(project_id: str, node_id: str) -> str:
    """The key of a terminal's turn."""
    return f"{project_id} {node_id}"


class Turns:
    """A queue per key. `max_wait_s` bounds the wait for a turn, not the turn itself."""

    def __init__(self, max_wait_s: float, clock=time.monotonic) -> None:
        self._max_wait_s = max_wait_s
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: dict[str, deque] = {}

    @contextlib.contextmanager
    def turn(self, key: str):
        """Wait for the turn and hold it. Raises ExpiredError when the wait took too long."""
        mine = threading.Event()
        began = self._clock()
        with self._lock:
            queue = self._queues.setdefault(key, deque())
            queue.append(mine)
            if queue[0] is mine:
                mine.set()
        try:
            mine.wait(self._max_wait_s)
            if not mine.is_set() or self._clock() - began > self._max_wait_s:
                raise ExpiredError
            yield
        finally:
            self._leave(key, mine)

    def _leave(self, key: str, mine: threading.Event) -> None:
        with self._lock:
            queue = self._queues[key]
            was_first = queue[0] is mine
            queue.remove(mine)
            if not queue:
                del self._queues[key]
            elif was_first:
                queue[0].set()
