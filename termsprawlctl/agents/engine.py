"""What a server of agents needs from its first run on."""

from __future__ import annotations

import secrets
import threading

from ..mcp.log import log
from . import outputs, result
from .flavour import Flavour, Request
from .jobs import Job, Jobs, Slots
from .processtree import inside_a_run
from .run import Outcome, Run
from .settings import Settings


class Parts:
    """The queue, the background runs, and whether runs are allowed here at all."""

    def __init__(self, max_runs: int) -> None:
        self.slots = Slots(max_runs)
        self.jobs = Jobs()
        self.idle = threading.Condition()
        self.inside_a_run = inside_a_run()

    @staticmethod
    def new_job(cwd: str) -> Job:
        """A job with a new id."""
        return Job(f"run-{secrets.token_hex(6)}", cwd)

    @staticmethod
    def execute(
        flavour: Flavour, request: Request, settings: Settings, cancelled, report, resumed_in: str, workspace: str
    ) -> tuple[Outcome, dict]:
        """Carry out one run; its outcome, and the same as a tool's result."""
        run = Run(flavour, request, settings, log, resumed_in=resumed_in, workspace=workspace)
        try:
            outcome = run.execute(cancelled, report)
            path = ""
            if result.too_long(outcome, settings):
                try:
                    path = outputs.save(result.full_text(outcome, run.answer()))
                except OSError as error:
                    log(f"the full output could not be kept: {error.strerror}")
        finally:
            run.close()
        return outcome, {
            "content": [{"type": "text", "text": result.text_of(outcome, settings, path)}],
            "structuredContent": result.structure_of(outcome, settings, path),
            "isError": outcome.verdict.status != "completed",
        }
