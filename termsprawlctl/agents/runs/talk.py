"""The two-way side of a run whose CLI is spoken to: what is sent, and how the conversation is ended."""

from __future__ import annotations

from ..clis.acp import AcpReader
from ..clis.permission import Permission
from ..model.text import MAX_LABEL, one_line
from .capture import Capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...mcp.provider import Question
    from ..model.types import AskPerson, Report


# The end that left nothing behind with any agent: cancel, its answer, the end of its input, and only then signals.
CANCEL_S = 5.0
EXIT_S = 5.0


class Talk:
    """Hands on what the reader wants to say, and closes the input when the turn is over."""

    def __init__(self, reader: AcpReader, capture: Capture, ask: AskPerson | None, ask_s: float) -> None:
        self._reader = reader
        self._capture = capture
        self._ask = ask
        self._ask_s = ask_s
        self._asked: tuple[Permission, Question] | None = None
        self._asked_at_s = 0.0
        self.abandoned = False  # nobody has answered, and nobody waits for the result
        self._cancelled_s: float | None = None
        self._closed_s: float | None = None

    @property
    def begun(self) -> bool:
        """Whether the agent was given the prompt."""
        return self._reader.prompted

    @property
    def asking(self) -> bool:
        """Whether a person is being asked."""
        return self._asked is not None

    def go_on(self, now: float, report: Report) -> None:
        """To be called after each look at the output; `now` in monotonic seconds."""
        if self._asked is not None:
            self._hear(*self._asked, now)
        elif self._reader.permissions.open:
            self._put(self._reader.permissions.open[0], now, report)
        messages, self._reader.outbox = self._reader.outbox, []
        sent = self._capture.send(b"".join(messages))
        if self._reader.turn_over and sent and self._closed_s is None:
            self._close(now)

    def _put(self, permission: Permission, now: float, report: Report) -> None:
        """Ask a person."""
        question = self._ask(permission.message, permission.options) if self._ask is not None else None
        if question is None:
            self._reader.permissions.answer(permission, "", "nobody can be asked here")
            return
        self._asked, self._asked_at_s = (permission, question), now
        report(f"Waiting for permission: {one_line(permission.call.command(), MAX_LABEL)}")

    def _hear(self, permission: Permission, question: Question, now: float) -> None:
        """Hand on what the person says, unless the agent has lost interest or the time is over."""
        answer = question.look()
        if permission not in self._reader.permissions.open:
            question.withdraw()
        elif answer is not None:
            self._reader.permissions.answer(permission, answer, "" if answer else "not allowed by the user")
        elif now - self._asked_at_s > self._ask_s:
            self.abandoned = question.alone
            question.withdraw()
            self._reader.permissions.answer(permission, "", f"nobody answered within {self._ask_s:g} s")
        else:
            return
        self._asked = None

    def hang_up(self) -> None:
        """The agent is gone: nobody is asked any more."""
        if self._asked is not None:
            self._asked[1].withdraw()
            self._asked = None

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
