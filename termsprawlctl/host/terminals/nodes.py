"""Terminal nodes as tmux sessions: open, read, type, interrupt, close.

The tmux server is the truth: it outlives a restart of the host, and each pane carries the
node and the project that it belongs to.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

from ...base.errors import CtlError
from ...base.layout import SESSION_PREFIX, tmux_session
from ...base.processtable import environment_of, has_proc
from ...base.tmux import TmuxError, exact, exact_pane, for_format
from ...base.waiting import until
from .panes import NODE_OPTION, PANE_OPTION, PROJECT_OPTION, EndedError, Panes
from .server import Server, TargetGoneError

COLUMNS, ROWS = 120, 32
HISTORY_LINES = 50_000
DEFAULT_READ_CHARS = 16_000
MAX_READ_CHARS = 100_000
# A shell draws its prompt in well under a second; one that shows nothing at all (an
# empty prompt) is taken as ready after this.
READY_WAIT_S = 3.0
READY_POLL_S = 0.02
BEGIN_WAIT_S = 1.0  # until a new program is the one that was asked for
# Most reads end within so many lines; only longer ones pay for the whole history.
FIRST_READ_LINES = 1_000

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

    def __init__(self, server: Server, panes: Panes | None = None) -> None:
        self._server = server
        self._panes = panes or Panes(server)
        self._unchanged: tuple[str, ...] | None = None  # what makes tmux paste text unchanged, once that is known

    def open(
        self, node_id: str, project: str, folder: str, environment: dict[str, str], argv: list[str] | None = None
    ) -> None:
        """Start a login shell for a node, or argv, and wait until it shows something."""
        if not os.access(folder, os.X_OK):  # tmux would start it in another folder
            raise CtlError(f"The folder {folder} cannot be entered; no terminal was started.", "Check its permissions.")
        wanted = os.stat(folder)
        name = tmux_session(node_id)
        variables = [word for key, value in environment.items() for word in ("-e", f"{key}={value}")]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        argv = argv or self._login_shell()
        command = ["--", *_never_through_a_shell(argv)] if argv else []
        begin = ["new-session", "-d", "-P", "-F", "#{pid} #{pane_pid}", "-s", name, "-c", for_format(folder)]
        self._server.refuse_second()
        self._server.refuse_without_room()
        try:
            # In one step: a session without its project would belong to nobody.
            answer = self._server.run_all(
                (*begin, *size, *variables, *command),
                ("set-option", "-p", "-t", exact_pane(name), NODE_OPTION, node_id),
                ("set-option", "-p", "-t", exact_pane(name), PROJECT_OPTION, project),
                ("set-option", "-t", exact_pane(name), PROJECT_OPTION, project),
                ("set-option", "-F", "-t", exact_pane(name), PANE_OPTION, "#{pane_id}"),
            )
        except TmuxError as error:
            self.kill(node_id)
            raise CtlError(f"The terminal could not be started ({error.message}).", error.remedy) from None
        # Known in the same step: from now on its socket may be deleted with the directory around it.
        pid, _, pane_pid = answer.strip().partition(" ")
        self._server.note(pid)
        elsewhere = _started_elsewhere(pane_pid, folder, wanted, environment)
        if elsewhere is not None:
            self.kill(node_id)
            raise CtlError(
                f"The terminal was started in {elsewhere} and not in {folder}, and ended again.",
                "Somebody moved the folder, or tmux may not enter it: look at it, then try again.",
            )
        self._wait_until_ready(node_id)

    def project_of(self, node_id: str) -> str | None:
        """The project that a node's pane belongs to; None where the terminal has ended."""
        return self._panes.project_of(node_id)

    def alive(self) -> dict[str, str]:
        """Node id to project of every terminal that runs."""
        return {node_id: project for node_id, project in self.sessions().items() if project}

    def sessions(self) -> dict[str, str]:
        """Node id to project of every terminal that runs, "" where none is noted; {} where no tmux server runs."""
        listing = self._panes.listing()
        found = {pane.node: pane.project for pane in listing if pane.node}
        for pane in listing:
            node_id = pane.session[len(SESSION_PREFIX) :]
            if pane.session.startswith(SESSION_PREFIX) and pane.of(node_id):
                found.setdefault(node_id, pane.project)
        return found

    def claim(self, node_id: str, project: str) -> None:
        """Note which project a terminal belongs to."""
        self._panes.claim(node_id, project)

    def read(self, node_id: str, max_chars: int) -> str:
        """The last max_chars characters: logical lines, trailing blanks stripped."""
        text = self._capture(node_id, FIRST_READ_LINES)
        if len(text) < max_chars:
            text = self._capture(node_id, HISTORY_LINES)
        return text[-max_chars:] if max_chars else ""

    def describe(self, node_id: str, template: str) -> str:
        """A tmux format, expanded for the node's pane."""
        return self._panes.describe(node_id, template)

    def submit(self, node_id: str, command: str, pause_s: float = 0.0) -> None:
        """Type a command as one paste, so that tabs and newlines in it stay text, then press Enter."""
        pane = self._panes.look_for_input(node_id).id
        enter = ("send-keys", "-t", pane, "Enter")
        if pause_s:
            self.paste(node_id, command)
            time.sleep(pause_s)
            self._panes.run(node_id, *enter)
        else:  # in one step: no half-typed line is left behind
            self._panes.run_all(node_id, *self._paste(pane, command, "-p"), enter, stdin=command.encode())

    def paste(self, node_id: str, text: str) -> None:
        """Type a text as one paste, with the marks of one for a program that asked for them."""
        pane = self._panes.look_for_input(node_id).id
        if text:
            self._panes.run_all(node_id, *self._paste(pane, text, "-p"), stdin=text.encode())

    def type(self, node_id: str, text: str) -> None:
        """Type exact characters, as a person would: without the marks of a paste."""
        pane = self._panes.look_for_input(node_id).id
        if text:
            self._panes.run_all(node_id, *self._paste(pane, text), stdin=text.encode())

    def interrupt(self, node_id: str) -> None:
        """Press Ctrl-C."""
        self._panes.press(node_id, self._panes.look_for_input(node_id), ["C-c"])

    def kill(self, node_id: str) -> None:
        """End the session and all that runs in it; one that is gone already is no error."""
        # The pane by itself, too: it may have been moved into another session.
        for command, target in (
            ("kill-pane", self._address(node_id)),
            ("kill-session", exact(tmux_session(node_id))),
        ):
            try:
                if target is not None:
                    self._server.run(command, "-t", target)
            except TargetGoneError:
                continue
        self._panes.forget(node_id)

    def is_session_of(self, node_id: str, project: str) -> bool:
        """Whether the node's session or pane is there, and the project's; the pane itself may have ended."""
        try:
            return self._server.display(exact_pane(tmux_session(node_id)), f"#{{{PROJECT_OPTION}}}") == project
        except TargetGoneError:
            return self.project_of(node_id) == project

    def kill_all(self) -> None:
        """End the tmux server with every session in it."""
        self._server.end()

    def _login_shell(self) -> list[str]:
        """The words that start the login shell where tmux's own way will not do, else []."""
        # As tmux chooses it where its configuration does not.
        shell = os.environ.get("SHELL", "")
        if os.path.basename(shell) != "zsh" or not os.access(shell, os.X_OK):
            return []
        # What terminal_run types has a leading blank, and zsh keeps it in its history without this.
        return [shell, "-o", "hist_ignore_space", "-l"]

    def _address(self, node_id: str) -> str | None:
        try:
            return self._panes.look(node_id).id
        except EndedError:
            return None

    def _paste(self, pane: str, text: str, *flags: str) -> list[tuple[str, ...]]:
        """The commands that paste their input, which is `text`, into a pane; none where there is nothing to paste."""
        if not text:
            return []
        if self._unchanged is None:
            # Newer tmuxes (3.7) write control characters as ^A unless they are told not to.
            usage = self._server.run("list-commands", "paste-buffer")
            self._unchanged = ("-S",) if re.search(r"\[-\w*S", usage) else ()
        # A buffer is the only way on which every byte arrives: send-keys takes a leading
        # dash for an option and eats a `;` at the end.
        buffer = f"ctl-{os.urandom(6).hex()}"
        paste = ("paste-buffer", *self._unchanged, *flags, "-r", "-d", "-b", buffer, "-t", pane)
        return [("load-buffer", "-b", buffer, "-"), paste]

    def _capture(self, node_id: str, lines: int) -> str:
        pane = self._panes.look(node_id)
        # -J joins wrapped lines, and pads them: strip what it padded.
        text = self._panes.run(node_id, "capture-pane", "-p", "-J", "-S", f"-{lines}", "-t", pane.id)
        return "\n".join(line.rstrip(" ") for line in text.split("\n")).rstrip("\n")

    def _wait_until_ready(self, node_id: str) -> None:
        end = time.monotonic() + READY_WAIT_S
        target = exact_pane(tmux_session(node_id))
        while time.monotonic() < end:
            try:
                if self._server.run("capture-pane", "-p", "-t", target).strip():
                    return
            except TargetGoneError:
                raise CtlError(
                    "The terminal's shell ended at once.", "Check the login shell's start-up files."
                ) from None
            time.sleep(READY_POLL_S)


