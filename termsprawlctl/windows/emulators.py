"""Terminal emulators: the table, and the choice of one for a command.

Pure: what is installed comes from an injected `find(name) -> absolute path or None`
(an executable's name, or `NAME.app` for a bundle of macOS), which displays there are
from the caller. Nothing is started here.

The forms were checked against the programs themselves where Debian packages them,
else against their documentation.
"""

from __future__ import annotations

import os
from collections import namedtuple

from ..base.errors import CtlError, UsageError
from ..base.processes import is_word
from .applescript import iterm_script, terminal_script

COMMAND = "{command}"  # in preferences: replaced by the whole command, one word each
LAUNCHER = "{launcher}"  # in an argv: the path of a file that runs the command, made at the spawn

X11, WAYLAND = "x11", "wayland"
_DISPLAY_NAMES = {X11: "X11", WAYLAND: "Wayland"}

# How an emulator takes the command: as separate words after its own, as one word that it
# splits or gives to a shell by rules of its own, or inside a script for osascript.
ARGV, ONE_WORD, SCRIPT = "words", "one word", "script"

# name: what people call it, and --terminal takes; executable: looked for on PATH;
# words: between the executable and the command; display: the only kind that it can use.
Emulator = namedtuple("Emulator", "name executable words style display", defaults=((), ARGV, None))


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
# The applications of macOS, before those on PATH; an installed iTerm was wanted.
APPLICATIONS = (
    Emulator("iTerm", "iTerm.app", (), SCRIPT),
    Emulator("Terminal", "Terminal.app", (), SCRIPT),
)
_SCRIPTS = {"iTerm": iterm_script, "Terminal": terminal_script}
_ONE_WORD_NAMES = frozenset(emulator.name for emulator in EMULATORS if emulator.style == ONE_WORD)

# executable: absolute path or None; form: how the command is passed, for people.
Found = namedtuple("Found", "emulator executable form")
# args: words with exactly one COMMAND among them; source: the file that says so.
Preference = namedtuple("Preference", "executable args source")
# One thing to start. argv may hold one LAUNCHER; needs_display: not for programs that
# this table does not know, which may bring their own.
Choice = namedtuple("Choice", "name argv reason needs_display")

NONE_FOUND = (
    "No supported Linux terminal emulator found. Install one or configure agent-tools/preferences.json. "
    "The canvas terminal is still available."
)


def known(system: str) -> tuple[Emulator, ...]:
    """The table for a system by its `uname` name, in the order of the search."""
    return APPLICATIONS + EMULATORS if system == "Darwin" else EMULATORS


def inventory(find, *, system: str) -> list[Found]:
    """Every known emulator with its path, where it is installed."""
    return [Found(emulator, find(emulator.executable), form(emulator)) for emulator in known(system)]


def form(emulator: Emulator) -> str:
    """How the emulator is given a command, for people to read."""
    if emulator.style == SCRIPT:
        return f"osascript, which tells {emulator.name} to run COMMAND"
    return " ".join((emulator.name, *emulator.words, "LAUNCHER" if emulator.style == ONE_WORD else "COMMAND ARGS..."))


def parse_preference(value: object, source: str) -> Preference | None:
    """The preferred emulator out of the preferences' JSON value; None where it names none.

    Shape: `{"externalTerminal": {"executable": "...", "args": ["--", "{command}"]}}`; other
    keys are not ours. Raises CtlError naming `source`, the file.
    """
    if not isinstance(value, dict):
        raise CtlError(f"{source} does not hold a JSON object.")
    if "externalTerminal" not in value:
        return None
    wish = value["externalTerminal"]
    if not isinstance(wish, dict):
        raise CtlError(f"externalTerminal is not an object in {source}.", _SHAPE)
    executable, args = wish.get("executable"), wish.get("args")
    if not is_word(executable) or not executable.strip():
        raise CtlError(f"External terminal executable must be a non-empty string in {source}.", _SHAPE)
    if not isinstance(args, list) or not all(map(is_word, args)):
        raise CtlError(f"External terminal args must be an array of strings in {source}.", _SHAPE)
    if args.count(COMMAND) != 1:
        raise CtlError(
            f"External terminal args must contain exactly one {COMMAND} placeholder, as a word of its own, in {source}."
        )
    return Preference(executable, tuple(args), source)


_SHAPE = 'Expected {"externalTerminal": {"executable": "kitty", "args": ["--", "{command}"]}}.'


def choose(
    command: list[str],
    *,
    find,
    displays=frozenset((X11, WAYLAND)),
    terminal: str | None = None,
    preference: Preference | None = None,
    system: str = "Linux",
    resolve=os.path.realpath,
) -> list[Choice]:
    """What may be started to show `command` in a window, best first; never empty.

    `terminal` (a name of the table, or an absolute path that ends in one) wins over
    `preference`, and either of them stands alone. Otherwise all that are installed and can
    use one of `displays`. `resolve` follows symbolic links. Raises CtlError.
    """
    if terminal is not None:
        emulator, path = _named(terminal, find, system)
        if emulator.display not in (None, *displays):
            raise CtlError(f"{_unfit(emulator)}.")
        argv = _argv(emulator, path, command, find, resolve)
        return [Choice(emulator.name, argv, "named with --terminal", True)]
    if preference is not None:
        return [_preferred(command, preference, find)]
    choices: list[Choice] = []
    unfit = []
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


def _named(terminal: str, find, system: str) -> tuple[Emulator, str]:
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
    return f"{emulator.name} is installed, but can only use a {_DISPLAY_NAMES[emulator.display]} display"


def _preferred(command, preference: Preference, find) -> Choice:
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


def _argv(emulator: Emulator, path: str, command: list[str], find, resolve) -> list[str]:
    if emulator.style == SCRIPT:
        return [find("osascript") or "/usr/bin/osascript", "-e", _SCRIPTS[emulator.name](command)]
    words = [path, *emulator.words]
    if emulator.style == ONE_WORD or _takes_one_word(emulator, path, resolve):
        return [*words, LAUNCHER]
    return [*words, *command]


def _takes_one_word(emulator: Emulator, path: str, resolve) -> bool:
    # Debian's alternative may be one of these: sakura cuts the command at its blanks, terminology
    # drops all but its first word. A launcher is right for them and would be for all.
    return emulator.name == "x-terminal-emulator" and os.path.basename(resolve(path)) in _ONE_WORD_NAMES
