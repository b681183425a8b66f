"""How a run ended, judged by its events first and its exit status second. Pure."""

from __future__ import annotations

import errno
import os
import re

from ..clis.flavour import Flavour
from ..model.reader import Reader
from ..model.wording import one_line, plain

COMPLETED, FAILED, TIMED_OUT, CANCELLED = "completed", "failed", "timed_out", "cancelled"

# Why a run was stopped by us.
STOP_CANCELLED = "cancelled"
STOP_TIMEOUT = "timed_out"
STOP_IDLE = "idle"
STOP_LINGERING = "lingering"  # it had finished and did not exit
STOP_FLOOD = "flood"  # it prints without end
STOP_SILENT = "silent"  # a resumed session that says nothing

MAX_MESSAGE = 600
TAIL_CHARACTERS = 2000
# A message that points at the log, which knows more.
HIDES_THE_CAUSE = re.compile(r"check server logs|^unknown ?error$", re.IGNORECASE)
# Lines that say nothing about a failure.
HARMLESS = re.compile(
    r"Reading (additional input|prompt) from stdin|YOLO mode is enabled|256-color support|Ripgrep is not available"
    r"|Loaded cached credentials|^\s+at (async )?\S+ \(|^\s+at (async )?file://"
)


class Verdict:
    """status, whether the last message is the answer, and of a failure its code, message and remedy."""

    __slots__ = ("answered", "code", "message", "note", "remedy", "status")

    def __init__(self, status: str, code: str = "", message: str = "", remedy: str = "", note: str = "") -> None:
        self.status = status
        self.answered = status == COMPLETED
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


def judge(flavour: Flavour, run: Reader, end: Ending, fallback_answer=lambda: "") -> Verdict:
    """The verdict on a structured run whose output has been read to its end.

    `fallback_answer()` gives the answer from elsewhere, should the stream have none.
    """
    answer = "".join(run.answer_parts()).strip()
    if run.ended and not run.failure and not run.no_answer:
        return _finished(flavour, run, end, answer)
    if end.stop in _STOPPED:
        return _STOPPED[end.stop](flavour, end)
    if run.failure:
        return _failure(flavour, run.failure, end)
    return _unfinished(flavour, run, end, fallback_answer)


def _unfinished(flavour: Flavour, run: Reader, end: Ending, fallback_answer) -> Verdict:
    """The stream has no end of its own."""
    answer = "".join(run.answer_parts()).strip()
    denied = flavour.denials(run, end.errors)
    if denied and (run.no_answer or not answer):
        return _denied(flavour, denied)
    elsewhere = fallback_answer() if end.exit_status == 0 and not answer else ""
    if elsewhere.strip():
        run.final_text = elsewhere
        return Verdict(
            COMPLETED, note=f"{flavour.name} printed events of an unknown shape; the answer is from its file"
        )
    trusted = end.exit_status == 0 and flavour.exits_truly
    if trusted and not run.no_answer and run.activity.said_after_everything():
        return Verdict(COMPLETED, note=f"{flavour.name} ended without its closing event; the answer may be incomplete")
    return _died(flavour, run, end)


def judge_raw(flavour: Flavour, end: Ending, *, answered: bool) -> Verdict:
    """The verdict on a run without an event stream: the exit status is all there is."""
    if end.stop in _STOPPED:
        return _STOPPED[end.stop](flavour, end)
    if end.exit_status == 0 and answered:
        return Verdict(COMPLETED)
    if end.exit_status == 0:
        return Verdict(FAILED, "no_answer", f"{flavour.name} printed nothing", "Look at the end of stderr.")
    return _failure(flavour, last_line(end.errors) or "no message", end)


def not_started(flavour: Flavour, number: int) -> Verdict:
    """The system has refused to start the CLI, with this errno."""
    short_of = number in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
    remedy = (
        "Try again when other programs have ended, or raise the limit (ulimit -a)." if short_of else flavour.install
    )
    return Verdict(FAILED, "not_started", f"cannot start {flavour.executable}: {os.strerror(number)}", remedy)


