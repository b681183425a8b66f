"""Puts a message at the prompt of a terminal: one paste, then a separate Enter.

What somebody typed there and did not send would be sent along, so in a shell it is
dropped first: by the terminal driver's own erase-line character where the driver edits
the line, by Ctrl-C where an interactive shell does. Anything else is left alone; a
Ctrl-C could end it.
"""

from __future__ import annotations

import time
from collections import namedtuple

from ..messaging import messages
from . import foreground

# Some agents' prompts take an Enter that comes right behind a paste as a part of it.
ENTER_PAUSE_S = 0.2
# A shell draws its next prompt within milliseconds of a Ctrl-C; some draw nothing at all.
REDRAW_WAIT_S = 0.5
REDRAW_POLL_S = 0.02
_CURSOR = "#{cursor_x},#{cursor_y},#{history_size}"

# shell: the name of the interactive shell that waits there, or ""; erase: the character
# that erases the line while the terminal driver edits it, b"" while a program does.
Prompt = namedtuple("Prompt", "shell erase")


def deliver(terminals, node_id: str, task, *, is_agent: bool) -> None:
    """Paste a task and press Enter. Raises CtlError when the terminal has ended."""
    prompt = Prompt("", b"") if is_agent else _look(terminals, node_id)
    if prompt.erase:
        terminals.type(node_id, prompt.erase.decode("latin-1"))
    elif prompt.shell:
        _drop_line(terminals, node_id)
    how = messages.form(is_agent, prompt.shell)
    terminals.submit(node_id, messages.compose(task.task_id, task.sender, task.text, how), pause_s=ENTER_PAUSE_S)


def _look(terminals, node_id: str) -> Prompt:
    tty, _, pid = terminals.describe(node_id, "#{pane_tty} #{pane_pid}").partition(" ")
    program = foreground.foreground(int(pid)) if pid.isdigit() else None
    # The terminal's own shell counts whatever it was started with.
    is_shell = program is not None and (program.pid == int(pid) or not foreground.runs_script(program))
    name = program.name if is_shell and program.name in messages.SHELLS else ""
    return Prompt(name, foreground.line_eraser(tty))


def _drop_line(terminals, node_id: str) -> None:
    before = terminals.describe(node_id, _CURSOR)
    terminals.interrupt(node_id)
    end = time.monotonic() + REDRAW_WAIT_S
    while time.monotonic() < end and terminals.describe(node_id, _CURSOR) == before:
        time.sleep(REDRAW_POLL_S)
