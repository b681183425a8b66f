"""Puts a message at the prompt of a terminal: one paste, then a separate Enter.

What somebody typed there and did not send would be sent along, so in a shell it is
dropped first: by the terminal driver's own erase-line character where the driver edits
the line, by Ctrl-C where an interactive shell does. Anything else is left alone; a
Ctrl-C could end it.
"""

from __future__ import annotations

import contextlib
import os
import termios
import time
from collections import namedtuple

from ..errors import CtlError
from ..processes import run
from . import messages

# Some agents' prompts take an Enter that comes right behind a paste as a part of it.
ENTER_PAUSE_S = 0.2
# A shell draws its next prompt within milliseconds of a Ctrl-C; some draw nothing at all.
REDRAW_WAIT_S = 0.5
REDRAW_POLL_S = 0.02
PS_TIMEOUT_S = 5.0
SHELLS = ("bash", "zsh", "sh", "dash", "ash", "ksh", "mksh", "yash", "tcsh", "csh", *messages.COMMENTING_SHELLS)
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


def interactive_shell(arguments: str) -> str:
    """The shell's name when a process with this command line is a shell without a script, else ""."""
    words = arguments.split() or [""]
    name = os.path.basename(words[0].lstrip("-"))
    return name if name in SHELLS and all(word.startswith("-") for word in words[1:]) else ""


def _look(terminals, node_id: str) -> Prompt:
    tty, _, pid = terminals.describe(node_id, "#{pane_tty} #{pane_pid}").partition(" ")
    shell = ""
    with contextlib.suppress(CtlError, ValueError):
        leader = _ps("tpgid", pid)
        command = _ps("args", leader)
        # The terminal's own shell counts whatever its options are.
        shell = interactive_shell(command.split(" ")[0] if leader == pid else command)
    return Prompt(shell, _erase_character(tty))


def _ps(column: str, pid: str) -> str:
    done = run(["ps", "-o", f"{column}=", "-p", str(int(pid))], timeout_s=PS_TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace").strip()


def _erase_character(tty: str) -> bytes:
    try:
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        settings = termios.tcgetattr(descriptor)
    except termios.error:
        return b""
    finally:
        os.close(descriptor)
    character = settings[6][termios.VKILL]
    edits = settings[3] & termios.ICANON
    return character if edits and isinstance(character, bytes) and character != b"\0" else b""


def _drop_line(terminals, node_id: str) -> None:
    before = terminals.describe(node_id, _CURSOR)
    terminals.interrupt(node_id)
    end = time.monotonic() + REDRAW_WAIT_S
    while time.monotonic() < end and terminals.describe(node_id, _CURSOR) == before:
        time.sleep(REDRAW_POLL_S)
