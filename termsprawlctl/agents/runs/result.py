"""What one run came to."""

from __future__ import annotations

from ..clis.cli import Request
from ..model.reader import Reader
from .status import Status


class Result:
    """How a run ended and what is known of it."""

    __slots__ = (
        "agent",
        "answer",
        "changes",
        "cwd",
        "duration_ms",
        "errors",
        "exit_status",
        "left_out",
        "model",
        "output",
        "reader",
        "status",
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
