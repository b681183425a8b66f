"""Tasks that agents gave to each other, kept in agent-tools/tasks/<taskId>.json.

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

from ...base.errors import CtlError
from ...base.files import private_directory, read_object, remove_quietly, write_atomically
from ...base.layout import is_id

SUBMITTED, COMPLETED, FAILED = "submitted", "completed", "failed"
ANSWER_WITHIN_S = 15 * 60.0
MAX_TASKS = 256
KEEP_FINISHED_MS = 7 * 24 * 3600 * 1000
EXPIRED = "Not answered within 15 minutes. The work may have been done in part."
RESTARTED = (
    "The host was restarted before an answer came. The work was not sent again; it may have been done in part. "
    "To send it again, use a new messageId."
)

_TEXTS = ("messageId", "projectId", "fromNodeId", "toNodeId", "text", "state")


class Task:
    """One task. Texts: reply (the recipient's answer) and reason (why the host let it fail) may be None.

    Times ending in _ms are wall clock since 1970; deadline_s is the store's own clock.
    """

    __slots__ = (
        "created_ms",
        "deadline_s",
        "finished_ms",
        "message_id",
        "project_id",
        "reason",
        "recipient",
        "reply",
        "sender",
        "state",
        "task_id",
        "text",
    )

    def __init__(self, task_id: str, project_id: str, sender: str, recipient: str, message_id: str, text: str) -> None:
        self.task_id = task_id
        self.project_id = project_id
        self.sender = sender
        self.recipient = recipient
        self.message_id = message_id
        self.text = text
        self.state = SUBMITTED
        self.reply: str | None = None
        self.reason: str | None = None
        self.created_ms = 0
        self.finished_ms: int | None = None
        self.deadline_s = 0.0


class TaskStore:
    """The tasks of one data directory. Safe to use from several threads; all methods may raise CtlError.

    `now_ms` is the wall clock, for what is kept over restarts; `clock_s` must not jump.
    """

    def __init__(self, directory: str, now_ms=lambda: int(time.time() * 1000), clock_s=time.monotonic) -> None:
        self._directory = directory
        self._now_ms = now_ms
        self._clock_s = clock_s
        self._lock = threading.RLock()
        self._tasks: dict[str, Task] = {}

    def recover(self) -> None:
        """Read what an earlier host left, once this one owns the directory, and fail what was pending."""
        with self._lock:
            try:
                names = sorted(os.listdir(private_directory(self._directory)))
            except OSError as error:
                raise CtlError(f"cannot use {self._directory}: {error.strerror}.") from None
            for name in names:
                path = os.path.join(self._directory, name)
                task = _read(path)
                if task is not None:
                    self._tasks[task.task_id] = task
                elif name.startswith("."):
                    remove_quietly(path)  # what a killed write left
            self._drop_old()
            for task in self._pending():
                self._finish_regardless(task, RESTARTED)

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
            task = Task(str(uuid.uuid4()), project_id, sender, recipient, message_id, text)
            task.created_ms = self._now_ms()
            task.deadline_s = self._clock_s() + ANSWER_WITHIN_S
            self._write(task, SUBMITTED, None, None, None)
            self._tasks[task.task_id] = task
            return task

    def get(self, task_id: str) -> Task | None:
        """The task with this id, as it stands now."""
        with self._lock:
            self._expire()
            return self._tasks.get(task_id)

    def answer(self, task: Task, state: str, reply: str) -> None:
        """Finish a pending task with its recipient's answer. Raises CtlError when it is finished already."""
        with self._lock:
            self._expire()
            if task.state != SUBMITTED:
                why = task.reason or "It was answered already."
                raise CtlError(f"Task {task.task_id} is over, {task.state}.", f"{why} Do not answer it again.")
            self._finish(task, state, reply, None)

    def fail(self, task: Task, reason: str) -> None:
        """Finish a task that can no longer be answered; one that is finished stays as it is."""
        with self._lock:
            if task.state == SUBMITTED:
                self._finish_regardless(task, reason)

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
            self._finish(task, FAILED, None, reason)
        except CtlError:
            task.state, task.reason, task.finished_ms = FAILED, reason, self._now_ms()

    def _finish(self, task: Task, state: str, reply: str | None, reason: str | None) -> None:
        finished_ms = self._now_ms()
        self._write(task, state, reply, reason, finished_ms)
        task.state, task.reply, task.reason, task.finished_ms = state, reply, reason, finished_ms

    def _drop_old(self) -> None:
        oldest_ms = self._now_ms() - KEEP_FINISHED_MS
        for task in list(self._tasks.values()):
            if task.state != SUBMITTED and (task.finished_ms or 0) < oldest_ms:
                self._drop(task)

    def _make_room(self) -> None:
        """Drop finished tasks, the oldest first, until there is room for one more."""
        finished = sorted(
            (task for task in self._tasks.values() if task.state != SUBMITTED), key=lambda task: task.finished_ms or 0
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

    def _write(self, task: Task, state: str, reply: str | None, reason: str | None, finished_ms: int | None) -> None:
        content = {
            "taskId": task.task_id,
            "messageId": task.message_id,
            "projectId": task.project_id,
            "fromNodeId": task.sender,
            "toNodeId": task.recipient,
            "text": task.text,
            "state": state,
            "reply": reply,
            "reason": reason,
            "createdAtMs": task.created_ms,
            "finishedAtMs": finished_ms,
        }
        try:
            private_directory(self._directory)
            write_atomically(self._path(task.task_id), json.dumps(content).encode())
        except OSError as error:
            raise CtlError(f"Cannot write the task: {error.strerror}.", "Nothing was changed.") from None


def _read(path: str) -> Task | None:
    """The task in a file; None where there is none."""
    content = read_object(path, missing={})
    if os.path.basename(path) != f"{content.get('taskId')}.json":
        return None
    if not all(isinstance(content.get(key), str) for key in _TEXTS) or not is_id(content["taskId"]):
        return None
    if content["state"] not in (SUBMITTED, COMPLETED, FAILED):
        return None
    task = Task(
        content["taskId"],
        content["projectId"],
        content["fromNodeId"],
        content["toNodeId"],
        content["messageId"],
        content["text"],
    )
    task.state = content["state"]
    task.reply, task.reason = _text(content.get("reply")), _text(content.get("reason"))
    task.created_ms, task.finished_ms = _time(content.get("createdAtMs")) or 0, _time(content.get("finishedAtMs"))
    return task


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
