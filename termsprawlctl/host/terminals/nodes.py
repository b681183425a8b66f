"""Terminal nodes as tmux sessions: open, read, type, interrupt, close.

The tmux server is the truth: it outlives a restart of the host, and each session
carries the project that it belongs to.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

from ...base.errors import CtlError
from ...base.layout import SESSION_PREFIX, tmux_session
from ...base.tmux import Tmux, TmuxError, exact, exact_pane

COLUMNS, ROWS = 120, 32
HISTORY_LINES = 50_000
DEFAULT_READ_CHARS = 16_000
MAX_READ_CHARS = 100_000
# A shell draws its prompt in well under a second; one that shows nothing at all (an
# empty prompt) is taken as ready after this.
READY_WAIT_S = 3.0
READY_POLL_S = 0.02
# Most reads end within so many lines; only longer ones pay for the whole history.
FIRST_READ_LINES = 1_000
PROJECT_OPTION = "@termsprawl_project"
# What tmux says where nothing listens on its socket, or where there is none.
_NO_SERVER = ("no server running", "No such file or directory")

CONFIGURATION = f"""\
# Written by termsprawlctl host at each start.
set -g status off
set -g mouse on
set -g history-limit {HISTORY_LINES}
set -s set-clipboard on
set -s escape-time 10
"""


class Terminals:
    """The terminals of one tmux server. All methods raise CtlError with a text for agents."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        # Known while its socket exists, and still needed when that was deleted.
        self.server_pid: int | None = None
        self._as_it_is: tuple[str, ...] | None = None  # what makes tmux paste text unchanged, once that is known

    def open(
        self, node_id: str, project: str, folder: str, environment: dict[str, str], argv: list[str] | None = None
    ) -> None:
        """Start a login shell for a node, or argv, and wait until it shows something."""
        name = tmux_session(node_id)
        variables = [word for key, value in environment.items() for word in ("-e", f"{key}={value}")]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        try:
            command = ["--", *_never_through_a_shell(argv)] if argv else []
            # In one step: a session without its project would belong to nobody.
            told = self._tmux.run_all(
                (
                    "new-session",
                    "-d",
                    "-P",
                    "-F",
                    "#{pid}",
                    "-s",
                    name,
                    "-c",
                    no_format(folder),
                    *size,
                    *variables,
                    *command,
                ),
                _claim(node_id, project),
            )
            # Known in the same step: from now on its socket may be deleted with the directory around it.
            self._note_server(told)
        except TmuxError as error:
            self.kill(node_id)
            raise CtlError(f"The terminal could not be started ({error.message}).") from None
        self._wait_until_ready(name)

    def project_of(self, node_id: str) -> str | None:
        """The project that a node's session belongs to; None when there is no such session."""
        try:
            return self._tmux.display(exact_pane(tmux_session(node_id)), f"#{{{PROJECT_OPTION}}}") or None
        except TmuxError:
            return None

    def alive(self) -> dict[str, str]:
        """Node id to project of every session that runs."""
        try:
            return {node_id: project for node_id, project in self.sessions().items() if project}
        except TmuxError:
            return {}

    def sessions(self) -> dict[str, str]:
        """Node id to project of every session of that name, "" where none is noted.

        {} where no tmux server runs; raises CtlError where one cannot be asked.
        """
        try:
            listing = self._tmux.run("list-sessions", "-F", f"#{{{PROJECT_OPTION}}} #{{session_name}}")
        except TmuxError as error:
            if any(words in error.message for words in _NO_SERVER):
                return {}
            raise
        rows = [line.partition(" ") for line in listing.splitlines()]
        return {name[len(SESSION_PREFIX) :]: project for project, _, name in rows if name.startswith(SESSION_PREFIX)}

    def claim(self, node_id: str, project: str) -> None:
        """Note which project a session belongs to. Raises CtlError."""
        self._tmux.run(*_claim(node_id, project))

    def read(self, node_id: str, max_chars: int) -> str:
        """The last max_chars characters: logical lines, trailing blanks stripped."""
        text = self._capture(node_id, FIRST_READ_LINES)
        if len(text) < max_chars:
            text = self._capture(node_id, HISTORY_LINES)
        return text[-max_chars:] if max_chars else ""

    def describe(self, node_id: str, template: str) -> str:
        """A tmux format, expanded for the node's pane."""
        try:
            return self._tmux.display(exact_pane(tmux_session(node_id)), template)
        except TmuxError:
            raise self._ended(node_id) from None

    def submit(self, node_id: str, command: str, pause_s: float = 0.0) -> None:
        """Type a command as one paste, so that tabs and newlines in it stay text, then press Enter."""
        pane = self._pane(node_id)
        enter = ("send-keys", "-t", pane, "Enter")
        if pause_s:
            if command:
                self._tmux.run_all(*self._paste(pane, command, "-p"), stdin=command.encode())
            time.sleep(pause_s)
            self._tmux.run(*enter)
        else:  # in one step: no half-typed line is left behind
            self._tmux.run_all(*self._paste(pane, command, "-p"), enter, stdin=command.encode())

    def type(self, node_id: str, text: str) -> None:
        """Type exact characters, as a person would: without the marks of a paste."""
        pane = self._pane(node_id)
        if text:
            self._tmux.run_all(*self._paste(pane, text), stdin=text.encode())

    def _paste(self, pane: str, text: str, *flags: str) -> list[tuple[str, ...]]:
        """The commands that paste their input, which is `text`, into a pane; none where there is nothing to paste."""
        if not text:
            return []
        if self._as_it_is is None:
            # Newer tmuxes (3.7) write control characters as ^A unless they are told not to.
            usage = self._tmux.run("list-commands", "paste-buffer")
            self._as_it_is = ("-S",) if re.search(r"\[-\w*S", usage) else ()
        # A buffer is the only way on which every byte arrives: send-keys takes a leading
        # dash for an option and eats a `;` at the end.
        buffer = f"ctl-{os.urandom(6).hex()}"
        paste = ("paste-buffer", *self._as_it_is, *flags, "-r", "-d", "-b", buffer, "-t", pane)
        return [("load-buffer", "-b", buffer, "-"), paste]

    def interrupt(self, node_id: str) -> None:
        """Press Ctrl-C."""
        self._tmux.run("send-keys", "-t", self._pane(node_id), "C-c")

    def kill(self, node_id: str) -> None:
        """End the session and all that runs in it; one that is gone already is no error."""
        try:
            self._tmux.run("kill-session", "-t", exact(tmux_session(node_id)))
        except TmuxError:
            return

    def kill_all(self) -> None:
        """End the tmux server with every session in it."""
        try:
            self._tmux.run("kill-server")
        except TmuxError:
            return

    def look_for_server(self) -> None:
        """Note the process id of a tmux server that runs already in `server_pid`; never fails."""
        with contextlib.suppress(CtlError):
            self._note_server(self._tmux.run("display-message", "-p", "#{pid}"))

    def _note_server(self, told: str) -> None:
        if told.strip().isdigit():
            self.server_pid = int(told)

    def _pane(self, node_id: str) -> str:
        """The id of the node's pane, which is out of copy mode afterwards."""
        pane, _, modes = self.describe(node_id, "#{pane_id} #{pane_in_mode}").partition(" ")
        if modes not in ("", "0"):
            # In copy mode keys are commands of that mode, not input of the program.
            self._tmux.run("send-keys", "-t", pane, "-X", "cancel")
        return pane

    def _capture(self, node_id: str, lines: int) -> str:
        target = exact_pane(tmux_session(node_id))
        try:
            # -J joins wrapped lines, and pads them: strip what it padded.
            text = self._tmux.run("capture-pane", "-p", "-J", "-S", f"-{lines}", "-t", target)
        except TmuxError:
            raise self._ended(node_id) from None
        return "\n".join(line.rstrip(" ") for line in text.split("\n")).rstrip("\n")

    def _wait_until_ready(self, name: str) -> None:
        end = time.monotonic() + READY_WAIT_S
        while time.monotonic() < end:
            try:
                if self._tmux.run("capture-pane", "-p", "-t", exact_pane(name)).strip():
                    return
            except TmuxError:
                raise CtlError(
                    "The terminal's shell ended at once.", "Check the login shell's start-up files."
                ) from None
            time.sleep(READY_POLL_S)

    @staticmethod
    def _ended(node_id: str) -> CtlError:
        return CtlError(
            f"The terminal {node_id} has ended: its tmux session is gone.",
            "Open a new one with terminal_open; terminal_close removes this one.",
        )


def no_format(text: str) -> str:
    """Text for an argument that tmux expands as a format: `#(...)` in it would even run commands."""
    return text.replace("#", "##")


def _claim(node_id: str, project: str) -> tuple[str, ...]:
    return ("set-option", "-t", exact_pane(tmux_session(node_id)), PROJECT_OPTION, project)


def _never_through_a_shell(argv: list[str]) -> list[str]:
    # tmux runs several words as they are, but gives a single one to a shell.
    return argv if len(argv) > 1 else ["env", *argv]
