"""Terminal emulators: the table, and the choice of one for a command.

Pure: what is installed comes from an injected `find(name) -> absolute path or None`
(an executable's name, or `NAME.app` for a bundle of macOS), which displays there are
from the caller. Nothing is started here.

The forms were checked against the programs themselves where Debian packages them,
else against their documentation.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Callable

from ..base.errors import CtlError, UsageError
from ..base.processes import is_word

COMMAND = "{command}"  # in preferences: replaced by the whole command, one word each
LAUNCHER = "{launcher}"  # in an argv: the path of a file that runs the command, made at the spawn

Find = Callable[[str], "str | None"]

X11, WAYLAND = "x11", "wayland"
_DISPLAY_NAMES = {X11: "X11", WAYLAND: "Wayland"}

# How an emulator takes the command: as separate words after its own, as one word that it
# splits or gives to a shell by rules of its own, or inside a script for osascript.
ARGV, ONE_WORD, SCRIPT = "words", "one word", "script"


@dataclass(frozen=True)
class Emulator:
    """One row of the table.

    name: what people call it, and --terminal takes; executable: looked for on PATH; words:
    between the executable and the command; display: the only kind that it can use, None for
    any; script: makes the text for osascript where the style is SCRIPT.
    """

    name: str
    executable: str
    words: tuple[str, ...] = ()
    style: str = ARGV
    display: str | None = None
    script: Callable[[list[str]], str] | None = None


def _plain(name: str, *words: str, style: str = ARGV, display: str | None = None) -> Emulator:
    return Emulator(name, name, words, style, display)


# The order is the order of the search: the system's own default first.
EMULATORS = (
    _plain("x-terminal-emulator", "-e"),
    _plain("kitty", "--"),
    _plain("alacritty", "-e"),
    _plain("gnome-terminal", "--"),
    _plain("konsole", "-e"),
    _plain("xterm", "-e", display=X11),
    _plain("xdg-terminal-exec"),
    _plain("foot", display=WAYLAND),
    _plain("footclient", display=WAYLAND),
    # Without the flag a running instance takes the window over, with its own environment.
    _plain("wezterm", "start", "--always-new-process", "--"),
    # Not +new-window: version 1.3.0 appends options to the command there.
    _plain("ghostty", "-e"),
    _plain("ptyxis", "--"),
    _plain("kgx", "--"),
    # -e takes one string in both of these; a running instance would answer for a new one.
    _plain("xfce4-terminal", "--disable-server", "-x"),
    _plain("mate-terminal", "--disable-factory", "-x"),
    _plain("terminator", "-u", "-x"),
    _plain("lxterminal", "-e"),
    _plain("qterminal", "-e"),
    _plain("st", "-e", display=X11),
    _plain("urxvt", "-e", display=X11),
    _plain("rio", "-e"),
    _plain("cosmic-term", "--no-daemon", "--"),
    _plain("tilix", "-e", style=ONE_WORD),
    _plain("sakura", "-e", style=ONE_WORD),
    _plain("terminology", "-e", style=ONE_WORD),
)


# Scripts for osascript. The command is quoted twice: for the shell (or iTerm's own splitting
# into words, which knows the same quotes), then as a literal of AppleScript.


def terminal_script(command: list[str]) -> str:
    """For Terminal.app: its `do script` types the text into a login shell.

    With exec, so that the window's process ends when the command does.
    """
    text = literal("exec " + shlex.join(command))
    return f'tell application "Terminal"\n    do script {text}\n    activate\nend tell'


def iterm_script(command: list[str]) -> str:
    """For iTerm, which starts the command itself, without a shell."""
    text = literal(shlex.join(command))
    return f'tell application "iTerm"\n    create window with default profile command {text}\n    activate\nend tell'


def literal(text: str) -> str:
    """A string literal of AppleScript: only the backslash and the double quote are special in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# The applications of macOS, before those on PATH; an installed iTerm was wanted.
APPLICATIONS = (
    Emulator("iTerm", "iTerm.app", style=SCRIPT, script=iterm_script),
    Emulator("Terminal", "Terminal.app", style=SCRIPT, script=terminal_script),
)
_ONE_WORD_NAMES = frozenset(emulator.name for emulator in EMULATORS if emulator.style == ONE_WORD)


@dataclass(frozen=True)
class Found:
    """A row and where it is: executable is an absolute path or None, form how the command is passed."""

    emulator: Emulator
    executable: str | None
    form: str


@dataclass(frozen=True)
class Preference:
    """The user's own choice: args holds exactly one COMMAND; source is the file that names it."""

    executable: str
    args: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Choice:
    """One thing to start.

    argv may hold one LAUNCHER; needs_display is False for programs that the table does not
    know, which may bring their own.
    """

    name: str
    argv: list[str]
    reason: str
    needs_display: bool


NONE_FOUND = (
    "No supported Linux terminal emulator found. Install one or configure agent-tools/preferences.json. "
    "The canvas terminal is still available."
)


def known(system: str) -> tuple[Emulator, ...]:
    """The table for a system by its `uname` name, in the order of the search."""
    return APPLICATIONS + EMULATORS if system == "Darwin" else EMULATORS


def inventory(find: Find, *, system: str) -> list[Found]:
    """Every known emulator with its path, where it is installed."""
    return [Found(emulator, find(emulator.executable), form(emulator)) for emulator in known(system)]


def form(emulator: Emulator) -> str:
    """How the emulator is given a command, for people to read."""
    if emulator.style == SCRIPT:
        return f"osascript, which tells {emulator.name} to run COMMAND"
    return " ".join((emulator.name, *emulator.words, "LAUNCHER" if emulator.style == ONE_WORD else "COMMAND ARGS..."))


