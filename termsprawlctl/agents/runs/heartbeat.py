"""Labels are repeated while nothing happens. Pure."""

from __future__ import annotations

from collections.abc import Callable


class Heartbeat:
    """A report(label) that hands on to `send(label)`; beat() repeats the last label when it is `every_s` old."""

    def __init__(self, send: Callable[[str], None], every_s: float, clock: Callable[[], float]) -> None:
        self._send = send
        self._every_s = every_s
        self._clock = clock
        self._label = ""
        self._sent_s = 0.0

    def __call__(self, label: str) -> None:
        self._label = label
        self._sent_s = self._clock()
        self._send(label)

    def beat(self) -> None:
        """To be called often while waiting."""
        if self._label and self._clock() - self._sent_s >= self._every_s:
            self(self._label)
