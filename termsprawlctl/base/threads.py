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


def start(run: Callable[[], object]) -> None:
    """Run `run()` in a thread of its own, which does not keep the process from ending.

    Raises RuntimeError when no thread is available, or it does not begin within BEGIN_S
    seconds; then `run` is never called.
    """
    begun, decided = _thread.allocate_lock(), _thread.allocate_lock()
    begun.acquire()

    def enter() -> None:
        # Whoever comes first decides: a late thread finds that nobody waits for it.
        if decided.acquire(False):
            begun.release()
            run()

    _thread.start_new_thread(enter, ())
    if not begun.acquire(timeout=BEGIN_S) and decided.acquire(False):
        raise RuntimeError("a new thread did not begin")


def start_unawaited(run: Callable[[], object]) -> None:
    """Run `run()` in a thread of its own that nobody waits for: one that runs out of memory may never begin.

    Raises RuntimeError when no thread is available.
    """
    _thread.start_new_thread(run, ())
