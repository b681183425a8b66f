"""Type a line into a shell that waits at its prompt, so that nobody sees it, and see it taken.

While the line is typed and accepted the pane shows its alternate screen, the one that
editors draw on: the host switches to it by writing to the terminal's device, and what
the line runs has to switch back.
"""

from __future__ import annotations

import contextlib
import os
import time

from ....base.errors import CtlError
from ..foreground import Shell, waiting_shell
from ..nodes import Terminals
from ..panes import Pane, Panes
from ..screen.grid import cells_of

TO_MAIN = "\x1b[?1049l"
_TO_ALTERNATE = "\x1b[?1049h"
# To the end of the line and erase it all: in emacs and vi modes, and without any editor.
_CLEAR_LINE = "\x05\x15"
_ERASE_LINE, _ERASE_ONE, _YANK = "\x15", "\x7f", "\x19"
ECHO_WAIT_S = 3.0  # from typing the line to seeing it
ECHO_CHARS = 40  # enough to know the line by its end
START_WAIT_S = 5.0  # from Enter to the start, on a loaded machine
NOT_TAKEN_S = 1.5  # a shell that is back at a prompt for so long has not taken the line
WATCH_S = 0.05
POLL_S = 0.01


class PromptMoved(CtlError):
    """The prompt was drawn anew while the line was typed; the line was given up."""


class Handover:
    """One line for one shell. `pane` is how the pane looked at the prompt."""

    def __init__(self, node_id: str, pane: Pane, shell: Shell, terminals: Terminals, panes: Panes) -> None:
        self._node_id = node_id
        self._pane = pane
        self._shell = shell
        self._terminals = terminals
        self._panes = panes
        # What a shell that cannot yank has to be given back.
        self._row = panes.screen(node_id, pane)[pane.line] if shell.kind == "dash" else ""
        self._is_settled = False  # nothing of ours is left at the prompt or on the screen

    def type(self, line: str, started) -> None:
        """Type the line and wait for the event `started`. Raises CtlError; nothing has run then."""
        try:
            self._type(line, started)
        except BaseException:
            if not self._is_settled:  # tmux could not be run in the middle of it, for example
                self._give_up()
            raise

    def _type(self, line: str, started) -> None:
        pane, node_id = self._pane, self._node_id
        # A pane that shows the alternate screen already (a program left it behind) has no other.
        if not pane.alternate:
            _write_to(pane.tty, _TO_ALTERNATE)
        self._terminals.type(node_id, _CLEAR_LINE + line)
        column = self._wait_for_echo(line)
        if column > pane.column:
            self._give_up()
            raise PromptMoved(f"The prompt in terminal {node_id} keeps changing; nothing was run.", "Try again.")
        if column < pane.column:
            self._take_back(line, column)
            raise CtlError(
                f"Somebody has begun to type a command in terminal {node_id}; nothing was run.",
                "Ask them, or use another terminal.",
            )
        self._panes.press(node_id, pane, ["Enter"])
        if not self._wait_for_start(started):
            self._give_up()
            raise CtlError(
                f"The shell in terminal {node_id} did not start the command: it waits for the rest of an earlier one, "
                "or it hangs. Ctrl-C was pressed.",
                "Read the terminal, then try again.",
            )

    def _wait_for_echo(self, line: str) -> int:
        """The column where the line begins. Raises CtlError when it never comes."""
        columns, rows = self._pane.columns, self._pane.rows
        # A screen that is too small for the line shows its end.
        shown = line if len(line) < columns * (rows - 1) else line[-ECHO_CHARS:]
        end_s = time.monotonic() + ECHO_WAIT_S
        while time.monotonic() < end_s:
            screen = "".join(cells_of(row, columns) for row in self._panes.screen(self._node_id, self._pane))
            at = screen.rfind(shown)
            if at >= 0:
                return (at + len(shown) - len(line)) % columns
            time.sleep(POLL_S)
        self._give_up()
        raise CtlError(
            f"The shell in terminal {self._node_id} does not show what is typed; nothing was run.",
            "Read the terminal. If its line editor is in another mode, use terminal_submit.",
        )

    def _wait_for_start(self, started) -> bool:
        end_s, back_s = time.monotonic() + START_WAIT_S, None
        while not started.wait(WATCH_S):
            now_s = time.monotonic()
            back_s = (back_s or now_s) if waiting_shell(self._pane.pid, self._pane.tty) else None
            if now_s > end_s or (back_s is not None and now_s - back_s > NOT_TAKEN_S):
                return started.is_set()
        return True

    def _take_back(self, line: str, column: int) -> None:
        """Put the half-typed line back that was cleared."""
        if self._shell.kind == "dash":
            cleared = cells_of(self._row, self._pane.columns)[column : self._pane.column]
            undo = _ERASE_LINE + cleared.replace("\0", "")
        else:
            # Erased one by one the line does not become what is yanked.
            undo = _ERASE_ONE * len(line) + _YANK
        self._terminals.type(self._node_id, undo)
        self._is_settled = True
        self._show_main()

    def _give_up(self) -> None:
        """Leave the shell at a fresh prompt, if it is at one at all."""
        self._is_settled = True
        self._show_main()
        with contextlib.suppress(CtlError):
            if waiting_shell(self._pane.pid, self._pane.tty) is not None:
                self._panes.press(self._node_id, self._pane, ["C-c"])

    def _show_main(self) -> None:
        if not self._pane.alternate:
            with contextlib.suppress(CtlError):
                _write_to(self._pane.tty, TO_MAIN)


def _write_to(tty: str, text: str) -> None:
    """Print on a terminal from outside. Raises CtlError when it takes nothing."""
    try:
        descriptor = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CtlError(
            f"The terminal's device takes no output ({error.strerror}); nothing was typed.",
            "Somebody may have stopped it with Ctrl-S; Ctrl-Q lets it go on.",
        ) from None
