"""Type a line at a shell's prompt only where nothing is typed there yet.

Nothing tells what stands on a shell's edit line. So it is cleared, the beginning of the new
line is typed, and where that begins shows whether something was there: then it is put back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from ...base.errors import CtlError
from .foreground import Shell, is_drawing
from .nodes import Terminals
from .panes import Client, Panes
from .screen.grid import cells_of
from .streams import Stream

# To the end of the line and erase it all: in emacs and vi modes, and without any editor.
CLEAR_LINE = "\x05\x15"
_ERASE_LINE, _ERASE_ONE, _YANK = "\x15", "\x7f", "\x19"
# Shells that give back with Ctrl-Y what Ctrl-U took.
_YANKS = ("bash", "zsh", "fish", "mksh", "yash")
ECHO_WAIT_S = 3.0  # from typing to seeing it
DRAWN_WAIT_S = 5.0
QUIET_S = 0.03  # without output a prompt is taken as drawn
POLL_S = 0.01
_PROBE_CHARS = 40
# Of a line: what every shell shows as it is typed. Not a blank, at which abbreviations become
# what they stand for, nor quotes and brackets, which plugins close.
_PROBE = re.compile(r"[A-Za-z0-9_./:,@%+=-]+")
_ANY_PROBE = "x"  # for a line that begins with something else
# What terminals answer to questions (cursor position, attributes, colours), as shells show it.
_REPLY = re.compile(r"(\^\[|\x1b)?\[?[?>]?[0-9;]+[Rcntu]|(\^\[|\x1b)?\]?1?[0-9];rgb:[0-9a-f/]*.{0,3}")
# Of some, readline leaves the last letter alone: that is one where such a question was asked lately.
_LAST_LETTER = re.compile(r"[Rc]+")
_QUESTION = re.compile(rb"\x1b\[[?>=]?[0-9;]*[nc]")
_ASKED_BYTES = 64 << 10
_MAX_REPLIES = 20
# ksh93 reads 80 bytes at once, and puts what follows a character that this cuts in two before the line.
_KSH_CHARS, _KSH_BYTES, _KSH_MAX_CHARS = 16, 64, 1600


class HalfTypedError(CtlError):
    """Somebody has begun to type at a prompt; what was there is there again."""

    def __init__(self, node_id: str) -> None:
        super().__init__(
            f"Somebody has begun to type a command in terminal {node_id}; nothing was run.",
            "Ask them, use another terminal, or drop what is there with terminal_interrupt.",
        )


class PromptMovedError(CtlError):
    """The prompt was drawn anew while a line was typed."""


class Prompt:
    """The prompt of a shell, as it is before anything is typed; `pane` is how the pane looked."""

    def __init__(self, node_id: str, shell: Shell, terminals: Terminals, panes: Panes, stream: Stream) -> None:
        self._node_id = node_id
        self.shell = shell
        self._terminals = terminals
        self._panes = panes
        wait_until(lambda: not is_drawing(shell) and stream.quiet_s() > QUIET_S, DRAWN_WAIT_S)
        self.pane = panes.look_for_input(node_id)
        self._stream = stream
        self._row = cells_of(panes.screen(node_id, self.pane)[self.pane.line], self.pane.columns)

    def submit(self, command: str) -> None:
        """Type a command and press Enter. Raises CtlError; nothing is changed then."""
        in_pieces = self.shell.kind == "ksh" and not command.isascii() and len(command.encode()) > _KSH_BYTES
        if in_pieces and (len(command) > _KSH_MAX_CHARS or "\n" in command):
            raise CtlError(
                "ksh mixes up long text that is not ASCII as it is typed; nothing was typed.",
                "Use terminal_run, from which it reads the command in a file.",
            )
        match = _PROBE.match(command)
        probe = match[0][:_PROBE_CHARS] if match else _ANY_PROBE
        try:
            self.begin(probe)
        except PromptMovedError:
            pass  # the line is what was asked for, wherever it begins
        except EchoError:
            self._terminals.type(self._node_id, CLEAR_LINE)
            raise
        # Into what is quoted already fish pastes text with backslashes before its quotes.
        is_begun = match is not None and self.shell.kind != "fish"
        if not is_begun:
            self._terminals.type(self._node_id, self._erasing(probe))
        rest = command[len(probe) :] if is_begun else command
        while in_pieces and len(rest.encode()) > _KSH_BYTES:
            before = self._stream.end
            self._terminals.type(self._node_id, rest[:_KSH_CHARS])
            wait_until(lambda: self._stream.end > before and self._stream.quiet_s() > QUIET_S, ECHO_WAIT_S)  # noqa: B023
            rest = rest[_KSH_CHARS:]
        self._terminals.submit(self._node_id, rest)

    def begin(self, probe: str) -> None:
        """Type the beginning of a line, of characters that every shell shows, where none is yet.

        Raises HalfTypedError where there is one, EchoError where nothing shows, and
        PromptMovedError where it stands elsewhere than the cursor stood.
        """
        self._terminals.type(self._node_id, CLEAR_LINE + probe)
        column = self._wait_for_echo(probe)
        if column > self.pane.column:
            raise PromptMovedError(
                f"The prompt in terminal {self._node_id} keeps changing; nothing was run.", "Try again."
            )
        if column < self.pane.column and self._was_half_typed(probe, column):
            wait_until(lambda: self._panes.look(self._node_id).column == self.pane.column, ECHO_WAIT_S)
            raise HalfTypedError(self._node_id)

    def _was_half_typed(self, probe: str, column: int) -> bool:
        """Whether there was a line where the probe stands now, a column nearer to the left; it is put back then."""
        node_id, kind, at = self._node_id, self.shell.kind, self.pane.column
        asked = _QUESTION.search(self._stream.read(max(0, self._stream.end - _ASKED_BYTES)).data) is not None
        if is_leaked_reply(self._row[column:at], node_id, self._panes.clients(), asked=asked):
            return False
        if kind not in _YANKS:
            self._terminals.type(node_id, _ERASE_LINE + self._row[column:at].replace("\0", ""))
            return True
        pane = self._panes.look(node_id)
        prompt = cells_of(self._panes.screen(node_id, pane)[pane.line], pane.columns)[:column]
        # mksh draws its prompt again in the first column, over output that did not end with a newline.
        if kind == "mksh" and self._row[:at].endswith(prompt) and not self._row.startswith(prompt):
            return False
        # A prompt may be shorter as soon as something is typed (fish's is): look at it without.
        # Erased one by one it does not become what is yanked.
        self._terminals.type(node_id, self._erasing(probe))
        wait_until(lambda: self._panes.look(node_id).column != pane.column, ECHO_WAIT_S)
        wait_until(lambda: self._stream.quiet_s() > QUIET_S and not is_drawing(self.shell), ECHO_WAIT_S)
        if self._panes.look(node_id).column == at:
            self._terminals.type(node_id, probe)
            self._wait_for_echo(probe)
            return False
        self._terminals.type(node_id, _YANK)
        return True

    def _erasing(self, probe: str) -> str:
        """The keys that take back what was typed into an empty line."""
        return _ERASE_ONE * len(probe) if self.shell.kind in _YANKS else CLEAR_LINE

    def _wait_for_echo(self, probe: str) -> int:
        """The column where what was typed begins."""
        column = -1

        def is_shown() -> bool:
            nonlocal column
            pane = self._panes.look(self._node_id)
            cells = "".join(cells_of(row, pane.columns) for row in self._panes.screen(self._node_id, pane))
            # Behind the last column the cursor stands on it.
            for at in (pane.line * pane.columns + pane.column, pane.line * pane.columns + pane.column + 1):
                if cells[:at].endswith(probe):
                    column = (at - len(probe)) % pane.columns
                    return True
            return False

        if not wait_until(is_shown, ECHO_WAIT_S):
            raise EchoError(
                f"The shell in terminal {self._node_id} does not show what is typed; nothing was run.",
                "Its echo may be off (stty echo), or its errors sent elsewhere (exec 2>/dev/tty). Read the terminal; "
                "terminal_submit with force: true types all the same.",
            )
        return column


class EchoError(CtlError):
    """A shell does not show what is typed."""


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll until a condition is true; False where it is not in time."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(POLL_S)
    return True


def is_leaked_reply(text: str, node_id: str, clients: dict[str, Client], *, asked: bool) -> bool:
    """Whether a text at a prompt is nothing but a terminal's replies, and no person can have typed it.

    `asked`: a program has asked the terminal something lately.
    """
    text = text.replace("\0", "").strip()
    if asked and _LAST_LETTER.fullmatch(text):
        return all(client.node_id != node_id for client in clients.values())
    for _ in range(_MAX_REPLIES):
        match = _REPLY.match(text)
        if match is None:
            return False
        text = text[match.end() :]
        if not text:
            return all(client.node_id != node_id for client in clients.values())
    return False
