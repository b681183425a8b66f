"""Type a line into a shell that waits at its prompt, so that nobody sees it, and see it taken.

While the line is typed and accepted the pane shows its alternate screen, the one that
editors draw on: the host switches to it by writing to the terminal's device, and back as
soon as the script that the line sources waits at its latch.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time

from ....base.errors import CtlError
from ..foreground import is_drawing, waiting_shell
from ..nodes import Terminals
from ..panes import Panes
from ..prompts import CLEAR_LINE, ECHO_WAIT_S, HalfTypedError, Prompt, wait_until
from ..screen.grid import cells_of
from .latch import Latch

# zsh expands this on its edit line, in the shell itself: from now on a line with a leading blank is not kept in its
# history. Typed as a command it would be kept; where the keys are others (vi mode) nothing comes of it.
_NO_HISTORY, _EXPAND_WORD = "${options[histignorespace]::=on}", "\x18*"
_EXPANDED_WAIT_S = 0.5
_TO_MAIN = "\x1b[?1049l"
_TO_ALTERNATE = "\x1b[?1049h"
PROBE_CHARS = 10  # of the line, typed first
ECHO_CHARS = 8  # enough to know the line by its end, and few enough for an editor that scrolls sideways
START_WAIT_S = 5.0  # from Enter to the start, on a loaded machine
NOT_TAKEN_S = 1.5  # a shell that is back at a prompt for so long has not taken the line
UNDO_WAIT_S = 3.0
DEVICE_WAIT_S = 2.0  # until a terminal's device takes what is written to it
WATCH_S = 0.01
POLL_S = 0.01


class Handover:
    """One line for the shell at a prompt."""

    def __init__(self, node_id: str, prompt: Prompt, terminals: Terminals, panes: Panes) -> None:
        self._node_id = node_id
        self._prompt = prompt
        self._pane = prompt.pane
        self._shell = prompt.shell
        self._terminals = terminals
        self._panes = panes
        self._is_settled = False  # nothing of ours is left at the prompt or on the screen

    def type(self, line: str, latch: Latch, shown: str, *, is_new: bool) -> None:
        """Type the line, wait until it is taken up, show `shown` in its place and let it go on.

        `is_new`: nothing of ours was typed into this shell before. Raises CtlError; nothing has run then, and
        nothing will.
        """
        try:
            self._type(line, latch, is_new=is_new)
            # As the shell would have echoed it; the shell waits at the latch meanwhile.
            write_to(self._pane.tty, ("" if self._pane.alternate else _TO_MAIN) + shown)
            latch.go()
        except BaseException as fault:
            latch.cancel()
            if not self._is_settled:  # tmux could not be run in the middle of it, for example
                self._give_up(line)
            if isinstance(fault, OSError):
                raise CtlError(
                    f"The shell in terminal {self._node_id} was interrupted; nothing was run.", "Try again."
                ) from None
            raise

    def _type(self, line: str, latch: Latch, *, is_new: bool) -> None:
        pane, node_id = self._pane, self._node_id
        # A pane that shows the alternate screen already (a program left it behind) has no other.
        if not pane.alternate:
            write_to(pane.tty, _TO_ALTERNATE)
        try:
            self._prompt.begin(line[:PROBE_CHARS])
        except HalfTypedError:
            self._is_settled = True
            self._show_main()
            raise
        if is_new and self._shell.kind == "zsh":
            self._terminals.type(node_id, CLEAR_LINE + _NO_HISTORY + _EXPAND_WORD)
            wait_until(lambda: "options" not in self._screen(), _EXPANDED_WAIT_S)
            self._terminals.type(node_id, CLEAR_LINE + line)
        else:
            self._terminals.type(node_id, line[PROBE_CHARS:])
        # An editor that scrolls sideways shows the end only.
        if not wait_until(lambda: line[-ECHO_CHARS:] in self._screen(), ECHO_WAIT_S):
            raise CtlError(
                f"The shell in terminal {node_id} stopped to show what is typed; nothing was run.", "Try again."
            )
        self._panes.press(node_id, pane, ["Enter"])
        if self._wait_for_start(latch):
            return
        latch.cancel()
        reason = self._last_words()
        self._give_up(line)
        raise CtlError(
            f"The shell in terminal {node_id} did not take up the command, and nothing was run: "
            + (f"it said {reason!r}." if reason else "it waits for the rest of an earlier one, or it hangs.")
            + " Ctrl-C was pressed.",
            "Read the terminal, then try again, or use terminal_submit.",
        )

    def _wait_for_start(self, latch: Latch) -> bool:
        end_s, back_s = time.monotonic() + START_WAIT_S, None
        while not latch.is_taken():
            now_s = time.monotonic()
            back_s = (back_s or now_s) if waiting_shell(self._pane.pid, self._pane.tty) else None
            if now_s > end_s or (back_s is not None and now_s - back_s > NOT_TAKEN_S):
                return latch.is_taken()
            time.sleep(WATCH_S)
        return True

    def _last_words(self) -> str:
        """What the shell said to the line on the screen that nobody sees; "" for nothing."""
        try:
            rows = self._panes.screen(self._node_id, self._pane)
        except CtlError:
            return ""
        said = [row.strip() for row in rows if ": " in row and "__termsprawl" not in row and row.strip()]
        return said[-1][-200:] if said else ""

    def _give_up(self, line: str) -> None:
        """Leave the shell at a fresh prompt, if it is at one at all."""
        self._is_settled = True
        name = line.split(";", 1)[0].rpartition("/")[2] or line
        with contextlib.suppress(CtlError):
            # A prompt that is still being drawn gets the line only then: it would stay there.
            wait_until(lambda: not is_drawing(self._shell), UNDO_WAIT_S)
            if waiting_shell(self._pane.pid, self._pane.tty) is None:
                self._show_main()
                return
            if name in self._screen():
                self._terminals.type(self._node_id, CLEAR_LINE)
            self._show_main()
            self._panes.press(self._node_id, self._pane, ["C-c"])
            wait_until(lambda: not is_drawing(self._shell), UNDO_WAIT_S)
            time.sleep(POLL_S)
            if name in self._screen():
                self._panes.press(self._node_id, self._pane, ["C-c"])
            return
        self._show_main()

    def _screen(self) -> str:
        columns = self._pane.columns
        return "".join(cells_of(row, columns) for row in self._panes.screen(self._node_id, self._pane))

    def _show_main(self) -> None:
        if not self._pane.alternate:
            with contextlib.suppress(CtlError):
                write_to(self._pane.tty, _TO_MAIN)


def write_to(tty: str, text: str) -> None:
    """Print on a terminal from outside. Raises CtlError when it does not take it all in time."""
    data, end_s = memoryview(text.encode()), time.monotonic() + DEVICE_WAIT_S
    try:
        descriptor = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while data:
                if not _takes(descriptor, end_s - time.monotonic()):
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CtlError(
            f"The terminal's device takes no output ({error.strerror}); nothing was run.",
            "Somebody may have stopped it with Ctrl-S; Ctrl-Q lets it go on.",
        ) from None


def _takes(descriptor: int, timeout_s: float) -> bool:
    """Whether a descriptor takes output, at the latest after a while."""
    writable = select.poll()
    writable.register(descriptor, select.POLLOUT)
    return bool(writable.poll(1000 * max(0.0, timeout_s)))
