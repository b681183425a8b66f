"""Threads that have begun when start() returns, or never will.

threading.Thread.start() waits for the new thread's first words without end. One that ran out
of memory before them (seen with 40 MiB of address space, on CPython 3.11) leaves the
starting thread, and with it a whole server, standing for ever.
"""

from __future__ import annotations

import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# A thread begins within milliseconds; a machine that is busy or was asleep gets much longer.
BEGIN_S = 10.0


class Running:
    """A thread that was started."""

    __slots__ = ("_over",)

    def __init__(self) -> None:
        self._over = _thread.allocate_lock()
        self._over.acquire()

    def join(self, timeout_s: float = -1) -> bool:
        """Wait until it has ended, at most timeout_s seconds where given; whether it has."""
        if not self._over.acquire(timeout=timeout_s):
            return False
        self._over.release()  # for whoever asks next
        return True

    def has_ended(self) -> None:
        """For start() alone."""
        self._over.release()


def start(run: Callable[[], object]) -> Running:
    """Run `run()` in a thread of its own, which does not keep the process from ending.

    Raises RuntimeError when no thread is available, or it does not begin within BEGIN_S
    seconds; then `run` is never called.
    """
    begun, decided, running = _thread.allocate_lock(), _thread.allocate_lock(), Running()
    begun.acquire()

    def enter() -> None:
        # Whoever comes first decides: a late thread finds that nobody waits for it.
        if decided.acquire(False):
            begun.release()
            try:
                run()
            finally:
                running.has_ended()

    _thread.start_new_thread(enter, ())
    if not begun.acquire(timeout=BEGIN_S) and decided.acquire(False):
        raise RuntimeError("a new thread did not begin")
    return running


def start_unawaited(run: Callable[[], object]) -> None:
    """Run `run()` in a thread of its own that nobody waits for: one that runs out of memory may never begin.

    Raises RuntimeError when no thread is available.
    """
    _thread.start_new_thread(run, ())
