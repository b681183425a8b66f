"""Which of some descriptors can be read."""

from __future__ import annotations

import select


def readable(descriptors: list[int], timeout_s: float | None) -> list[int]:
    """Those that have something to read, or have ended, as soon as there are any; [] when the time is up.

    Unlike select() it takes every number: whoever starts this program may have left it
    more than a thousand open files. `timeout_s` None: without end.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if timeout_s is None else 1000 * max(0.0, timeout_s))]
