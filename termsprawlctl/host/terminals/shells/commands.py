"""Run one command in a terminal's own shell and learn how it went, with a clean screen.

How it works. The command is written into a private script (scripts.py); what is typed
is one short line that sources it, so nothing has to be quoted, no line is too long and
no history expansion or abbreviation changes anything. That line is typed on the
alternate screen (handover.py). The script's first act is to wait at a fifo (latch.py): now
the host knows that it was taken up, switches back, prints the command as if it had been
typed, and lets it go on. Until then the host can still call it off, so a refusal is a
promise that nothing ran. The prompt, the command and its output are all that stays on the
screen and in its history. Where the output begins and ends, and the exit status, come as
marks (OSC 133) in the terminal's output, which the host reads through tmux's pipe
(streams.py); no terminal shows them.

The shell's state stays its own: the command runs in it, by eval, with `$?` as it was.
The shell's command history does not get the line.

Before anything is typed the shell has to be at its prompt (foreground.py), with nothing
half-typed on it. What looks like an empty prompt and is none, the continuation of an
unfinished command, is given up with Ctrl-C when the script does not start.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from dataclasses import dataclass

from ....base import threads
from ....base.errors import CtlError
from ....base.files import remove_quietly, write_atomically
from ....base.processtable import is_running
from ..directory import PlainDirectory
from ..foreground import NAMES, Shell, foreground, is_drawing, mode_of, shell_of, waiting_shell
from ..nodes import Terminals
from ..panes import EndedError, Pane, Panes
from ..prompts import Prompt, PromptMovedError
from ..streams import Stream, Streams
from . import latch as latches
from .handover import Handover
from .latch import Latch
from .recording import Output, Recording
from .scripts import Files, begin_mark, has_hook, scripts, shown

# A prompt that runs git takes a moment to come back after a command.
PROMPT_WAIT_S = 1.0
FIRST_PROMPT_WAIT_S = 8.0  # a new shell reads its start-up files before
DRAWING_WAIT_S = 5.0  # until a prompt is there that runs programs itself
QUIET_S = 0.03  # without output a prompt is taken as drawn
START_ATTEMPTS = 3  # a prompt that is drawn in parts may move what was typed
SETTLE_S = 2.0  # after the end, until the shell has drawn its prompt
POLL_S = 0.01
WATCH_S = 0.05  # how often a running command's shell is looked at
WATCH_LEFT_S = 0.2  # the same where nobody waits for it
# How long a shell has to look as if it were at its prompt to be believed.
BACK_AT_PROMPT_S = 0.5
END_WAIT_S = 2.0  # from a terminal's end to knowing how it ended
BEGIN_WAIT_S = 2.0  # until the host's own mark has come back through tmux's pipe
MAX_SCRIPT_AGE_S = 7 * 86_400.0  # no command that is waited for runs that long
_SCRIPT_NAME = re.compile(r"[0-9a-f]{8}\.([12]|no-hook)")
_CTRL_C_ECHO = b"^C"
_SIGINT_STATUS = 130  # what shells report for a command that Ctrl-C ended

# What wait() found.
DONE, TERMINAL_ENDED, TIMED_OUT, OTHER_SHELL = "done", "terminal ended", "timed out", "another shell"


@dataclass(frozen=True)
class Closed:
    """How a run's terminal stands once nobody waits: whether it has ended, and its shell's exit status if known."""

    ended: bool
    status: int | None


class Running:
    """A command that was started in a terminal; `pane` is how the pane looked before."""

    def __init__(
        self, node_id: str, shell: Shell, pane: Pane, stream: Stream, recording: Recording, files: Files
    ) -> None:
        self.node_id = node_id
        self.shell = shell
        self.pane = pane
        self.stream = stream
        self.recording = recording
        self.files = files
        # Places in the stream; `ended_at` is None while it runs.
        self.began_at = stream.listen(recording)
        self.ended_at: int | None = None
        self._began_s = time.monotonic()

    def output_at(self) -> int:
        """The place where its output begins."""
        return self.began_at + (self.recording.begins_after or 0)

    def ends_at(self) -> int | None:
        """The place behind its output and end mark; None while it runs, or where no shell told."""
        after = self.recording.ends_after
        return None if after is None else self.began_at + after

    def output(self) -> Output:
        """What it wrote so far."""
        pane, stream, began_at = self.pane, self.stream, self.began_at
        return self.recording.output(
            pane.columns,
            pane.rows,
            pane.line,
            lambda transcript, at, data: stream.feed(transcript, began_at + at, data),
        )

    def age_s(self) -> float:
        return time.monotonic() - self._began_s

    def has_hook(self) -> bool:
        """Whether the shell tells of an end also where the command was broken off."""
        return has_hook(self.shell.kind) and not os.path.exists(self.files.no_hook)

    def was_interrupted(self) -> bool:
        """Whether the terminal showed a Ctrl-C since the start."""
        return _CTRL_C_ECHO in self.stream.read(self.began_at).data

    def is_followed(self) -> bool:
        """Whether its output comes: the mark that the host wrote itself has arrived."""
        return self.recording.began.is_set() or self.age_s() < BEGIN_WAIT_S


class Commands:
    """The commands in all terminals of a host, one per shell. `directory` is for their scripts."""

    def __init__(self, directory: PlainDirectory, terminals: Terminals, panes: Panes, streams: Streams) -> None:
        self._directory = directory
        self._terminals = terminals
        self._panes = panes
        self._streams = streams
        self._lock = threading.Lock()
        # Newest last: a command that is a shell itself has others run in it.
        self._running: dict[str, tuple[Running, ...]] = {}
        self._last: dict[str, Running] = {}
        self._left: list[Running] = []  # nobody waits for them
        self._is_watching = False
        self._known: dict[str, Shell] = {}

    def start(self, node_id: str, command: str, prompt_wait_s: float = PROMPT_WAIT_S) -> Running:
        """Start a command; only one is started in a terminal at a time.

        Raises CtlError when the shell is not at its prompt, a person types there, or the
        shell does not take it; nothing has run then.
        """
        self._panes.refuse_if_person_types(node_id)
        for _ in range(START_ATTEMPTS - 1):
            try:
                return self._start(node_id, command, prompt_wait_s)
            except PromptMovedError:
                continue
        return self._start(node_id, command, prompt_wait_s)

    def wait(self, running: Running, timeout_s: float, stopping: threading.Event) -> str:
        """Wait for the end: DONE, TERMINAL_ENDED, TIMED_OUT, or OTHER_SHELL when the command is one by now.

        Raises CtlError when the event `stopping` is set: the host is about to stop.
        """
        recording, end_s = running.recording, time.monotonic() + timeout_s
        back = Lasting(BACK_AT_PROMPT_S)
        while not recording.ended.wait(max(0.0, min(WATCH_S, end_s - time.monotonic()))):
            if running.stream.ended or not is_running(running.pane.pid):
                return TERMINAL_ENDED
            if stopping.is_set():
                raise CtlError(
                    f"The host is stopping; the command goes on in terminal {running.node_id}.",
                    "Read the terminal later.",
                )
            shell = waiting_shell(running.pane.pid, running.pane.tty)
            is_back = shell == running.shell and (self._is_broken_off(running) or not running.is_followed())
            if back.is_lasting(is_back or shell not in (None, running.shell)):
                if not is_back:
                    return OTHER_SHELL
                recording.give_up(_SIGINT_STATUS if running.was_interrupted() else None)
            elif time.monotonic() >= end_s and not recording.ended.is_set():
                return TIMED_OUT
        return DONE

    def running(self, node_id: str) -> Running | None:
        """The command that was started in a terminal and has not ended, as far as is known."""
        return next(iter(self._running.get(node_id, ())[::-1]), None)

    def last(self, node_id: str) -> Running | None:
        """The command that was started last in a terminal, whether it has ended or not."""
        return self._last.get(node_id)

    def note_end(self, node_id: str) -> None:
        """A terminal has ended, and with it what ran there."""
        for running in self._running.get(node_id, ()):
            if running.stream.ended:
                self._forget(running)

    def forget_node(self, node_id: str) -> None:
        """The node is no more."""
        self._last.pop(node_id, None)
        self._known.pop(node_id, None)

    def tidy(self) -> None:
        """Release what waits for a host that was killed, and remove its scripts of long ago."""
        for path in self._directory.entries():
            if latches.SUFFIX in os.path.basename(path):
                latches.release(path)
                continue
            with contextlib.suppress(OSError):
                is_old = time.time() - os.stat(path).st_mtime > MAX_SCRIPT_AGE_S
                if is_old and _SCRIPT_NAME.fullmatch(os.path.basename(path)):
                    remove_quietly(path)

    def close(self, running: Running) -> Closed:
        """Once nobody waits any more: end the terminal whose shell has ended, and watch the command that goes on."""
        node_id = running.node_id
        try:
            pane = self._panes.look(node_id)
            if not pane.dead and is_running(running.pane.pid):
                if running.recording.ended.is_set() or not self._watch(running):
                    self._panes.keep_when_dead(pane, keep=False)
                return Closed(ended=False, status=None)
            status = self._panes.dead_status(node_id)
            running.recording.note_status(status)
            while running.stream.quiet_s() < QUIET_S and not running.stream.ended:
                time.sleep(POLL_S)
            running.recording.give_up(None)  # whoever finds the terminal gone finds the status
            self._terminals.kill(node_id)
        except EndedError:
            status = None
        except CtlError:  # tmux does not answer: nobody knows
            self._watch(running)
            return Closed(ended=False, status=None)
        running.recording.give_up(None)
        return Closed(ended=True, status=status)

    def _watch(self, running: Running) -> bool:
        """See to it that a command's status is known however its terminal ends; False where that cannot be done."""
        with self._lock:
            if running not in self._left:
                self._left.append(running)
            was_watching, self._is_watching = self._is_watching, True
        try:
            if not was_watching:
                threads.start(self._watch_all)
        except RuntimeError:
            self._is_watching = False
            return False
        return True

    def _watch_all(self) -> None:
        """In a thread of its own, while there is a command that nobody waits for."""
        while True:
            time.sleep(WATCH_LEFT_S)
            for running in self._left[:]:
                is_there = is_running(running.pane.pid) and not running.stream.ended
                if is_there and not running.recording.ended.is_set():
                    continue
                with self._lock:
                    self._left.remove(running)
                self.close(running)  # which may put it back
            with self._lock:
                if not self._left:
                    self._is_watching = False
                    return

    @staticmethod
    def _is_broken_off(running: Running) -> bool:
        """Whether a shell that is at its prompt will not tell of the command's end any more."""
        if running.has_hook():
            return False
        mode = mode_of(running.pane.tty)
        # Where the shell has no line editor, a command that reads a line looks like its prompt.
        return running.was_interrupted() or (mode is not None and not mode.lines)

    def _start(self, node_id: str, command: str, prompt_wait_s: float) -> Running:
        pane = self._panes.look_for_input(node_id)
        stream = self._streams.get(node_id)
        shell = self._prompt(node_id, pane, stream, prompt_wait_s)
        self._refuse_while_running(node_id, shell)
        prompt = Prompt(node_id, shell, self._terminals, self._panes, stream)
        handover = Handover(node_id, prompt, self._terminals, self._panes)
        pane = prompt.pane
        run_id = os.urandom(4).hex()
        files = self._files(run_id)
        recording = Recording(run_id, on_end=lambda: self._forget(running))
        running: Running = Running(node_id, shell, pane, stream, recording, files)
        text = scripts(shell.kind, run_id, command, files)
        with self._lock:
            self._running[node_id] = (*self._running.get(node_id, ()), running)
        try:
            latch = Latch(files.latch)
            for path, content in ((files.before, text.before), (files.after, text.after)):
                write_atomically(path, content.encode())
            self._panes.keep_when_dead(pane, keep=True)
            told = shown(command) + begin_mark(run_id).decode()
            handover.type(text.line, latch, told, is_new=self._known.get(node_id) != shell)
            self._known[node_id] = shell
        except BaseException as fault:
            self._forget(running)
            self._panes.keep_when_dead(pane, keep=False)
            if isinstance(fault, OSError):
                raise CtlError(
                    f"The command cannot be handed over: {fault.strerror}.", "Read the terminal before you try again."
                ) from None
            raise
        finally:
            remove_quietly(files.before)
            remove_quietly(files.latch)
        self._last[node_id] = running
        return running

    def _prompt(self, node_id: str, pane: Pane, stream: Stream, prompt_wait_s: float) -> Shell:
        """The shell, once it waits at its prompt. Raises CtlError when it does not soon."""
        end_s = time.monotonic() + prompt_wait_s
        drawn_s = time.monotonic() + DRAWING_WAIT_S
        while True:
            shell = waiting_shell(pane.pid, pane.tty)
            now_s = time.monotonic()
            # A shell begins to wait before it has drawn its prompt.
            if shell is not None and is_drawing(shell) and now_s < drawn_s:
                end_s = now_s + PROMPT_WAIT_S
            elif shell is not None and (stream.quiet_s() > QUIET_S or now_s > end_s):
                return shell
            elif shell is None and now_s > end_s:
                raise self._not_a_prompt(node_id, pane)
            time.sleep(POLL_S)

    @staticmethod
    def _not_a_prompt(node_id: str, pane: Pane) -> CtlError:
        program, mode = foreground(pane.pid), mode_of(pane.tty)
        if program is not None and shell_of(program) is not None and mode is not None and mode.lines and not mode.echo:
            return CtlError(
                f"Terminal {node_id} does not show what is typed (a password, or stty -echo). Nothing was typed.",
                "Read the terminal; terminal_input answers what asks there.",
            )
        return CtlError(
            f"{'A program' if program is None else program.name} runs in terminal {node_id}: "
            f"no {NAMES} is at its prompt there. Nothing was typed.",
            "Read the terminal; wait for the program, interrupt it, or use another terminal.",
        )

    def _refuse_while_running(self, node_id: str, shell: Shell) -> None:
        for earlier in self._running.get(node_id, ()):
            if earlier.shell.pid != shell.pid and is_running(earlier.shell.pid):
                continue  # it is the shell in which this one runs
            if earlier.shell == shell and not earlier.stream.ended and not self._is_over(earlier):
                raise CtlError(
                    f"The command that was started {earlier.age_s():.0f} s ago still runs in terminal {node_id}; "
                    "nothing was typed.",
                    "Wait for it with terminal_wait, answer it with terminal_send, or stop it with terminal_interrupt.",
                )
            self._forget(earlier)

    def _is_over(self, earlier: Running) -> bool:
        """Whether a command that has told no end has ended all the same: its shell is at its prompt."""
        return earlier.was_interrupted() or not earlier.is_followed() or self._is_broken_off(earlier)

    def _forget(self, running: Running) -> None:
        if running.ended_at is None:
            running.ended_at = running.stream.end
        running.stream.ignore(running.recording)
        for path in (running.files.after, running.files.no_hook):
            remove_quietly(path)
        with self._lock:
            left = tuple(one for one in self._running.get(running.node_id, ()) if one is not running)
            if left:
                self._running[running.node_id] = left
            else:
                self._running.pop(running.node_id, None)

    def _files(self, run_id: str) -> Files:
        directory = self._directory.path()
        first, last = (os.path.join(directory, f"{run_id}.{number}") for number in (1, 2))
        base = os.path.join(directory, run_id)
        return Files(before=first, after=last, latch=base + latches.SUFFIX, no_hook=base + ".no-hook")


def settle(pane: Pane, stream: Stream) -> None:
    """After a command's end: wait until the shell has drawn its prompt, for a moment."""
    end_s = time.monotonic() + SETTLE_S
    while time.monotonic() < end_s and is_running(pane.pid):
        shell = waiting_shell(pane.pid, pane.tty)
        if shell is not None and stream.quiet_s() > QUIET_S and not is_drawing(shell):
            return
        time.sleep(POLL_S)


class Lasting:
    """Whether something has been true at every look for a while."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self._since_s: float | None = None

    def is_lasting(self, now_true: bool) -> bool:  # noqa: FBT001 - it is the question itself
        if not now_true:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = time.monotonic()
        return time.monotonic() - self._since_s > self._duration_s
