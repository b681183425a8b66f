"""Tasks that agents gave to each other, kept in agent-tools/tasks/<id>.json.

States: submitted, then completed or failed, for good. The running host is the only one
that writes these files; it reads them once, when it starts. What was pending then fails:
whether the recipient still knows of it cannot be told, and nothing is done twice unasked.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...base.errors import CtlError
from ...base.files import private_directory, read_object, remove_quietly, write_atomically
from ...base.layout import is_id

SUBMITTED, COMPLETED, FAILED = "submitted", "completed", "failed"
ANSWER_WITHIN_S = 15 * 60.0
MAX_TASKS = 256
LOOK_INTERVAL_S = 1.0  # how soon a wait notices that the host stops, or that a task is too old
MAX_SHOWN_CHARS = 200
KEEP_FINISHED_MS = 7 * 24 * 3600 * 1000
EXPIRED = "Not answered within 15 minutes. The work may have been done in part."
RESTARTED = (
    "The host was restarted before an answer came. The work was not sent again; it may have been done in part. "
    "To send it again, use a new messageId."
)

# How each text of a task is called in its file and in answers.
_TEXTS = {
    "task_id": "id",
    "project_id": "projectId",
    "sender": "sourceNodeId",
    "recipient": "targetNodeId",
    "message_id": "messageId",
    "text": "text",
}


@dataclass
class Task:
    """One task. `response` is the recipient's answer, or the reason of a failure; None while it is pending.

    Times ending in _ms are wall clock since 1970; deadline_s is the store's own clock.
    """

    task_id: str
    project_id: str
    sender: str
    recipient: str
    message_id: str
    text: str
    state: str = SUBMITTED
    response: str | None = None
    created_ms: int = 0
    updated_ms: int = 0
    deadline_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """As it stands in its file and in answers."""
        content = {name: getattr(self, attribute) for attribute, name in _TEXTS.items()}
        content.update(state=self.state, createdAt=self.created_ms, updatedAt=self.updated_ms)
        return content if self.response is None else {**content, "response": self.response}


class TaskStore:
    """The tasks of one data directory. Safe to use from several threads; all methods may raise CtlError.

    `now_ms` is the wall clock, for what is kept over restarts; `clock_s` must not jump.
    """

    def __init__(
        self,
        directory: str,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._now_ms = now_ms
        self._clock_s = clock_s
        self._lock = threading.Condition(threading.RLock())
        self._tasks: dict[str, Task] = {}

    def recover(self) -> list[str]:
        """Read what an earlier host left, once this one owns the directory, and fail what was pending.

        Returns the names of files that hold no task; they stay as they are.
        """
        damaged = []
        with self._lock:
            try:
                names = sorted(os.listdir(private_directory(self._directory)))
            except OSError as error:
                raise CtlError(
                    f"cannot use {self._directory}: {error.strerror}.", "Check its permissions and its disk."
                ) from None
            for name in names:
                path = os.path.join(self._directory, name)
                task = _read(path)
                if task is not None:
                    self._tasks[task.task_id] = task
                elif name.startswith("."):
                    remove_quietly(path)  # what a killed write left
                else:
                    damaged.append(name)
            self._drop_old()
            for task in self._pending():
                self._finish_regardless(task, RESTARTED)
        return damaged

    def repeated(self, project_id: str, sender: str, recipient: str, message_id: str, text: str) -> Task | None:
        """The task that this same message made before. Raises CtlError when its id was used for another one."""
        with self._lock:
            self._expire()
            for task in self._tasks.values():
                if (task.project_id, task.sender, task.message_id) == (project_id, sender, message_id):
                    if (task.recipient, task.text) == (recipient, text):
                        return task
                    raise CtlError(
                        f"messageId {message_id!r} was used for another task.",
                        "Use a new one; an old one is only for repeating exactly the same call.",
                    )
            return None

    def create(self, project_id: str, sender: str, recipient: str, message_id: str, text: str) -> Task:
        """A new pending task, written down. The caller delivers it."""
        with self._lock:
            self._expire()
            if any(task.recipient == recipient for task in self._pending()):
                raise CtlError(
                    f"{recipient} has a pending task already.", "Wait until that is answered, or do the work yourself."
                )
            self._drop_old()
            self._make_room()
            now_ms = self._now_ms()
            task = Task(str(uuid.uuid4()), project_id, sender, recipient, message_id, text)
            task.created_ms = task.updated_ms = now_ms
            task.deadline_s = self._clock_s() + ANSWER_WITHIN_S
            self._write(task)
            self._tasks[task.task_id] = task
            return task

    def get(self, task_id: str) -> Task | None:
        """The task with this id, as it stands now."""
        with self._lock:
            self._expire()
            return self._tasks.get(task_id)

    def answer(self, task: Task, state: str, text: str) -> None:
        """Finish a pending task with its recipient's answer; the same answer once more changes nothing.

        Raises CtlError when it is over in another way.
        """
        with self._lock:
            self._expire()
            if task.state == SUBMITTED:
                self._finish(task, state, text)
            elif (task.state, task.response) != (state, text):
                raise CtlError(
                    f"Task {task.task_id} is over, {task.state}: {head_of(task.response or '')}",
                    "Do not answer it again.",
                )

    def fail(self, task: Task, reason: str) -> None:
        """Finish a task that can no longer be answered; one that is finished stays as it is."""
        with self._lock:
            if task.state == SUBMITTED:
                self._finish_regardless(task, reason)

    def fail_all_of(self, node_id: str, reason: str) -> None:
        """Finish what a node was asked, and what it asked others."""
        with self._lock:
            for task in self._pending():
                if node_id in (task.sender, task.recipient):
                    self._finish_regardless(task, reason)

    def wait(self, task: Task, timeout_s: float, stopping: threading.Event) -> None:
        """Wait until a task is over, at most so long; a host that stops ends the wait."""
        end_s = time.monotonic() + timeout_s
        with self._lock:
            while task.state == SUBMITTED and not stopping.is_set():
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    return
                self._lock.wait(min(left_s, LOOK_INTERVAL_S))
                self._expire()

    def _pending(self) -> list[Task]:
        return [task for task in self._tasks.values() if task.state == SUBMITTED]

    def _expire(self) -> None:
        now_s = self._clock_s()
        for task in self._pending():
            if now_s >= task.deadline_s:
                self._finish_regardless(task, EXPIRED)

    def _finish_regardless(self, task: Task, reason: str) -> None:
        # A disk that is full must not keep a task alive: after a restart it fails anyway.
        try:
            self._finish(task, FAILED, reason)
        except CtlError:
            self._set(task, replace(task, state=FAILED, response=reason, updated_ms=self._now_ms()))

    def _finish(self, task: Task, state: str, response: str) -> None:
        finished = replace(task, state=state, response=response, updated_ms=self._now_ms())
        self._write(finished)
        self._set(task, finished)

    def _set(self, task: Task, finished: Task) -> None:
        task.state, task.response, task.updated_ms = finished.state, finished.response, finished.updated_ms
        self._lock.notify_all()

    def _drop_old(self) -> None:
        oldest_ms = self._now_ms() - KEEP_FINISHED_MS
        for task in list(self._tasks.values()):
            if task.state != SUBMITTED and task.updated_ms < oldest_ms:
                self._drop(task)

    def _make_room(self) -> None:
        """Drop finished tasks, the oldest first, until there is room for one more."""
        finished = sorted(
            (task for task in self._tasks.values() if task.state != SUBMITTED), key=lambda task: task.updated_ms
        )
        for task in finished[: max(0, len(self._tasks) - MAX_TASKS + 1)]:
            self._drop(task)
        if len(self._tasks) >= MAX_TASKS:
            raise CtlError(f"{MAX_TASKS} tasks are pending, which is the most.", "Wait until some are answered.")

    def _drop(self, task: Task) -> None:
        remove_quietly(self._path(task.task_id))
        del self._tasks[task.task_id]

    def _path(self, task_id: str) -> str:
        return os.path.join(self._directory, f"{task_id}.json")

    def _write(self, task: Task) -> None:
        try:
            private_directory(self._directory)
            write_atomically(self._path(task.task_id), json.dumps(task.as_json()).encode())
        except OSError as error:
            raise CtlError(f"Cannot write the task: {error.strerror}.", "Nothing was changed.") from None


def _read(path: str) -> Task | None:
    """The task in a file; None where there is none."""
    content = read_object(path, missing={})
    if os.path.basename(path) != f"{content.get('id')}.json":
        return None
    texts: dict[str, Any] = {attribute: content.get(name) for attribute, name in _TEXTS.items()}
    state = content.get("state")
    if not all(isinstance(text, str) for text in texts.values()) or not is_id(content["id"]):
        return None
    if state not in (SUBMITTED, COMPLETED, FAILED):
        return None
    response = content.get("response")
    return Task(
        **texts,
        state=state,
        response=response if isinstance(response, str) else None,
        created_ms=_time(content.get("createdAt")),
        updated_ms=_time(content.get("updatedAt")),
    )


def head_of(text: str) -> str:
    """What fits into an error of it."""
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _time(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
