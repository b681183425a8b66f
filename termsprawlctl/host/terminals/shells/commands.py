"""Run one command in a terminal's own shell and learn how it went, with a clean screen.

How it works. The command is written into a private script (shells.py); what is typed
is one short line that sources it, so nothing has to be quoted, no line is too long and
no history expansion or abbreviation changes anything. That line is typed on the
alternate screen (handover.py); the script's first act is to switch back and to print
the command as if it had been typed. So the prompt, the command and its output are all
that stays on the screen and in its history. Where the output begins and ends, and the
exit status, come as marks (OSC 133) in the terminal's output, which the host reads
through tmux's pipe (streams.py); no terminal shows them.

The shell's state stays its own: the command runs in it, by eval, with `$?` as it was.
The shell's command history does not get the line, except in a zsh that keeps lines
with a leading blank (without HIST_IGNORE_SPACE).

Before anything is typed the shell has to be at its prompt (foreground.py), with nothing
half-typed on it. What looks like an empty prompt and is none, the continuation of an
unfinished command, is given up with Ctrl-C when the script does not start.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
import time

from ....base.errors import CtlError
from ....base.files import private_directory, read_small, remove_quietly, write_atomically
from ....base.ownership import is_ours
from ..foreground import Shell, foreground, is_running, waiting_shell
from ..nodes import Terminals
from ..panes import Pane, Panes
from ..streams import Stream, Streams
from .handover import TO_MAIN, Handover, PromptMoved
from .recording import Recording
from .scripts import scripts

# A prompt that runs git takes a moment to come back after a command.
PROMPT_WAIT_S = 1.0
QUIET_S = 0.03  # without output a prompt is taken as drawn
START_ATTEMPTS = 3  # a prompt that is drawn in parts may move what was typed
SETTLE_S = 2.0  # after the end, until the shell has drawn its prompt
POLL_S = 0.01
WATCH_S = 0.05  # how often a running command's shell is looked at
# How long a shell has to look as if it were at its prompt to be believed.
BACK_AT_PROMPT_S = 0.5
MAX_SAFE_DIRECTORY_CHARS = 80
MAX_SCRIPT_AGE_S = 7 * 86_400.0  # no command that is waited for runs that long
_SCRIPT_NAME = re.compile(r"[0-9a-f]{8}\.[12]")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_./+@-]+")
_CTRL_C_ECHO = b"^C"
_SIGINT_STATUS = 130  # what shells report for a command that Ctrl-C ended

# What wait() found.
DONE, TERMINAL_ENDED, TIMED_OUT, OTHER_SHELL = "done", "terminal ended", "timed out", "another shell"


class Running:
    """A command that was started in a terminal; `pane` is how the pane looked before."""

    def __init__(
        self, node_id: str, shell: Shell, pane: Pane, stream: Stream, recording: Recording, script: str
    ) -> None:
        self.node_id = node_id
        self.shell = shell
        self.pane = pane
        self.stream = stream
        self.recording = recording
        self.script = script  # the one that is sourced after the command
        self._offset = stream.end
        self._began_s = time.monotonic()

    def age_s(self) -> float:
        return time.monotonic() - self._began_s

    def was_interrupted(self) -> bool:
        """Whether the terminal showed a Ctrl-C since the start."""
        return _CTRL_C_ECHO in self.stream.read(self._offset)[1]


class Commands:
    """The commands in all terminals of a host, one per shell. `directory` is for their scripts."""

    def __init__(self, directory: str, terminals: Terminals, panes: Panes, streams: Streams) -> None:
        self._directory = directory
        self._other_directory: str | None = None
        self._terminals = terminals
        self._panes = panes
        self._streams = streams
        self._lock = threading.Lock()
        # Newest last: a command that is a shell itself has others run in it.
        self._running: dict[str, tuple[Running, ...]] = {}

    def start(self, node_id: str, command: str) -> Running:
        """Start a command. The caller holds the project's turn.

        Raises CtlError when the shell is not at its prompt, a person types there, or the
        shell does not take it; nothing has run then.
        """
        self._panes.refuse_if_person_types(node_id)
        for _ in range(START_ATTEMPTS - 1):
            try:
                return self._start(node_id, command)
            except PromptMoved:
                continue
        return self._start(node_id, command)

    def wait(self, running: Running, timeout_s: float, stopping) -> str:
        """Wait for the end: DONE, TERMINAL_ENDED, TIMED_OUT, or OTHER_SHELL when the command is one by now.

        Raises CtlError when the event `stopping` is set: the host is about to stop.
        """
        recording, end_s = running.recording, time.monotonic() + timeout_s
        back = Lasting(BACK_AT_PROMPT_S)
        while not recording.ended.wait(max(0.0, min(WATCH_S, end_s - time.monotonic()))):
            if running.stream.ended or not is_running(running.pane.pid):
                return TERMINAL_ENDED
            if stopping.is_set():
                raise CtlError("The host is stopping; the command goes on in its terminal.", "Read the terminal later.")
            shell = waiting_shell(running.pane.pid, running.pane.tty)
            # dash has no hook in its prompt that could tell.
            is_interrupted = shell == running.shell and shell.kind == "dash" and running.was_interrupted()
            if back.is_lasting(is_interrupted or shell not in (None, running.shell)):
                if not is_interrupted:
                    return OTHER_SHELL
                recording.give_up(_SIGINT_STATUS)
            elif time.monotonic() >= end_s and not recording.ended.is_set():
                return TIMED_OUT
        return DONE

    def running(self, node_id: str) -> Running | None:
        """The command that was started in a terminal and has not ended, as far as is known."""
        return next(iter(self._running.get(node_id, ())[::-1]), None)

    def note_end(self, node_id: str) -> None:
        """A terminal has ended, and with it what ran there."""
        for running in self._running.get(node_id, ()):
            if running.stream.ended:
                self._forget(running)

    def tidy(self) -> None:
        """Remove the scripts of commands whose host was killed before they ended, long ago.

        The other directory of such a host is this one's, if it had one.
        """
        self._other_directory = self._recorded()
        for directory in filter(None, (self._directory, self._other_directory)):
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if _SCRIPT_NAME.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > MAX_SCRIPT_AGE_S:
                        remove_quietly(entry.path)

    def leave(self) -> None:
        """The host ends: take away the other directory, unless a command still needs its script there."""
        if self._other_directory is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._other_directory)
                remove_quietly(self._pointer())

    def close(self, running: Running) -> tuple[bool, int | None]:
        """(whether the terminal has ended, its shell's exit status if known), once nobody waits any more."""
        node_id = running.node_id
        try:
            pane = self._panes.look(node_id)
            if not pane.dead and is_running(running.pane.pid):
                self._panes.keep_when_dead(pane, keep=False)
                return False, None
            status = self._panes.dead_status(node_id)
            while running.stream.quiet_s() < QUIET_S and not running.stream.ended:
                time.sleep(POLL_S)
            self._terminals.kill(node_id)
        except CtlError:
            status = None
        running.recording.give_up(None)
        return True, status

    def _start(self, node_id: str, command: str) -> Running:
        pane = self._panes.look_for_input(node_id)
        stream = self._streams.get(node_id)
        shell = self._prompt(node_id, pane, stream)
        self._refuse_while_running(node_id, shell)
        pane = self._panes.look_for_input(node_id)  # the cursor, now that the prompt is there
        handover = Handover(node_id, pane, shell, self._terminals, self._panes)
        run_id = os.urandom(4).hex()
        first, last = (os.path.join(self._script_directory(), f"{run_id}.{number}") for number in (1, 2))
        recording = Recording(run_id, on_end=lambda: self._forget(running))
        running = Running(node_id, shell, pane, stream, recording, last)
        text = scripts(shell.kind, run_id, command, (first, last), "" if pane.alternate else TO_MAIN)
        stream.listen(recording)
        with self._lock:
            self._running[node_id] = (*self._running.get(node_id, ()), running)
        try:
            for path, content in ((first, text.before), (last, text.after)):
                write_atomically(path, content.encode())
            self._panes.keep_when_dead(pane, keep=True)
            handover.type(text.line, recording.began)
        except BaseException as fault:
            self._forget(running)
            self._panes.keep_when_dead(pane, keep=False)
            if isinstance(fault, OSError):
                raise CtlError(f"The command cannot be handed over: {fault.strerror}.") from None
            raise
        finally:
            remove_quietly(first)
        return running

    def _prompt(self, node_id: str, pane: Pane, stream: Stream) -> Shell:
        """The shell, once it waits at its prompt. Raises CtlError when it does not soon."""
        end_s = time.monotonic() + PROMPT_WAIT_S
        while True:
            shell = waiting_shell(pane.pid, pane.tty)
            # A shell begins to wait before it has drawn its prompt.
            if shell is not None and (stream.quiet_s() > QUIET_S or time.monotonic() > end_s):
                return shell
            if shell is None and time.monotonic() > end_s:
                program = foreground(pane.pid)
                raise CtlError(
                    f"{'A program' if program is None else program.name} runs in terminal {node_id}: "
                    "no bash, zsh, fish or dash is at its prompt there. Nothing was typed.",
                    "Read the terminal; wait for the program, interrupt it, or use another terminal.",
                )
            time.sleep(POLL_S)

    def _refuse_while_running(self, node_id: str, shell: Shell) -> None:
        for earlier in self._running.get(node_id, ()):
            if earlier.shell.pid != shell.pid and is_running(earlier.shell.pid):
                continue  # it is the shell in which this one runs
            if earlier.shell == shell and not earlier.stream.ended and not earlier.was_interrupted():
                raise CtlError(
                    f"The command that was started {earlier.age_s():.0f} s ago still runs in terminal {node_id}; "
                    "nothing was typed.",
                    "Wait for it with terminal_wait, answer it with terminal_send, or stop it with terminal_interrupt.",
                )
            self._forget(earlier)

    def _forget(self, running: Running) -> None:
        running.stream.ignore(running.recording)
        remove_quietly(running.script)
        with self._lock:
            left = tuple(one for one in self._running.get(running.node_id, ()) if one is not running)
            if left:
                self._running[running.node_id] = left
            else:
                self._running.pop(running.node_id, None)

    def _script_directory(self) -> str:
        """A private directory whose path needs no quotes in any shell."""
        private_directory(self._directory)
        if _is_safe(self._directory):
            return self._directory
        # A shell will read what lies there: it has to be the directory that was made.
        if self._other_directory is None or not is_ours(self._other_directory):
            made = tempfile.mkdtemp(prefix="termsprawlctl-")
            if not _is_safe(made):
                os.rmdir(made)
                made = tempfile.mkdtemp(prefix="termsprawlctl-", dir="/tmp")
            self._other_directory = made
            write_atomically(self._pointer(), os.fsencode(made))
        return self._other_directory

    def _pointer(self) -> str:
        """The file that names the other directory, for the next host where this one is killed."""
        return os.path.join(self._directory, "scripts.path")

    def _recorded(self) -> str | None:
        try:
            path = os.fsdecode(read_small(self._pointer()))
        except OSError:
            return None
        return path if _is_safe(path) and is_ours(path) else None


def settle(pane: Pane, stream: Stream) -> None:
    """After a command's end: wait until the shell has drawn its prompt, for a moment."""
    end_s = time.monotonic() + SETTLE_S
    while time.monotonic() < end_s and is_running(pane.pid):
        if stream.quiet_s() > QUIET_S and waiting_shell(pane.pid, pane.tty) is not None:
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


def _is_safe(directory: str) -> bool:
    return len(directory) <= MAX_SAFE_DIRECTORY_CHARS and _SAFE_PATH.fullmatch(directory) is not None
