"""What a server of agents needs from its first run on."""

from __future__ import annotations

import os
import threading

from ...base.log import log
from ...base.processtable import inside_a_run
from ...base.text import head_and_tail
from ..clis.cli import Request
from ..clis.registry import agent_cli
from ..model.arguments import RunCall
from ..model.settings import Settings
from ..runs import render
from ..runs.result import Result
from ..runs.run import Run, apply_settings
from ..runs.status import COMPLETED
from . import allocator, outputs
from .jobs import Job, Jobs, Slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.types import AskPerson, Json, Report


class Parts:
    """The agent, the queue, the background runs, and whether runs are allowed here at all."""

    def __init__(self, agent: str, settings: Settings) -> None:
        allocator.share()  # before there are threads for runs
        self.cli = agent_cli(agent, settings.via, settings.acp_command)
        self.slots = Slots(settings.max_runs)
        self.jobs = Jobs()
        self.idle = threading.Condition()
        self.inside_a_run = inside_a_run()
        self._settings = settings

    def new_job(self, cwd: str) -> Job:
        """A job with a new id."""
        job = Job(f"run-{os.urandom(6).hex()}", cwd)
        self.jobs.add(job)
        return job

    def execute(
        self,
        call: RunCall,
        cwd: str,
        cancelled: threading.Event,
        report: Report,
        *,
        resumed_in: str,
        workspace: str,
        heading: str = "",
        ask: AskPerson | None = None,
    ) -> tuple[Result, Json]:
        """Carry out one run; its result, and the same as a tool's result. Raises OSError."""
        request = self._request(call, cwd)
        run = Run(self.cli, request, self._settings, log, resumed_in=resumed_in, workspace=workspace, ask=ask)
        try:
            result = run.execute(cancelled, report)
            result.heading = heading
            if result.status.answered and run.shortened():
                # What a result cannot hold of it, either, is left out there, and counted.
                result.answer, result.left_out = head_and_tail(run.answer(), self._settings.result_bytes)
            path = self._keep_whole(result, run)
        finally:
            run.close()
        return result, {
            "content": [{"type": "text", "text": render.text_of(result, self._settings, path)}],
            "structuredContent": render.structure_of(result, self._settings, path),
            "isError": result.status.name != COMPLETED,
        }

    def _request(self, call: RunCall, cwd: str) -> Request:
        request = Request(call.prompt, cwd)
        request.model = call.model or self._settings.model
        request.effort = call.effort or self._settings.effort
        request.session_id = call.session_id
        apply_settings(request, self.cli, self._settings)
        return request

    def _keep_whole(self, result: Result, run: Run) -> str:
        """The path of the full output, if the result cannot hold it."""
        if not render.too_long(result, self._settings):
            return ""
        try:
            return outputs.save(render.full_text(result, run.answer()))
        except OSError as error:
            log(f"the full output could not be kept: {error.strerror}")
            return ""
