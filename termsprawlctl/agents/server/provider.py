"""A coding agent as MCP tools: run, and run_status, run_result, run_cancel for runs in the background.

Nothing that runs a process is imported before the first run: clients start servers that
they may never use.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial

from ... import __version__
from ...base import threads
from ...base.log import log
from ...mcp.options import Options
from ...mcp.provider import Context, Provider, Question
from ..clis.registry import TAKES_EFFORT
from ..model.arguments import BadArguments, RunCall, run_id, wait_s
from ..model.settings import Settings
from ..runs.heartbeat import Heartbeat
from . import schemas
from .folders import Folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import AskPerson, Json, Report
    from .engine import Parts
    from .jobs import Job


# Clients that close our input kill us two to four seconds later.
FINISH_S = 2.0
# How long the end waits for runs to be ended; what is left then is the supervisors' work,
# which goes on without us.
CLOSE_S = 8.0
# Calls at once: runs beyond the limit wait here, and must not keep run_status waiting.
MAX_CALLS = 256
CANCEL_WAIT_S = 20.0
MAX_SESSIONS = 1000
RECURSION = (
    "refused: this server was started by an agent that is itself a run of termsprawlctl. An agent must not start "
    "agents: take this server out of the MCP configuration that the inner agent uses."
)


OPTIONS = Options(max_running=MAX_CALLS, finish_in_flight_s=FINISH_S)


class AgentProvider(Provider):
    """The tools of one agent, to be served with OPTIONS."""

    def __init__(self, agent: str, settings: Settings) -> None:
        self.name = f"termsprawlctl-agent-{agent}"
        self.version = __version__
        self._agent = agent
        self._settings = settings
        self._folders = Folders(settings.cwd, log)
        self._folders_lock = threading.Lock()
        self._sessions: dict[str, str] = {}  # session -> folder of its first run
        self._parts: Parts | None = None  # what is made at the first run
        self._parts_lock = threading.Lock()
        self._closing = threading.Event()
        self._running: set[object] = set()

    def instructions(self) -> str:
        return (
            f"run gives a task to the coding agent {self._agent} and returns its answer and what it did. "
            "Several runs may go on at once. For a client that gives up on calls after a minute: background true, "
            "then run_result with waitMs."
        )

    def tools(self) -> list[Json]:
        return schemas.tools(self._agent, takes_effort=self._agent in TAKES_EFFORT)

    def call(self, name: str, arguments: Json, context: Context) -> Json:
        try:
            return {
                "run": self._run,
                "run_status": self._status,
                "run_result": self._result,
                "run_cancel": self._cancel,
            }[name](arguments, context)
        except BadArguments as problem:
            return _error(f"{name}: {problem}")

    def close(self) -> None:
        self._closing.set()
        if self._parts is not None:
            for job in self._parts.jobs.all():
                job.cancelled.set()
            deadline = time.monotonic() + CLOSE_S
            with self._parts.idle:
                self._parts.idle.wait_for(lambda: not self._running, max(0.0, deadline - time.monotonic()))
        self._folders.close()

    # --- the tools -----------------------------------------------------------------------

    def _run(self, arguments: Json, context: Context) -> Json:
        call = RunCall(arguments)
        parts = self._first_use()
        if parts.inside_a_run:
            return _error(RECURSION)
        self._check_folder(parts, call)
        if not call.background:
            return self._carry_out(call, context.cancelled, context.step, context.ask)[1]
        job = parts.new_job(call.cwd)
        try:
            threads.start(partial(self._in_background, job, call))
        except RuntimeError:
            result = _error("failed: this process can have no more threads. Try again when other runs have ended.")
            job.finish("failed", result)
            return result
        text = f"Started {job.run_id}. Ask run_result for it with waitMs, or run_status for what it does."
        return _result(text, {"status": "running", "runId": job.run_id})

    def _status(self, arguments: Json, _context: Context) -> Json:
        wanted = run_id("run_status", arguments, required=False)
        jobs = [self._job(wanted)] if wanted else self._first_use().jobs.all()
        return _rows(jobs)

    def _result(self, arguments: Json, context: Context) -> Json:
        job = self._job(run_id("run_result", arguments, required=True, others=("waitMs",)))
        deadline = time.monotonic() + wait_s(arguments)
        step = ""
        forwarded: Question | None = None
        while not (job.done.is_set() or context.cancelled.is_set() or time.monotonic() >= deadline):
            if job.step != step:
                step = job.step
                context.progress(step)
            forwarded = job.pass_on(forwarded, context.ask)
            job.done.wait(min(0.1, max(0.0, deadline - time.monotonic())))
        if forwarded is not None:
            forwarded.withdraw()
        if job.result is not None:
            return job.result
        row = job.row()
        del row["elapsedMs"]
        return _result(f"{job.run_id} is still {job.status}: {job.step or 'not started'}", row)

    def _cancel(self, arguments: Json, context: Context) -> Json:
        job = self._job(run_id("run_cancel", arguments, required=True))
        job.cancelled.set()
        deadline = time.monotonic() + CANCEL_WAIT_S
        while not (job.done.wait(0.1) or context.cancelled.is_set() or time.monotonic() > deadline):
            pass
        return _rows([job])

    # --- behind them ---------------------------------------------------------------------

    def _first_use(self) -> Parts:
        with self._parts_lock:
            if self._parts is None:
                from . import engine

                self._parts = engine.Parts(self._agent, self._settings)
            return self._parts

    def _job(self, wanted: str) -> Job:
        job = self._first_use().jobs.find(wanted)
        if job is None:
            raise BadArguments(f"there is no run {wanted}: a server knows only the runs that it started itself.")
        return job

    def _check_folder(self, parts: Parts, call: RunCall) -> None:
        first = self._sessions.get(call.session_id, "")
        if not (first and parts.cli.same_folder):
            return
        if not os.path.isdir(first):
            raise BadArguments(
                f"sessionId: {self._agent} can only continue this session in {first}, which is gone: "
                "leave sessionId out to start a new one."
            )
        if os.path.isdir(call.cwd) and os.path.realpath(first) != os.path.realpath(call.cwd):
            raise BadArguments(
                f"cwd is not the folder of this session, which {self._agent} can only continue in {first}: "
                "leave cwd out."
            )

    def _in_background(self, job: Job, call: RunCall) -> None:
        def report(label: str) -> None:
            job.status = "queued" if label.startswith("Queued") else "running"
            job.step = label

        try:
            status, result = self._carry_out(call, job.cancelled, report, job.ask)
        except Exception as fault:  # noqa: BLE001 - nobody else would hear of it
            status, result = (
                "failed",
                _error(f"internal error: {type(fault).__name__}. This is a fault of this program."),
            )
        job.finish(status, result)

    def _carry_out(self, call: RunCall, cancelled: threading.Event, report: Report, ask: AskPerson) -> tuple[str, Json]:
        """Run to the end; (status, result)."""
        parts = self._first_use()
        token = object()
        with parts.idle:
            if self._closing.is_set():
                cancelled.set()
            self._running.add(token)
        try:
            if not parts.slots.take(cancelled, Heartbeat(report, self._settings.heartbeat_s, time.monotonic)):
                return "cancelled", _error("cancelled before it started.")
            try:
                return self._with_slot(parts, call, cancelled, report, ask)
            finally:
                parts.slots.give_back()
        finally:
            with parts.idle:
                self._running.discard(token)
                parts.idle.notify_all()

    def _with_slot(
        self, parts: Parts, call: RunCall, cancelled: threading.Event, report: Report, ask: AskPerson
    ) -> tuple[str, Json]:
        try:
            cwd, problem = self._choose_folder(call)
            heading = f"Note: {problem}, so this run worked in {cwd}." if problem else ""
            resumed_in = self._sessions.get(call.session_id, "")
            result, answer = parts.execute(
                call,
                cwd,
                cancelled,
                report,
                resumed_in=resumed_in,
                workspace=self._folders.workspace,
                heading=heading,
                ask=ask,
            )
        except OSError as error:
            what = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
            return "failed", _error(f"failed: the run could not be prepared: {what}. Check free space and permissions.")
        session = result.reader.session_id
        if session:
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions.setdefault(session, result.cwd)
        return result.status.name, answer

    def _choose_folder(self, call: RunCall) -> tuple[str, str]:
        with self._folders_lock:
            return self._folders.choose(call.cwd, self._sessions.get(call.session_id, ""))


def _result(text: str, structured: Json) -> Json:
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": False}


def _error(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _rows(jobs: list[Job]) -> Json:
    rows = [job.row() for job in jobs]
    lines = []
    for row in rows:
        step = f", {row['step']}" if row.get("step") else ""
        lines.append(f"{row['runId']}: {row['status']}, {row['elapsedMs'] / 1000:.1f} s{step}")
    return _result("\n".join(lines) or "There are no background runs.", {"runs": rows})
