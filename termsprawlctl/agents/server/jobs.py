"""Runs in the making: who may start now, and what became of those in the background."""

from __future__ import annotations

import threading
import time
from collections import deque

from ...mcp.provider import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import AskPerson, Json
    from ..runs.heartbeat import Heartbeat


QUEUE_LOOK_S = 0.1
# Results of background runs are a few kB each; the oldest finished ones are forgotten.
MAX_REMEMBERED = 200


class Slots:
    """So many runs at once; the others wait in the order in which they came."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, cancelled: threading.Event, report: Heartbeat) -> bool:
        """Wait for a slot, telling `report` when it has to; False when cancelled meanwhile."""
        ticket = object()
        reported = -1
        with self._changed:
            self._waiting.append(ticket)
        while True:
            with self._changed:
                if cancelled.is_set():
                    self._waiting.remove(ticket)
                    self._changed.notify_all()
                    return False
                if self._free and self._waiting[0] is ticket:
                    self._waiting.popleft()
                    self._free -= 1
                    self._changed.notify_all()
                    return True
                before = self._waiting.index(ticket)
                if before == reported:
                    self._changed.wait(QUEUE_LOOK_S)
            if before == reported:
                report.beat()
                continue
            reported = before
            report(f"Queued: all slots are busy, {before} before this run" if before else "Queued: next to start")

    def give_back(self) -> None:
        """A run has ended."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()


class Job:
    """One run in the background, seen from outside."""

    def __init__(self, run_id: str, cwd: str) -> None:
        self.run_id = run_id
        self.cwd = cwd
        self.status = "queued"
        self.step = ""
        self.cancelled = threading.Event()
        self.done = threading.Event()
        self.result: Json | None = None
        self._open: tuple[Question, str, list[tuple[str, str]]] | None = None  # a question for a person
        self._begun = time.monotonic()
        self._ended = 0.0

    def ask(self, message: str, options: list[tuple[str, str]]) -> Question:
        """Put a question to whoever waits for the result, now or later."""
        question = Question()
        self._open = (question, message, options)
        return question

    def pass_on(self, asked: Question | None, ask: AskPerson) -> Question | None:
        """Have the one who waits here asked what is open; returns that question, to be passed in the next time.

        Where they cannot be asked it is settled: nobody else will be.
        """
        if self._open is None or self._open[0].look() is not None:
            if asked is not None:
                asked.withdraw()
            return None
        question, message, options = self._open
        if asked is None:
            asked = ask(message, options)
        answer = "" if asked is None else asked.look()
        if answer is not None:
            question.settle(answer)
            return None
        return asked

    def finish(self, status: str, result: Json) -> None:
        """It has ended; `result` is what run would have returned."""
        self._ended = time.monotonic()
        self.status, self.result, self.step = status, result, ""
        self.done.set()

    def elapsed_ms(self) -> int:
        """Since it was asked for, until its end."""
        return round(((self._ended or time.monotonic()) - self._begun) * 1000)

    def row(self) -> Json:
        """Its line in a status report."""
        row = {"runId": self.run_id, "status": self.status, "elapsedMs": self.elapsed_ms()}
        if self.step and not self.done.is_set():
            row["step"] = self.step
        if self.cwd:
            row["cwd"] = self.cwd
        return row


class Jobs:
    """All background runs of a server, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """Remember a job; of too many finished ones the oldest are forgotten."""
        with self._lock:
            self._jobs[job.run_id] = job
            finished = [other for other in self._jobs.values() if other.done.is_set()]
            for old in finished[: max(0, len(self._jobs) - MAX_REMEMBERED)]:
                del self._jobs[old.run_id]

    def find(self, run_id: str) -> Job | None:
        """The job of this id, if it is remembered."""
        with self._lock:
            return self._jobs.get(run_id)

    def all(self) -> list[Job]:
        """All that are remembered."""
        with self._lock:
            return list(self._jobs.values())