def _started_elsewhere(pid: str, folder: str, wanted: os.stat_result, environment: dict[str, str]) -> str | None:
    """The folder that tmux chose for a new program where it is not the wanted one; None where it is, or cannot be seen.

    tmux takes the home directory or / for a folder that it cannot enter, and says in PWD which one; where the folder
    is another one by now, PWD has its name. A program may have gone elsewhere by itself meanwhile.
    """
    entries: list[bytes] = []

    def has_begun() -> bool:  # before, it has the environment of tmux itself
        entries[:] = environment_of(int(pid))
        return any(os.fsencode(f"{name}={value}") in entries for name, value in environment.items())

    if not pid.isdigit() or not has_proc() or not until(has_begun, BEGIN_WAIT_S, READY_POLL_S):
        return None
    chosen = os.fsdecode(next((entry[len(b"PWD=") :] for entry in entries if entry.startswith(b"PWD=")), b""))
    if chosen not in (folder, "/", os.environ.get("HOME")):
        return None
    for place in (chosen, f"/proc/{pid}/cwd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(place), wanted):
                return None
    return "another folder of that name" if chosen == folder else chosen


def _never_through_a_shell(argv: list[str]) -> list[str]:
    # tmux runs several words as they are, but gives a single one to a shell.
    return argv if len(argv) > 1 else ["env", *argv]
