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

    def beat(self, silent_s: float = 0.0) -> None:
        """To be called often while waiting; `silent_s` says for how long the CLI has printed nothing."""
        if self._label and self._clock() - self._sent_s >= self._every_s:
            self._sent_s = self._clock()
            minutes = int(silent_s // 60)
            self._send(f"{self._label} (no output for {minutes} min)" if minutes else self._label)