def disk_full(place: str, message: str) -> Verdict:
    """A failure, for which the CLI gave `message`, on a disk that has no room for what it prints."""
    return Verdict(
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


def _finished(flavour: Flavour, run: Reader, end: Ending, answer: str) -> Verdict:
    denied = flavour.denials(run, end.errors)
    if not answer and denied:
        return _denied(flavour, denied)
    if not answer and end.exit_status and end.stop != STOP_LINGERING:
        return _died(flavour, run, end)
    notes = []
    if denied:
        notes.append(f"not permitted: {one_line('; '.join(denied), MAX_MESSAGE)}. To allow it, {flavour.permission}")
    if end.stop == STOP_LINGERING:
        notes.append(f"{flavour.name} did not exit after its answer and was ended")
    elif end.exit_status and not end.stop:
        notes.append(f"{flavour.name} gave its answer and then ended with {exit_text(end.exit_status)}")
    return Verdict(COMPLETED, note=". ".join(notes))


def _denied(flavour: Flavour, denied: list[str]) -> Verdict:
    what = one_line("; ".join(denied), MAX_MESSAGE)
    return Verdict(
        FAILED,
        "permission_rejected",
        f"it needed a permission that nobody could give: {what}",
        f"To allow it, {flavour.permission}.",
    )


def _failure(flavour: Flavour, message: str, end: Ending) -> Verdict:
    message = one_line(message, MAX_MESSAGE)
    cause = last_line(end.errors)
    if cause and HIDES_THE_CAUSE.search(message):
        message = cause
    known = flavour.diagnose(message) or flavour.diagnose(last_lines(end.errors))
    if known is not None:
        return Verdict(FAILED, known.code, message, known.remedy)
    remedy = (
        "The end of stderr below may say more."
        if cause
        else f"Run it again; if that fails, too, start `{flavour.executable}` yourself to see why."
    )
    return Verdict(FAILED, "failed", message, remedy)


def _died(flavour: Flavour, run: Reader, end: Ending) -> Verdict:
    cause = last_line(end.errors) or one_line(run.last_error, MAX_MESSAGE)
    if end.exit_status == 0 and run.events == 0:
        return Verdict(
            FAILED,
            "wrong_version",
            cause or f"{flavour.name} printed no event that this program knows",
            f"Use another version of {flavour.executable}, or set AGENT_CLI_MCP_STRUCTURED=0 to take its plain output.",
        )
    if end.exit_status == 0 and (run.no_answer or not run.answer_parts()):
        known = flavour.diagnose(cause) if cause else None
        message = cause or run.no_answer or f"{flavour.name} ended without an answer"
        return Verdict(
            FAILED, known.code if known else "no_answer", message, known.remedy if known else "Run it again."
        )
    verdict = _failure(flavour, cause or "it ended before it had finished", end)
    if verdict.code == "failed":
        verdict.code = "ended_early"
    return verdict


def last_lines(errors: str) -> str:
    """The end of stderr without its harmless lines."""
    lines = [line for line in plain(errors).splitlines() if line.strip() and not HARMLESS.search(line)]
    return "\n".join(lines)[-TAIL_CHARACTERS:]


def _timed_out(_flavour: Flavour, end: Ending) -> Verdict:
    return Verdict(
        TIMED_OUT,
        "timed_out",
        f"it was ended after {end.limit_s:g} s, the limit of one run",
        "Raise --timeout (or AGENT_CLI_MCP_TIMEOUT_MS), or ask for less at once.",
    )


def _idle(_flavour: Flavour, end: Ending) -> Verdict:
    return Verdict(
        TIMED_OUT,
        "idle",
        f"it was ended because it printed nothing for {end.limit_s:g} s",
        "Raise --idle-timeout, or check the model server.",
    )


def _silent(_flavour: Flavour, end: Ending) -> Verdict:
    return Verdict(
        FAILED,
        "silent_session",
        f"it printed nothing for {end.limit_s:g} s after it was told to continue a session",
        "Give as cwd the folder of the session's first run; it can be continued only there.",
    )


def _flood(flavour: Flavour, _end: Ending) -> Verdict:
    return Verdict(
        FAILED,
        "flood",
        f"it was ended because it kept printing: more than {flavour.name} can have to say",
        "Ask for less output, for example for results in a file.",
    )


def _cancelled(_flavour: Flavour, _end: Ending) -> Verdict:
    return Verdict(CANCELLED, "cancelled", "it was ended because the run was cancelled")


_STOPPED = {
    STOP_TIMEOUT: _timed_out,
    STOP_IDLE: _idle,
    STOP_SILENT: _silent,
    STOP_FLOOD: _flood,
    STOP_CANCELLED: _cancelled,
}
