"""What one run came to."""

from __future__ import annotations

from ..clis.cli import Request
from ..model.reader import Reader
from .status import Status


class StillRunning:
    """A process of the agent that its end left behind. `command` is what it was started with."""

    __slots__ = ("command", "pid")

    def __init__(self, pid: int, command: str) -> None:
        self.pid = pid
        self.command = command


class Result:
    """How a run ended and what is known of it."""

    __slots__ = (
        "agent",
        "answer",
        "changes",
        "changes_partial",
        "cwd",
        "duration_ms",
        "errors",
        "exit_status",
        "heading",
        "left_out",
        "model",
        "output",
        "reader",
        "status",
        "still_running",
    )

    def __init__(self, agent: str, status: Status, reader: Reader, request: Request) -> None:
        self.agent = agent
        self.status = status
        self.reader = reader
        self.cwd = request.cwd
        self.model = reader.model or request.model
        self.exit_status: int | None = None  # None: it was not started
        self.duration_ms = 0
        self.errors = ""  # the end of stderr, cleaned
        self.output = ""  # the end of stdout, cleaned
        self.answer: str | None = None  # where the reader has less of it than a result can hold
        self.left_out = 0  # characters that are missing in the middle of `answer`
        self.changes: dict[str, str] = {}  # path -> added, modified, deleted
        self.changes_partial = False  # the folder could not be compared as a whole
        self.heading = ""  # what a reader has to know before the answer, a sentence
        self.still_running: list[StillRunning] = []
