"""What runs in the foreground of a terminal, and whether that is a shell at its prompt.

A shell with a line editor (bash, zsh, fish) switches its terminal to unbuffered input
(ICANON off) for as long as it edits a line, and back before it runs a command. dash
has no editor: there a shell that sleeps in the foreground has to do.
"""

from __future__ import annotations

import contextlib
import os
import termios
from collections import namedtuple

from ...base.errors import CtlError
from ...base.processes import run

# pid of the process group's leader; name of its program; arguments after it;
# sleeping: whether it waits for something; image: another one for every program that the
# process becomes by exec, "" where the system does not tell.
Program = namedtuple("Program", "pid name arguments sleeping image", defaults=("",))
# kind: bash, zsh, fish or dash, where dash stands for every plain POSIX shell.
Shell = namedtuple("Shell", "pid kind image", defaults=("",))

_KINDS = {"bash": "bash", "zsh": "zsh", "fish": "fish", "dash": "dash", "sh": "dash", "ash": "dash", "busybox": "dash"}
_EDITORS = ("bash", "zsh", "fish")
# Options of these shells whose next word is their value and no script.
_WITH_VALUE = {"--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C", "--init-command", "-d", "--features"}
_PS_TIMEOUT_S = 5.0
# Where the kernel put a program's stack, by chance: after `exec bash` it is elsewhere, though
# process, program and arguments may all be the same.
_START_STACK = 25
_HAS_PROC = os.path.isdir("/proc/self/fd")


def foreground(pane_pid: int) -> Program | None:
    """The program in the foreground of the terminal whose first process is pane_pid.

    None when that process is gone, or the group that runs there has lost its leader
    (the first command of a pipe has ended before the others).
    """
    found = _from_proc(pane_pid) if _HAS_PROC else _from_ps(pane_pid)
    return found if found is None or found.name else None


def shell_of(program: Program) -> Shell | None:
    """The program as an interactive shell; None when it is another program or runs a script."""
    kind = _KINDS.get(program.name)
    if kind is None or runs_script(program):
        return None
    return Shell(program.pid, kind, program.image)


def at_prompt(shell: Shell, program: Program, tty: str) -> bool:
    """Whether a shell in the foreground waits for a command line."""
    buffered = is_buffered(tty)
    if buffered is None:
        return False
    return not buffered or (shell.kind not in _EDITORS and program.sleeping)


def waiting_shell(pane_pid: int, tty: str) -> Shell | None:
    """The shell that waits for a command line in a terminal; None when something else is going on."""
    program = foreground(pane_pid)
    shell = None if program is None else shell_of(program)
    return shell if shell is not None and at_prompt(shell, program, tty) else None


def is_buffered(tty: str) -> bool | None:
    """Whether the terminal hands out whole lines (ICANON); None when it is gone."""
    settings = _settings(tty)
    return None if settings is None else bool(settings[3] & termios.ICANON)


def line_eraser(tty: str) -> bytes:
    """The character that drops the line which the terminal itself edits; b"" when it edits none."""
    settings = _settings(tty)
    if settings is None or not settings[3] & termios.ICANON:
        return b""
    character = settings[6][termios.VKILL]
    return character if character != b"\0" else b""


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


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    if _HAS_PROC:
        try:
            return _stat_fields(pid)[0] not in ("Z", "X")
        except (OSError, IndexError):
            return False
    try:
        return _ps("stat=", pid)[:1] not in ("", "Z")
    except CtlError:
        return True


def _settings(tty: str) -> list | None:
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
        leader = int(_stat_fields(pane_pid)[5])
        fields = _stat_fields(leader)
        try:
            path = os.readlink(f"/proc/{leader}/exe").removesuffix(" (deleted)")
        except OSError:  # another user's
            path = _read(f"/proc/{leader}/comm").rstrip("\n")
        words = _read(f"/proc/{leader}/cmdline").split("\0")[:-1]
        return Program(leader, os.path.basename(path).lstrip("-"), words[1:], fields[0] == "S", fields[_START_STACK])
    return None


def _stat_fields(pid: int) -> list[str]:
    # pid (name) state ppid pgrp session tty tpgid ...; the name may hold blanks and brackets.
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def _from_ps(pane_pid: int) -> Program | None:
    with contextlib.suppress(CtlError, ValueError, IndexError):
        leader = int(_ps("tpgid=", pane_pid))
        state = _ps("stat=", leader)
        words = _ps("args=", leader).split()
        return Program(leader, os.path.basename(_ps("comm=", leader)).lstrip("-"), words[1:], state[:1] in "SI")
    return None


def _ps(column: str, pid: int) -> str:
    # -ww: where it writes to no terminal, macOS cuts lines after 79 characters.
    done = run(["ps", "-ww", "-o", column, "-p", str(pid)], timeout_s=_PS_TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace").strip()
