"""How a run ended, judged by its events first and its exit status second. Pure."""

from __future__ import annotations

import errno
import os
import re

from ..clis.cli import AgentCli
from ..model.reader import Reader
from ..model.text import one_line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


COMPLETED, FAILED, TIMED_OUT, CANCELLED = "completed", "failed", "timed_out", "cancelled"
# It ended in order, but what it answered is cut off, or nothing.
INCOMPLETE = "incomplete"

# Why a run was stopped by us.
STOP_CANCELLED = "cancelled"
STOP_TIMEOUT = "timed_out"
STOP_IDLE = "idle"
STOP_LINGERING = "lingering"  # it had finished and did not exit
STOP_FLOOD = "flood"  # it prints without end
STOP_SILENT = "silent"  # a resumed session that says nothing
STOP_APPROVAL = "approval"  # it said that it waits for an approval that nobody can give
STOP_STARTING = "starting"  # an agent that is spoken to has not taken the prompt

MAX_MESSAGE = 600
TAIL_CHARACTERS = 2000
# A message that points at the log, which knows more.
HIDES_THE_CAUSE = re.compile(r"check server logs|^unknown ?error$", re.IGNORECASE)
# Lines that say nothing about a failure.
HARMLESS = re.compile(
    r"Reading (additional input|prompt) from stdin|YOLO mode is enabled|256-color support|Ripgrep is not available"
    r"|Loaded cached credentials|^\s+at (async )?\S+ \(|^\s+at (async )?file://"
)


class Status:
    """Its name, whether the last message is the answer, and of a failure its code, message and remedy."""

    __slots__ = ("answered", "code", "message", "name", "note", "remedy")

    def __init__(self, name: str, code: str = "", message: str = "", remedy: str = "", note: str = "") -> None:
        self.name = name
        self.answered = name in (COMPLETED, INCOMPLETE)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.note = note


class Ending:
    """The facts about an end: exit status (None: not started), why it was stopped, the limits, the end of stderr."""

    __slots__ = ("errors", "exit_status", "limit_s", "stop")

    def __init__(self, exit_status: int | None, stop: str = "", errors: str = "", limit_s: float = 0.0) -> None:
        self.exit_status = exit_status
        self.stop = stop
        self.errors = errors
        self.limit_s = limit_s


def judge(cli: AgentCli, run: Reader, end: Ending, fallback_answer: Callable[[], str] = lambda: "") -> Status:
    """The status on a structured run whose output has been read to its end.

    `fallback_answer()` gives the answer from elsewhere, should the stream have none.
    """
    answer = "".join(run.answer_parts()).strip()
    if run.ended and not run.failure and not run.no_answer:
        from_file = "" if answer else fallback_answer()
        if from_file.strip():
            run.final_text = answer = from_file
        return _finished(cli, run, end, answer, from_file=bool(from_file.strip()))
    if end.stop == STOP_APPROVAL:
        return _denied(cli, [run.waits_for])
    if end.stop in _STOPPED:
        return _STOPPED[end.stop](cli, end)
    if run.failure:
        return _failure(cli, run.failure, end)
    return _unfinished(cli, run, end, fallback_answer)


def _unfinished(cli: AgentCli, run: Reader, end: Ending, fallback_answer: Callable[[], str]) -> Status:
    """The stream has no end of its own."""
    answer = "".join(run.answer_parts()).strip()
    denied = cli.denials(run, end.errors)
    if denied and (run.no_answer or not answer):
        return _denied(cli, denied)
    elsewhere = fallback_answer() if end.exit_status == 0 and not answer else ""
    if elsewhere.strip():
        run.final_text = elsewhere
        return Status(COMPLETED, note=f"{cli.name} printed events of an unknown shape; the answer is from its file")
    trusted = end.exit_status == 0 and cli.exits_truly
    if trusted and not run.no_answer and run.activity.said_after_everything():
        return Status(COMPLETED, note=f"{cli.name} ended without its closing event; the answer may be incomplete")
    return _died(cli, run, end)


def judge_raw(cli: AgentCli, end: Ending, *, answered: bool) -> Status:
    """The status on a run without an event stream: the exit status is all there is."""
    if end.stop in _STOPPED:
        return _STOPPED[end.stop](cli, end)
    if end.exit_status == 0 and answered:
        return Status(COMPLETED)
    if end.exit_status == 0:
        return Status(FAILED, "no_answer", f"{cli.name} printed nothing", "Look at the end of stderr.")
    return _failure(cli, last_line(end.errors) or "no message", end)


def not_started(cli: AgentCli, number: int) -> Status:
    """The system has refused to start the CLI, with this errno."""
    short_of = number in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    remedy = "Try again when other programs have ended, or raise the limit (ulimit -a)." if short_of else cli.install
    return Status(FAILED, "not_started", f"cannot start {cli.executable}: {os.strerror(number)}", remedy)


def disk_full(place: str, message: str) -> Status:
    """A failure, for which the CLI gave `message`, on a disk that has no room for what it prints."""
    return Status(
        FAILED,
        "disk_full",
        f"the disk is full ({message})",
        f"Free some space where {place} was, or set TMPDIR to a place with more.",
    )


def last_line(errors: str) -> str:
    """The last line of stderr that says something."""
    lines = [line for line in plain(errors).splitlines() if line.strip() and not HARMLESS.search(line)]
    named = [line for line in lines if re.search(r"\berror\b|fail|denied|invalid|not found", line, re.IGNORECASE)]
    return one_line((named or lines or [""])[-1], MAX_MESSAGE)


def exit_text(status: int | None) -> str:
    """`exit 1`, `killed by signal 9`."""
    if status is None:
        return "not started"
    return f"killed by signal {-status}" if status < 0 else f"exit {status}"