def parse_preference(value: dict[str, object], source: str) -> Preference | None:
    """The preferred emulator out of the preferences; None where it names none.

    Shape: `{"externalTerminal": {"executable": "...", "args": ["--", "{command}"]}}`; other
    keys are not ours. Raises CtlError naming `source`, the file.
    """
    if "externalTerminal" not in value:
        return None
    wish = value["externalTerminal"]
    if not isinstance(wish, dict):
        raise CtlError(f"externalTerminal is not an object in {source}.", _SHAPE)
    executable, args = wish.get("executable"), wish.get("args")
    if not isinstance(executable, str) or not is_word(executable) or not executable.strip():
        raise CtlError(f"External terminal executable must be a non-empty string in {source}.", _SHAPE)
    if not isinstance(args, list) or not all(map(is_word, args)):
        raise CtlError(f"External terminal args must be an array of strings in {source}.", _SHAPE)
    if args.count(COMMAND) != 1:
        raise CtlError(
            f"External terminal args must contain exactly one {COMMAND} placeholder in {source}.",
            f"It is a word of its own. {_SHAPE}",
        )
    return Preference(executable, tuple(args), source)


_SHAPE = 'Expected {"externalTerminal": {"executable": "kitty", "args": ["--", "{command}"]}}.'


def choose(
    command: list[str],
    *,
    find: Find,
    displays: frozenset[str] = frozenset((X11, WAYLAND)),
    terminal: str | None = None,
    preference: Preference | None = None,
    system: str = "Linux",
    resolve: Callable[[str], str] = os.path.realpath,
) -> list[Choice]:
    """What may be started to show `command` in a window, best first; never empty.

    `terminal` (a name of the table, or an absolute path that ends in one) wins over
    `preference`, and either of them stands alone. Otherwise all that are installed and can
    use one of `displays`. `resolve` follows symbolic links. Raises CtlError.
    """
    if terminal is not None:
        emulator, named = _named(terminal, find, system)
        if emulator.display not in (None, *displays):
            raise CtlError(f"{_unfit(emulator)}.", "`termsprawlctl external --list` shows the others.")
        argv = _argv(emulator, named, command, find, resolve)
        return [Choice(emulator.name, argv, "named with --terminal", True)]
    if preference is not None:
        return [_preferred(command, preference, find)]
    choices: list[Choice] = []
    unfit: list[Emulator] = []
    for emulator in known(system):
        path = find(emulator.executable)
        if path is None:
            continue
        if emulator.display not in (None, *displays):
            unfit.append(emulator)
            continue
        reason = f"the next known terminal after {choices[-1].name}" if choices else "the first known terminal here"
        target = resolve(path)
        if os.path.basename(target) != os.path.basename(path):
            reason += f"; it is {target}"
        choices.append(Choice(emulator.name, _argv(emulator, path, command, find, resolve), reason, True))
    if not choices:
        raise CtlError(NONE_FOUND, " ".join(f"{_unfit(emulator)}." for emulator in unfit))
    return choices


def _named(terminal: str, find: Find, system: str) -> tuple[Emulator, str]:
    name = os.path.basename(terminal)
    emulator = next((row for row in known(system) if row.name == name), None)
    if emulator is None or (terminal != name and not os.path.isabs(terminal)):
        names = ", ".join(row.name for row in known(system))
        raise UsageError(
            f"--terminal {terminal} is not a known terminal.",
            f"Known: {names}. Any other program can be named in agent-tools/preferences.json.",
        )
    path = find(emulator.executable if terminal == name else terminal)
    if path is None:
        raise CtlError(f"{terminal} is not installed.", "`termsprawlctl external --list` shows what is there.")
    return emulator, path


def _unfit(emulator: Emulator) -> str:
    kind = _DISPLAY_NAMES.get(emulator.display or "", "certain")
    return f"{emulator.name} is installed, but can only use a {kind} display"


def _preferred(command: list[str], preference: Preference, find: Find) -> Choice:
    executable = preference.executable
    if os.path.basename(executable) != executable and not os.path.isabs(executable):
        raise CtlError(
            f"the terminal {executable} in {preference.source} is a relative path.",
            "Give an absolute path, or the bare name of a program on PATH.",
        )
    path = find(executable)
    if path is None:
        place = "is missing or not executable" if os.path.isabs(executable) else "is not on PATH"
        raise CtlError(f"the terminal {executable} in {preference.source} {place}.", "Install it or name another.")
    at = preference.args.index(COMMAND)
    argv = [path, *preference.args[:at], *command, *preference.args[at + 1 :]]
    name = os.path.basename(executable)
    needs_display = any(row.name == name for row in EMULATORS)
    return Choice(name, argv, f"preferred in {preference.source}", needs_display)


def _argv(emulator: Emulator, path: str, command: list[str], find: Find, resolve: Callable[[str], str]) -> list[str]:
    if emulator.script is not None:
        return [find("osascript") or "/usr/bin/osascript", "-e", emulator.script(command)]
    words = [path, *emulator.words]
    if emulator.style == ONE_WORD or _takes_one_word(emulator, path, resolve):
        return [*words, LAUNCHER]
    return [*words, *command]


def _takes_one_word(emulator: Emulator, path: str, resolve: Callable[[str], str]) -> bool:
    # Debian's alternative may be one of these: sakura cuts the command at its blanks, terminology
    # drops all but its first word. A launcher is right for them and would be for all.
    return emulator.name == "x-terminal-emulator" and os.path.basename(resolve(path)) in _ONE_WORD_NAMES
