"""What a server of agents needs from its first run on."""

from __future__ import annotations

import os
import threading

from ...base.log import log
from ...base.processtable import inside_a_run
from ..clis.flavour import Request
from ..clis.flavours import flavour
from ..model.arguments import RunCall
from ..model.ends import both_ends
from ..model.settings import Settings
from ..runs import result
from ..runs.run import Outcome, Run
from ..runs.verdict import COMPLETED
from . import allocator, outputs
from .jobs import Job, Jobs, Slots


class Parts:
    """The agent, the queue, the background runs, and whether runs are allowed here at all."""

    def __init__(self, agent: str, settings: Settings) -> None:
        allocator.share()  # before there are threads for runs
        self.flavour = flavour(agent)
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
        self, call: RunCall, cwd: str, cancelled, report, *, resumed_in: str, workspace: str
    ) -> tuple[Outcome, dict]:
        """Carry out one run; its outcome, and the same as a tool's result. Raises OSError."""
        run = Run(
            self.flavour, self._request(call, cwd), self._settings, log, resumed_in=resumed_in, workspace=workspace
        )
        try:
            outcome = run.execute(cancelled, report)
            if outcome.verdict.status == COMPLETED and run.shortened():
                # What a result cannot hold of it, either, is left out there, and counted.
                outcome.answer, outcome.left_out = both_ends(run.answer(), self._settings.result_bytes)
            path = self._keep_whole(outcome, run)
        finally:
            run.close()
        return outcome, {
            "content": [{"type": "text", "text": result.text_of(outcome, self._settings, path)}],
            "structuredContent": result.structure_of(outcome, self._settings, path),
            "isError": outcome.verdict.status != COMPLETED,
        }

    def _request(self, call: RunCall, cwd: str) -> Request:
        request = Request(call.prompt, cwd)
        request.model = call.model or self._settings.model
        request.effort = call.effort or self._settings.effort
        request.session_id = call.session_id
        request.structured = self._settings.structured
        request.arguments = self._settings.arguments
        return request

    def _keep_whole(self, outcome: Outcome, run: Run) -> str:
        """The path of the full output, if the result cannot hold it."""
        if not result.too_long(outcome, self._settings):
            return ""
        try:
            return outputs.save(result.full_text(outcome, run.answer()))
        except OSError as error:
            log(f"the full output could not be kept: {error.strerror}")
            return ""
