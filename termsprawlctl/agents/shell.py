"""A run for a person or a script: steps on standard error, the answer on standard output."""

from __future__ import annotations

import os
import signal
import threading

from ..base import console, jsontext
from ..base.errors import FAILED, INTERRUPTED, OK, CtlError
from ..base.files import Explained
from ..base.log import Log
from ..base.processtable import inside_a_run
from ..base.text import harmless
from .clis.cli import AgentCli, Request
from .model.settings import Settings
from .model.steps import summary
from .model.text import plain
from .runs import render
from .runs.result import Result
from .runs.run import Run
from .runs.status import COMPLETED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..mcp.provider import Question

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LAST_WORDS_S = 1.0  # a terminal takes them at once
UNLIMITED_BYTES = 1 << 62


def run(cli: AgentCli, request: Request, settings: Settings, *, as_json: bool) -> int:
    """Carry out the run and print it; returns the exit status."""
    if inside_a_run():
        raise CtlError(
            "refused: this is inside a run of an agent, and an agent must not start agents.", "Do the task here."
        )
    cancelled = threading.Event()
    usual = {number: signal.signal(number, lambda *_: cancelled.set()) for number in END_SIGNALS}
    settings.result_bytes = UNLIMITED_BYTES
    # A reader that stalls must hold up neither the time limits of the run nor its end.
    steps = Log(console.STDERR)
    work = Run(cli, request, settings, lambda line: _tell(steps, line), ask=_ask)
    try:
        with Explained("the run could not be prepared", "Check free space and permissions."):
            result = work.execute(cancelled, lambda label: _tell(steps, label))
        # All that is left is to print: a signal ends that as it ends any program.
        for number, handler in usual.items():
            signal.signal(number, handler)
        steps.drain(LAST_WORDS_S)
        last_words = ""
        if as_json:
            content = render.structure_of(result, settings)
            if result.status.answered:
                content["answer"] = "".join(work.answer()).strip("\n")
            console.out(jsontext.pretty(content) + "\n")
        else:
            last_words = _print(result, work, settings)
        if cancelled.is_set():
            # Whoever has ended the run does not wait for somebody to read why.
            _tell(steps, last_words)
            steps.drain(LAST_WORDS_S)
        else:
            steps.drain(None)
            if last_words:
                console.err(last_words)
    finally:
        work.close()
    if result.status.name == COMPLETED:
        return OK
    return INTERRUPTED if cancelled.is_set() else FAILED


def _ask(message: str, options: list[tuple[str, str]]) -> Question | None:
    from .asking import ask

    return ask(message, options)


def _tell(steps: Log, line: str) -> None:
    if line:
        steps.write(harmless(line + "\n"))


def _print(result: Result, work: Run, settings: Settings) -> str:
    """Print the answer; returns what there is to say about the run."""
    words = []
    if result.status.answered:
        # A terminal obeys escapes that an answer may hold; a file or a pipe gets it as it is.
        clean = plain if os.isatty(console.STDOUT) else str
        for piece in work.answer():
            console.out(clean(piece))
        console.out("\n")
    if result.status.name != COMPLETED:
        words.append(render.failure_text(result, UNLIMITED_BYTES))
    if settings.trace:
        lines = summary(result.reader.steps(answered=result.status.answered), result.reader.activity.omitted)
        if result.status.note:
            lines.append(f"Note: {result.status.note}.")
        if result.reader.session_id:
            lines.append(f"Session: {result.reader.session_id} (--resume continues it)")
        words += ["", *lines]
    return "\n".join(words)
