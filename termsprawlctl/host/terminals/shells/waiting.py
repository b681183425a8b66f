"""Wait until a terminal shows something new: a text, a pattern, silence, or an end."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass

from ....base.errors import CtlError
from ..foreground import waiting_shell
from ..panes import Pane
from ..screen.transcript import Transcript
from ..streams import Stream
from .commands import END_WAIT_S, Lasting, Running, settle
from .patterns import Pattern

POLL_S = 0.05
BATCH_S = 0.02
# A shell that waits for a command line for so long has its prompt back for good.
BACK_AT_PROMPT_S = 0.1
# Read at a time; where a terminal writes faster than that, the middle is searched as raw
# bytes for a text, and not at all for a pattern.
MAX_STEP_BYTES = 64 << 10
# After so much the transcript begins anew, so that searching it stays cheap.
MAX_TRANSCRIPT_BYTES = 256 << 10
# What shells with their integration print after each command.
_SHELLS_OWN_END = re.compile(rb"\x1b\]133;D;([0-9]{1,3})(?:;(?!termsprawl=)[^\x07\x1b]*)?(?:\x07|\x1b\\)")


@dataclass(frozen=True)
class Conditions:
    """What to wait for; None for what does not matter."""

    text: str | None = None
    pattern: str | None = None
    idle_s: float | None = None
    exits: bool = False

    def is_empty(self) -> bool:
        return self == Conditions()


@dataclass(frozen=True)
class Found:
    """What ended a wait.

    `reason`: text, pattern, idle, exit or timeout. `match`: the lines with the match.
    `offset`: how far the output was looked at. `output`: the last of what was new.
    `exit_status`: of the command that ended, None where the shell does not tell.
    """

    reason: str
    match: str | None
    offset: int
    output: str
    exit_status: int | None


class Wait:
    """One wait, which looks at what the terminal wrote from the place `offset` on.

    `run` is the command that terminal_run started there last, if it belongs to that time.
    """

    def __init__(self, stream: Stream, pane: Pane, conditions: Conditions, run: Running | None, offset: int) -> None:
        self._stream = stream
        self._pane = pane
        self._conditions = conditions
        self._run_before = run
        self._offset = self._began_at = offset
        self._alternate = pane.alternate
        self._began_s = time.monotonic()
        self._transcript = self._new_transcript()
        before = stream.context(offset)
        stream.feed(self._transcript, offset - len(before), before)
        self._transcript.mark()
        self._fed = 0
        self._back = Lasting(BACK_AT_PROMPT_S)
        # The end of nothing is no end: something has to run first, or to have run since that place.
        self._was_busy = run is not None or waiting_shell(pane.pid, pane.tty) is None
        self._was_busy = self._was_busy or b"\n" in stream.read(offset).data

    def run(self, timeout_s: float, stopping: threading.Event) -> Found:
        """Block until something happens.

        Raises CtlError for a pattern that is none or takes too long, and when the event
        `stopping` is set: the host is about to stop.
        """
        pattern = None if self._conditions.pattern is None else Pattern(self._conditions.pattern)
        try:
            return self._run(pattern, self._began_s + timeout_s, stopping)
        finally:
            if pattern is not None:
                pattern.close()

    def _run(self, pattern: Pattern | None, end_s: float, stopping: threading.Event) -> Found:
        while True:
            left_s = end_s - time.monotonic()
            more = self._stream.wait_beyond(self._offset, max(0.0, min(POLL_S, left_s)))
            found = self._look(pattern) if more else None
            if found is not None:
                return found
            if more:  # let some come together; searching for every few bytes costs too much
                time.sleep(min(BATCH_S, max(0.0, left_s)))
            if self._stream.ended and not more:
                return self._found("exit", exit_status=self._exit_status())
            if self._conditions.exits and self._has_exited():
                settle(self._pane, self._stream)
                self._offset = self._stream.end
                return self._found("exit", exit_status=self._exit_status())
            idle_s = self._conditions.idle_s
            if idle_s is not None and min(self._stream.quiet_s(), time.monotonic() - self._began_s) >= idle_s:
                return self._found("idle")
            if left_s <= 0:
                return self._found("timeout")
            if stopping.is_set():
                raise CtlError(
                    "The host is stopping; the terminal goes on without it.",
                    "Once session_info answers again, read the terminal, then wait anew.",
                )

    def _look(self, pattern: Pattern | None) -> Found | None:
        """Take what came and search it."""
        part = self._stream.read(self._offset)
        data = part.data
        self._offset = part.start + len(data)
        text = self._conditions.text
        if len(data) > MAX_STEP_BYTES:
            if text is not None and text.encode("utf-8", "replace") in data:
                return self._found("text", match=text)
            data = data[data.find(b"\n", -MAX_STEP_BYTES) + 1 :]
            self._begin_anew()
        elif self._fed > MAX_TRANSCRIPT_BYTES and b"\n" in data:
            # Up to the line's end it belongs to what was there.
            head, _, data = data.partition(b"\n")
            self._stream.feed(self._transcript, part.start, head)
            found = self._search(pattern)
            if found is not None:
                return found
            self._begin_anew()
        self._stream.feed(self._transcript, self._offset - len(data), data)
        self._fed += len(data)
        return self._search(pattern)

    def _search(self, pattern: Pattern | None) -> Found | None:
        if self._conditions.text is None and pattern is None:
            return None
        shown = self._transcript.since()
        if self._transcript.alternate:
            shown = f"{shown}\n{self._transcript.shown_text()}"
        if pattern is not None:
            match = pattern.search(shown)
            return None if match is None else self._found("pattern", match=match)
        text = self._conditions.text or ""
        at = shown.find(text)
        if at < 0:
            return None
        begin = shown.rfind("\n", 0, at) + 1
        end = shown.find("\n", at + len(text))
        return self._found("text", match=shown[begin:] if end < 0 else shown[begin:end])

    def _has_exited(self) -> bool:
        run = self._run_before
        if run is not None and run.recording.ended.is_set():
            return True
        shell = waiting_shell(self._pane.pid, self._pane.tty)
        if shell is None:
            self._was_busy = True
        # A command that reads a line looks like a prompt; the one that we started tells its end itself.
        may_tell = run is not None and shell == run.shell and not run.was_interrupted()
        return self._back.is_lasting(self._was_busy and shell is not None and not may_tell)

    def _exit_status(self) -> int | None:
        if self._run_before is not None:
            recording = self._run_before.recording
            if self._stream.ended:
                recording.ended.wait(END_WAIT_S)
            return recording.status
        ends = _SHELLS_OWN_END.findall(self._stream.read(self._began_at).data)
        return int(ends[-1]) if ends else None

    def _begin_anew(self) -> None:
        self._alternate = self._transcript.alternate
        self._transcript = self._new_transcript()
        self._fed = 0

    def _new_transcript(self) -> Transcript:
        return Transcript(self._pane.columns, self._pane.rows, alternate=self._alternate)

    def _found(self, reason: str, match: str | None = None, exit_status: int | None = None) -> Found:
        return Found(reason, match, self._offset, self._transcript.since(), exit_status)
