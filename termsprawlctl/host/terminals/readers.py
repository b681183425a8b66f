"""Who reads what is typed into a terminal now, and whether a line may go there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...base.errors import CtlError
from .foreground import Program, Shell, at_prompt, foreground, mode_of, runs_script, shell_of
from .panes import Pane
from .streams import Stream

# A shell at its prompt; a program that takes lines, or none at all; one that asks for a
# password; one that has the whole screen, or takes single keys.
PROMPT, LINES, PASSWORD, KEYS = "prompt", "lines", "password", "keys"

# These switch the terminal to single characters and read lines all the same.
_LINE_READERS = {
    *("ssh", "mosh-client", "telnet", "docker", "podman", "kubectl", "nerdctl", "lxc", "machinectl", "nsenter"),
    *("su", "sudo", "doas", "runuser", "script", "rlwrap", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "tclsh"),
    *("ipython", "psql", "sqlite", "mysql", "mariadb", "redis-cli", "mongosh", "mongo", "gdb", "lldb", "pdb"),
    *("ghci", "irb", "pry", "iex", "erl", "jshell", "scala", "clj", "sbcl", "ocaml", "utop", "swipl"),
    *("R", "julia", "octave", "gnuplot", "maxima", "bc", "dc", "sftp", "ftp", "lftp", "nc", "socat"),
}
# The same where they were started for nothing but that.
_INTERPRETERS = {"python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "luajit"}
_INTERACTIVE = re.compile(r"-[A-Za-z]*i[A-Za-z]*|--interactive")  # whatever they run before
_VERSION = re.compile(r"[-0-9.]+$")
# A program that asks for pastes to be marked edits lines.
_MARKS_ON, _MARKS_OFF = b"\x1b[?2004h", b"\x1b[?2004l"


@dataclass(frozen=True)
class Reader:
    """`kind` is one of the above; `name` is the program's, `shell` the shell where one is at its prompt."""

    kind: str
    name: str
    shell: Shell | None = None


def reader_of(pane: Pane, stream: Stream) -> Reader:
    """Who reads in a pane now."""
    program, mode = foreground(pane.pid), mode_of(pane.tty)
    if program is None or mode is None:
        return Reader(LINES, "an unknown program")
    shell = shell_of(program)
    if shell is not None and at_prompt(shell, program, pane.tty):
        return Reader(PROMPT, program.name, shell)
    if mode.lines:
        return Reader(LINES if mode.echo else PASSWORD, program.name)
    if pane.alternate:
        return Reader(KEYS, program.name)
    return Reader(LINES if _reads_lines(program) or _marks_pastes(stream) else KEYS, program.name)


def refusal(node_id: str, reader: Reader) -> CtlError | None:
    """Why no line may be typed to a reader; None where it may."""
    if reader.kind == PASSWORD:
        return CtlError(
            f"{reader.name} in terminal {node_id} does not show what is typed, as if it asked for a password; nothing "
            "was typed.",
            "Let the user type a secret there; terminal_input answers another question. force: true types anyway.",
        )
    if reader.kind == KEYS:
        return CtlError(
            f"{reader.name} has the screen of terminal {node_id} and takes single keys; nothing was typed.",
            "Use terminal_send with keys, or end the program first; force: true types all the same.",
        )
    return None


def _reads_lines(program: Program) -> bool:
    name = _VERSION.sub("", program.name) or program.name
    if name in _INTERPRETERS:
        return not runs_script(program) or any(map(_INTERACTIVE.fullmatch, program.arguments[:1]))
    return name in _LINE_READERS


def _marks_pastes(stream: Stream) -> bool:
    data = stream.read(0).data
    return data.rfind(_MARKS_ON) > data.rfind(_MARKS_OFF)
