"""What runs in the foreground of a terminal, and whether that is a shell at its prompt.

A shell with a line editor (bash, zsh, fish, mksh, yash) switches its terminal to unbuffered
input (ICANON off) for as long as it edits a line, and back before it runs a command. dash
and the like have no editor: there a shell that sleeps in the foreground has to do.
"""

from __future__ import annotations

import contextlib
import os
import termios
from dataclasses import dataclass
from typing import Any

from ...base.processtable import column, has_proc, read_proc, stat_fields


@dataclass(frozen=True)
class Program:
    """The leader of the process group in the foreground.

    `sleeping`: whether it waits for something. `image`: another one for every program that
    the process becomes by exec, "" where the system does not tell.
    """

    pid: int
    name: str
    arguments: list[str]
    sleeping: bool
    image: str = ""


@dataclass(frozen=True)
class Shell:
    """An interactive shell; dash stands for every plain POSIX shell without an editor of its own."""

    pid: int
    kind: str
    image: str = ""


@dataclass(frozen=True)
class Mode:
    """How a terminal takes what is typed: `lines`, whole lines (ICANON); `echo`: it shows them itself."""

    lines: bool
    echo: bool


_KINDS = {
    **{name: name for name in ("bash", "zsh", "fish", "dash", "mksh", "yash", "posh")},
    **dict.fromkeys(("sh", "ash", "busybox"), "dash"),
    **dict.fromkeys(("ksh", "ksh93"), "ksh"),
    "lksh": "mksh",
}
NAMES = "bash, zsh, fish, dash, ksh, mksh, yash or posh"
_EDITORS = ("bash", "zsh", "fish", "mksh", "yash")
# Options of these shells whose next word is their value and no script.
_WITH_VALUE = {"--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C", "--init-command", "-d", "--features"}
# Where the kernel put a program's stack, by chance: after `exec bash` it is elsewhere, though
# process, program and arguments may all be the same.
_START_STACK = 25
# Fields of /proc/PID/stat behind the name.
_STATE, _GROUP, _FOREGROUND = 0, 2, 5


def foreground(pane_pid: int) -> Program | None:
    """The program in the foreground of the terminal whose first process is pane_pid.

    None when that process is gone, or the group that runs there has lost its leader
    (the first command of a pipe has ended before the others).
    """
    found = _from_proc(pane_pid) if has_proc() else _from_ps(pane_pid)
    return found if found is None or found.name else None


def shell_of(program: Program) -> Shell | None:
    """The program as an interactive shell; None when it is another program or runs a script."""
    kind = _KINDS.get(program.name)
    if kind is None or runs_script(program):
        return None
    return Shell(program.pid, kind, program.image)


def at_prompt(shell: Shell, program: Program, tty: str) -> bool:
    """Whether a shell in the foreground waits for a command line."""
    mode = mode_of(tty)
    if mode is None:
        return False
    return not mode.lines or (shell.kind not in _EDITORS and program.sleeping and mode.echo)


def waiting_shell(pane_pid: int, tty: str) -> Shell | None:
    """The shell that waits for a command line in a terminal; None when something else is going on."""
    program = foreground(pane_pid)
    if program is None:
        return None
    shell = shell_of(program)
    return shell if shell is not None and at_prompt(shell, program, tty) else None


def is_drawing(shell: Shell) -> bool:
    """Whether a shell at its prompt is still at work on it.

    fish edits, and takes what is typed, before its prompt is there: the programs that its
    prompt runs are children of its own process group.
    """
    if shell.kind != "fish" or not has_proc():
        return False
    with contextlib.suppress(OSError, IndexError):
        if stat_fields(shell.pid)[_STATE] != "S":
            return True
        children = read_proc(shell.pid, f"task/{shell.pid}/children").split()
        # One that has ended meanwhile has no fields.
        return any(stat_fields(int(child))[_GROUP : _GROUP + 1] == [str(shell.pid)] for child in children)
    return False


def mode_of(tty: str) -> Mode | None:
    """How the terminal takes what is typed; None when it is gone."""
    settings = _settings(tty)
    if settings is None:
        return None
    return Mode(lines=bool(settings[3] & termios.ICANON), echo=bool(settings[3] & termios.ECHO))


def line_eraser(tty: str) -> bytes:
    """The character that drops the line which the terminal itself edits; b"" when it edits none."""
    settings = _settings(tty)
    if settings is None or not settings[3] & termios.ICANON:
        return b""
    character = settings[6][termios.VKILL]
    return character if character != b"\0" else b""


def size_of(tty: str) -> tuple[int, int] | None:
    """The columns and rows of a terminal; None when it is gone."""
    with contextlib.suppress(OSError):
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            size = os.get_terminal_size(descriptor)
            return size.columns, size.lines
        finally:
            os.close(descriptor)
    return None


def runs_script(program: Program) -> bool:
    """Whether a program, should it be a shell, was started for a script or a command and not for a person."""
    words = list(program.arguments)
    if program.name == "busybox" and words[:1] in (["sh"], ["ash"]):  # the part that it was called as
        del words[0]
    while words:
        word = words.pop(0)
        if word in _WITH_VALUE:
            del words[:1]
            continue
        is_option = word.startswith(("-", "+"))
        if not is_option or word == "--command" or (word[:2] != "--" and "c" in word):
            return True
    return False


def _settings(tty: str) -> list[Any] | None:
    """What termios says of a terminal; None when it is gone."""
    try:
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return termios.tcgetattr(descriptor)
    except (OSError, termios.error):
        return None
    finally:
        os.close(descriptor)


def _from_proc(pane_pid: int) -> Program | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        leader = int(stat_fields(pane_pid)[_FOREGROUND])
        fields = stat_fields(leader)
        try:
            path = os.readlink(f"/proc/{leader}/exe").removesuffix(" (deleted)")
        except OSError:  # another user's
            path = read_proc(leader, "comm").decode("utf-8", "surrogateescape").rstrip("\n")
        words = read_proc(leader, "cmdline").decode("utf-8", "surrogateescape").split("\0")[:-1]
        name = os.path.basename(path).lstrip("-")
        return Program(leader, name, words[1:], fields[_STATE] == "S", fields[_START_STACK])
    return None


def _from_ps(pane_pid: int) -> Program | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        leader = int(column("tpgid", pane_pid))
        words = column("args", leader).split()
        name = os.path.basename(column("comm", leader)).lstrip("-")
        return Program(leader, name, words[1:], column("stat", leader)[:1] in ("S", "I"))
    return None
