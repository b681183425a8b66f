"""Puts a message at the prompt of a terminal: one paste, then a separate Enter.

Not while a person types there, nor where something else than a prompt would take it: a
password, a program with the whole screen, a question that an agent asks its user. All of
that is waited out for a moment.

What somebody typed at a shell's prompt long ago and did not send would be sent along, so it
is dropped first: by the terminal driver's own erase-line character where the driver edits
the line, by Ctrl-C where an interactive shell does. Anything else is left alone; a
Ctrl-C could end it.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from ...base.errors import CtlError
from ..messaging import messages
from ..messaging.tasks import Task
from . import foreground, readers
from .nodes import Terminals
from .panes import Panes, TypedByPerson
from .streams import Streams

# Some agents' prompts take an Enter that comes right behind a paste as a part of it.
ENTER_PAUSE_S = 0.2
# A shell draws its next prompt within milliseconds of a Ctrl-C; some draw nothing at all.
REDRAW_WAIT_S = 0.5
REDRAW_POLL_S = 0.02
# How long what is in the way may take to go by itself.
CLEAR_WAIT_S = 4.0
CLEAR_POLL_S = 0.1
_CURSOR = "#{cursor_x},#{cursor_y},#{history_size}"
# A list of numbered choices with one marked, or a question that takes one key.
_DIALOG = re.compile(r"^[\s│|]*[\u276f\u203a>▶●]\s*\d+[.)]\s+\S|[\[(][yY]/[nN][\])]\s*:?\s*$", re.MULTILINE)
_DIALOG_ROWS = 20


@dataclass(frozen=True)
class Target:
    """What a message goes to.

    `shell`: the name of the interactive shell that waits there, or "". `erase`: the
    character that erases the line while the terminal driver edits it, b"" while a program does.
    """

    shell: str = ""
    erase: bytes = b""


@dataclass(frozen=True)
class Delivery:
    """The terminals that messages are put into."""

    terminals: Terminals
    panes: Panes
    streams: Streams

    def deliver(self, node_id: str, task: Task, *, is_agent: bool) -> None:
        """Paste a task and press Enter. Raises CtlError when the terminal has ended, or something is in the way."""
        self._wait_until_clear(node_id, is_agent=is_agent)
        target = Target() if is_agent else self._look(node_id)
        if target.erase:
            self.terminals.type(node_id, target.erase.decode("latin-1"))
        elif target.shell:
            self._drop_line(node_id)
        how = messages.form(is_agent, target.shell)
        self.terminals.submit(node_id, messages.compose(task, how), pause_s=ENTER_PAUSE_S)

    def _wait_until_clear(self, node_id: str, *, is_agent: bool) -> None:
        end_s = time.monotonic() + CLEAR_WAIT_S
        while True:
            obstacle = self._obstacle(node_id, is_agent=is_agent)
            if obstacle is None:
                return
            if time.monotonic() > end_s:
                raise obstacle
            time.sleep(CLEAR_POLL_S)

    def _obstacle(self, node_id: str, *, is_agent: bool) -> CtlError | None:
        """What keeps a message from being typed now."""
        if self.panes.person_types(node_id):
            return TypedByPerson(
                f"A person is typing in terminal {node_id}; nothing was typed.", "Send it again in a few seconds."
            )
        pane = self.panes.look(node_id)
        if not is_agent:
            reader = readers.reader_of(pane, self.streams.get(node_id))
            refused = readers.refusal(node_id, reader)
            if refused is not None or reader.shell is not None:
                return refused
        rows = [row for row in self.panes.screen(node_id, pane) if row.strip()]
        if _DIALOG.search("\n".join(rows[-_DIALOG_ROWS:])):
            return CtlError(
                f"The agent in terminal {node_id} asks its user something; nothing was typed.",
                "Send it again once that is answered; terminal_read shows the question.",
            )
        return None

    def _look(self, node_id: str) -> Target:
        pane = self.panes.look(node_id)
        program = foreground.foreground(pane.pid)
        if program is None:
            return Target(erase=foreground.line_eraser(pane.tty))
        # The terminal's own shell counts whatever it was started with.
        is_shell = program.pid == pane.pid or not foreground.runs_script(program)
        name = program.name if is_shell and program.name in messages.SHELLS else ""
        return Target(name, foreground.line_eraser(pane.tty))

    def _drop_line(self, node_id: str) -> None:
        before = self.terminals.describe(node_id, _CURSOR)
        self.terminals.interrupt(node_id)
        end = time.monotonic() + REDRAW_WAIT_S
        while time.monotonic() < end and self.terminals.describe(node_id, _CURSOR) == before:
            time.sleep(REDRAW_POLL_S)
