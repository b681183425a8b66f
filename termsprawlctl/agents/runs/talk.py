"""The two-way side of a run whose CLI is spoken to: what is sent, and how the conversation is ended."""

from __future__ import annotations

from ..clis.acp import AcpReader
from .capture import Capture

# The end that left nothing behind with any agent: cancel, its answer, the end of its input, and only then signals.
CANCEL_S = 5.0
EXIT_S = 5.0


class Talk:
    """Hands on what the reader wants to say, and closes the input when the turn is over."""

    def __init__(self, reader: AcpReader, capture: Capture) -> None:
        self._reader = reader
        self._capture = capture
        self._cancelled_s: float | None = None
        self._closed_s: float | None = None

    @property
    def begun(self) -> bool:
        """Whether the agent was given the prompt."""
        return self._reader.prompted

    def go_on(self, now: float) -> None:
        """To be called after each look at the output; `now` in monotonic seconds."""
        messages, self._reader.outbox = self._reader.outbox, []
        sent = self._capture.send(b"".join(messages))
        if self._reader.turn_over and sent and self._closed_s is None:
            self._close(now)

    def may_signal(self, now: float) -> bool:
        """Whether it is time for signals, in a run that has to be stopped; asks for the end otherwise."""
        if self._closed_s is not None:
            return now - self._closed_s > EXIT_S
        if self._cancelled_s is None:
            self._cancelled_s = now
            self._reader.cancel()
        if not self._reader.prompted or now - self._cancelled_s > CANCEL_S:
            self._close(now)
        return False

    def _close(self, now: float) -> None:
        self._closed_s = now
        self._capture.close_input()