def _finished(cli: AgentCli, run: Reader, end: Ending, answer: str, *, from_file: bool) -> Status:
    denied = cli.denials(run, end.errors)
    if not answer and denied:
        return _denied(cli, denied)
    if not answer and end.exit_status and end.stop != STOP_LINGERING:
        return _died(cli, run, end)
    notes = [f"{cli.name} printed events of an unknown shape; the answer is from its file"] if from_file else []
    if denied:
        notes.append(f"not permitted: {one_line('; '.join(denied), MAX_MESSAGE)}. {cli.permission_remedy(denied)}")
    if answer and not from_file and run.final_text is None and run.activity.worked_after_answer():
        notes.append("the last message came before the last of the work, so it may not tell of it")
    if end.stop == STOP_LINGERING and not cli.conversational:
        notes.append(f"{cli.name} did not exit after its answer and was ended")
    elif end.exit_status and not end.stop:
        notes.append(f"{cli.name} gave its answer and then ended with {exit_text(end.exit_status)}")
    note = ". ".join(notes)
    if run.cut_off:
        return Status(INCOMPLETE, "cut_off", run.cut_off, "Continue the session, or ask for less at once.", note)
    if not answer:
        message = f"{cli.name} ended without a final message"
        return Status(
            INCOMPLETE, "no_answer", message, "Continue the session and ask what was done, or run it again.", note
        )
    return Status(COMPLETED, note=note)


def _denied(cli: AgentCli, denied: list[str]) -> Status:
    what = one_line("; ".join(denied), MAX_MESSAGE)
    return Status(
        FAILED,
        "permission_rejected",
        f"it needed a permission that nobody could give: {what}",
        f"{cli.permission_remedy(denied)}.",
    )


def _failure(cli: AgentCli, message: str, end: Ending) -> Status:
    message = one_line(message, MAX_MESSAGE)
    cause = last_line(end.errors)
    if cause and HIDES_THE_CAUSE.search(message):
        message = cause
    known = cli.diagnose(message) or cli.diagnose(last_lines(end.errors))
    if known is not None:
        return Status(FAILED, known.code, known.message or message, known.remedy)
    remedy = (
        "The end of stderr below may say more."
        if cause
        else f"Run it again; if that fails, too, start `{cli.executable}` yourself to see why."
    )
    return Status(FAILED, "failed", message, remedy)


def _died(cli: AgentCli, run: Reader, end: Ending) -> Status:
    cause = last_line(end.errors) or one_line(run.last_error, MAX_MESSAGE)
    known = cli.diagnose(cause) if cause else None
    if end.exit_status == 0 and run.events == 0 and known is None:
        return Status(
            FAILED,
            "wrong_version",
            cause or f"{cli.name} printed no event that this program knows",
            f"Check that `{cli.executable}` speaks ACP: start it by hand."
            if cli.conversational
            else f"Use another version of {cli.executable}, or AGENT_CLI_MCP_STRUCTURED=0 to take its plain output.",
        )
    if end.exit_status == 0 and (run.no_answer or not run.answer_parts()):
        message = (known.message if known else "") or cause or run.no_answer or f"{cli.name} ended without an answer"
        return Status(FAILED, known.code if known else "no_answer", message, known.remedy if known else "Run it again.")
    status = _failure(cli, cause or "it ended before it had finished", end)
    if status.code == "failed":
        status.code = "ended_early"
    return status


def last_lines(errors: str) -> str:
    """The end of stderr without its harmless lines."""
    lines = [line for line in plain(errors).splitlines() if line.strip() and not HARMLESS.search(line)]
    return "\n".join(lines)[-TAIL_CHARACTERS:]


def _timed_out(_cli: AgentCli, end: Ending) -> Status:
    return Status(
        TIMED_OUT,
        "timed_out",
        f"it was ended after {end.limit_s:g} s, the limit of one run",
        "Raise --timeout (or AGENT_CLI_MCP_TIMEOUT_MS), or ask for less at once.",
    )


def _idle(_cli: AgentCli, end: Ending) -> Status:
    return Status(
        TIMED_OUT,
        "idle",
        f"it was ended because it printed nothing for {end.limit_s:g} s while no command of it was running",
        "It may wait for an approval that nobody can give, or for its model server: start it by hand to see. "
        "--idle-timeout sets the limit, 0 switches it off.",
    )


def _silent(_cli: AgentCli, end: Ending) -> Status:
    return Status(
        FAILED,
        "silent_session",
        f"it printed nothing for {end.limit_s:g} s after it was told to continue a session",
        "Give as cwd the folder of the session's first run; it can be continued only there.",
    )


def _starting(cli: AgentCli, end: Ending) -> Status:
    return Status(
        FAILED,
        "no_handshake",
        f"it did not take the task within {end.limit_s:g} s",
        f"Check that `{cli.executable}` speaks ACP and needs no login: start it by hand.",
    )


def _flood(cli: AgentCli, _end: Ending) -> Status:
    return Status(
        FAILED,
        "flood",
        f"it was ended because it kept printing: more than {cli.name} can have to say",
        "Ask for less output, for example for results in a file.",
    )


def _cancelled(_cli: AgentCli, _end: Ending) -> Status:
    return Status(CANCELLED, "cancelled", "it was ended because the run was cancelled")


_STOPPED = {
    STOP_TIMEOUT: _timed_out,
    STOP_IDLE: _idle,
    STOP_SILENT: _silent,
    STOP_STARTING: _starting,
    STOP_FLOOD: _flood,
    STOP_CANCELLED: _cancelled,
}
