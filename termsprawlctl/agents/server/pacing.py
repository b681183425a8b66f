"""When labels are told: repeated while nothing happens, together when too many happen. Pure.

A client is sent only a few messages a second: a burst at once, then one now and then,
always the newest. So labels that have to wait are told together, in one message.
"""

from __future__ import annotations

from ...mcp.calls import PROGRESS_BURST, PROGRESS_INTERVAL_S

SEPARATOR = " · "
MAX_MESSAGE = 600


class Heartbeat:
    """A report(label) that hands on to `tell(label)`; beat() repeats the last label when it is `every_s` old."""

    def __init__(self, tell, every_s: float, clock) -> None:
        self._tell = tell
        self._every_s = every_s
        self._clock = clock
        self._label = ""
        self._told_s = 0.0

    def __call__(self, label: str) -> None:
        self._label = label
        self._told_s = self._clock()
        self._tell(label)

    def beat(self) -> None:
        """To be called often while waiting."""
        if self._label and self._clock() - self._told_s >= self._every_s:
            self(self._label)


class Paced:
    """A report(label) that hands messages on to `tell(message)`; `clock` returns seconds."""

    def __init__(self, tell, clock) -> None:
        self._tell = tell
        self._clock = clock
        self._allowance = float(PROGRESS_BURST)
        self._at_s = clock()
        self._waiting: list[str] = []

    def __call__(self, label: str) -> None:
        now = self._clock()
        self._allowance = min(PROGRESS_BURST, self._allowance + (now - self._at_s) / PROGRESS_INTERVAL_S)
        self._at_s = now
        if self._waiting and self._allowance >= 1:
            # What waited has been sent in the meantime.
            self._allowance -= 1
            self._waiting.clear()
        if self._allowance >= 1:
            self._allowance -= 1
            self._tell(label)
            return
        if not self._waiting or self._waiting[-1] != label:
            self._waiting.append(label)
        while len(self._waiting) > 1 and sum(map(len, self._waiting)) > MAX_MESSAGE:
            del self._waiting[0]
        self._tell(SEPARATOR.join(self._waiting))
