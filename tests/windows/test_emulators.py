"""The table of terminal emulators and the choice of one: pure, with an invented PATH."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.base.errors import CtlError, UsageError
from termsprawlctl.windows import emulators
from termsprawlctl.windows.emulators import WAYLAND, X11, choose, parse_preference

# A path as bad as they come: each word has to arrive as it is.
COMMAND = ["/usr/bin/tmux", "-S", "/d a'b\"c;d$e\\f é/s", "-f", "/d a/tmux.conf", "attach-session", "-t", "ts-n-1"]
# What each emulator has to be given, in the order in which they are looked for.
FORMS = {
    "x-terminal-emulator": ["-e", *COMMAND],
    "kitty": ["--", *COMMAND],
    "alacritty": ["-e", *COMMAND],
    "gnome-terminal": ["--", *COMMAND],
    "konsole": ["-e", *COMMAND],
    "xterm": ["-e", *COMMAND],
    "xdg-terminal-exec": [*COMMAND],
    "foot": [*COMMAND],
    "footclient": [*COMMAND],
    "wezterm": ["start", "--always-new-process", "--", *COMMAND],
    "ghostty": ["-e", *COMMAND],
    "ptyxis": ["--", *COMMAND],
    "kgx": ["--", *COMMAND],
    "xfce4-terminal": ["--disable-server", "-x", *COMMAND],
    "mate-terminal": ["--disable-factory", "-x", *COMMAND],
    "terminator": ["-u", "-x", *COMMAND],
    "lxterminal": ["-e", *COMMAND],
    "qterminal": ["-e", *COMMAND],
    "st": ["-e", *COMMAND],
    "urxvt": ["-e", *COMMAND],
    "rio": ["-e", *COMMAND],
    "cosmic-term": ["--no-daemon", "--", *COMMAND],
    "tilix": ["-e", "{launcher}"],
    "sakura": ["-e", "{launcher}"],
    "terminology": ["-e", "{launcher}"],
}


def installed(*names: str):
    """A finder for a machine that has these and nothing else."""
    return lambda name: (
        f"/bin/{name}" if name in names else (name if name in {f"/bin/{one}" for one in names} else None)
    )


def chosen(*names: str, **options) -> list[emulators.Choice]:
    return choose(COMMAND, find=installed(*names), resolve=lambda path: path, **options)


def preference(executable="myterm", args=("--run", "{command}")) -> dict:
    return {"externalTerminal": {"executable": executable, "args": list(args)}}


@pytest.mark.parametrize("name", FORMS)
def test_each_emulator_gets_the_command_in_its_own_form(name):
    (choice,) = chosen(name)
    assert choice.argv == [f"/bin/{name}", *FORMS[name]]
    (explicit,) = chosen(*FORMS, terminal=name)
    assert explicit.argv == choice.argv


def test_the_search_keeps_the_order_of_the_table():
    assert [choice.name for choice in chosen(*reversed(FORMS))] == list(FORMS)


def test_the_first_choice_says_why_and_the_others_may_be_tried_after_it():
    first, second = chosen("xterm", "kitty")
    assert (first.name, second.name) == ("kitty", "xterm")
    assert "first known" in first.reason
    assert "after kitty" in second.reason


def test_what_x_terminal_emulator_stands_for_is_named():
    (choice,) = choose(COMMAND, find=installed("x-terminal-emulator"), resolve=lambda _path: "/usr/bin/terminator")
    assert "/usr/bin/terminator" in choice.reason


@pytest.mark.parametrize("target", ["/usr/bin/sakura", "/usr/bin/terminology", "/opt/tilix"])
def test_a_default_terminal_that_takes_one_word_gets_a_launcher(target):
    (choice,) = choose(COMMAND, find=installed("x-terminal-emulator"), resolve=lambda _path: target)
    assert choice.argv == ["/bin/x-terminal-emulator", "-e", "{launcher}"]


def test_no_emulator_is_told_in_the_words_that_agents_know():
    with pytest.raises(CtlError) as caught:
        chosen("bash", "vi")
    assert str(caught.value) == (
        "No supported Linux terminal emulator found. Install one or configure agent-tools/preferences.json. "
        "The canvas terminal is still available."
    )


def test_an_emulator_that_cannot_use_the_display_is_passed_over():
    names = ["foot", "xterm", "urxvt", "kitty"]
    assert [choice.name for choice in chosen(*names, displays={X11})] == ["kitty", "xterm", "urxvt"]
    assert [choice.name for choice in chosen(*names, displays={WAYLAND})] == ["kitty", "foot"]
    with pytest.raises(CtlError, match=r"foot is installed, but can only use a Wayland display"):
        chosen("foot", displays={X11})
    with pytest.raises(CtlError, match=r"foot is installed, but can only use a Wayland display"):
        chosen("foot", terminal="foot", displays={X11})


def test_an_explicit_choice_stands_alone():
    wish = parse_preference(preference(), "p.json")
    (choice,) = chosen("kitty", "xterm", "myterm", terminal="xterm", preference=wish)
    assert choice.name == "xterm"
    (choice,) = chosen("kitty", "xterm", "myterm", preference=wish)
    assert choice.name == "myterm"


def test_an_explicit_choice_may_be_a_path_that_ends_in_a_known_name():
    (choice,) = chosen("kitty", terminal="/bin/kitty")
    assert choice.argv == ["/bin/kitty", "--", *COMMAND]


@pytest.mark.parametrize("name", ["notepad", "", "./kitty", "bin/kitty", "/bin/", "Terminal"])
def test_an_unknown_name_is_refused_and_the_known_ones_listed(name):
    with pytest.raises(UsageError, match=r"not a known terminal.*kitty.*terminology"):
        chosen("kitty", terminal=name)


@pytest.mark.parametrize("name", ["xterm", "/opt/xterm"])
def test_a_known_name_that_is_not_installed_is_refused(name):
    with pytest.raises(CtlError, match=r"xterm is not installed"):
        chosen("kitty", terminal=name)


def test_the_preferred_terminal_gets_the_command_in_place_of_the_placeholder():
    wish = parse_preference(preference(args=["-x", "{command}", "--hold {command}"]), "p.json")
    (choice,) = chosen("kitty", "myterm", preference=wish)
    assert choice.argv == ["/bin/myterm", "-x", *COMMAND, "--hold {command}"]
    assert "p.json" in choice.reason


@pytest.mark.parametrize("executable", ["/bin/kitty", "kitty"])
def test_a_display_is_asked_of_known_terminals_only(executable):
    (known,) = chosen("kitty", preference=parse_preference(preference(executable), "p.json"))
    (other,) = chosen("myterm", preference=parse_preference(preference(), "p.json"))
    assert known.needs_display
    assert not other.needs_display


def test_preferences_without_a_terminal_leave_the_choice_open():
    assert parse_preference({}, "p.json") is None
    assert parse_preference({"theme": "dark"}, "p.json") is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"externalTerminal": None}, "not an object"),
        ({"externalTerminal": "kitty"}, "not an object"),
        ({"externalTerminal": {}}, "executable must be a non-empty string"),
        ({"externalTerminal": {"args": ["{command}"]}}, "executable must be a non-empty string"),
        ({"externalTerminal": {"executable": "kitty"}}, "args must be an array of strings"),
        (preference(""), "executable must be a non-empty string"),
        (preference("  "), "executable must be a non-empty string"),
        (preference("a\0b"), "executable must be a non-empty string"),
        (preference(7), "executable must be a non-empty string"),
        ({"externalTerminal": {"executable": "kitty", "args": "{command}"}}, "args must be an array of strings"),
        (preference(args=["{command}", 1]), "args must be an array of strings"),
        (preference(args=["a\0", "{command}"]), "args must be an array of strings"),
        (preference(args=[]), "External terminal args must contain exactly one {command} placeholder"),
        (preference(args=["-e"]), "External terminal args must contain exactly one {command} placeholder"),
        (preference(args=["-e {command}"]), "External terminal args must contain exactly one {command} placeholder"),
        (preference(args=["{command}"] * 2), "External terminal args must contain exactly one {command} placeholder"),
    ],
    ids=json.dumps,
)
def test_preferences_are_read_strictly_and_the_file_is_named(value, told):
    with pytest.raises(CtlError) as caught:
        parse_preference(value, "/d/preferences.json")
    assert told in str(caught.value)
    assert "/d/preferences.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("executable", "told"),
    [
        ("./myterm", "relative path"),
        ("bin/myterm", "relative path"),
        ("~/myterm", "relative path"),
        ("gone", "is not on PATH"),
        ("/opt/gone", "missing or not executable"),
    ],
)
def test_a_preferred_terminal_that_cannot_be_run_is_refused(executable, told):
    with pytest.raises(CtlError, match=told):
        chosen("kitty", "myterm", preference=parse_preference(preference(executable), "p.json"))


def test_the_inventory_names_every_emulator_with_its_path_and_form():
    rows = emulators.inventory(installed("kitty"), system="Linux")
    assert [row.emulator.name for row in rows] == list(FORMS)
    assert {row.emulator.name: row.executable for row in rows if row.executable} == {"kitty": "/bin/kitty"}
    assert next(row.form for row in rows if row.emulator.name == "kitty") == "kitty -- COMMAND ARGS..."
    assert next(row.form for row in rows if row.emulator.name == "tilix") == "tilix -e LAUNCHER"


def test_macos_asks_its_applications_first():
    names = ["Terminal.app", "iTerm.app", "osascript", "kitty"]
    choices = chosen(*names, system="Darwin")
    assert [choice.name for choice in choices] == ["iTerm", "Terminal", "kitty"]
    assert choices[0].argv == ["/bin/osascript", "-e", emulators.iterm_script(COMMAND)]
    assert choices[1].argv == ["/bin/osascript", "-e", emulators.terminal_script(COMMAND)]


def test_the_script_for_terminal_types_the_command_into_a_shell():
    assert emulators.terminal_script(["/a b/tmux", "it's", 'say "hi" \\ $HOME']) == (
        'tell application "Terminal"\n'
        "    do script \"exec '/a b/tmux' 'it'\\\"'\\\"'s' 'say \\\"hi\\\" \\\\ $HOME'\"\n"
        "    activate\n"
        "end tell"
    )


def test_the_script_for_iterm_starts_the_command_itself():
    assert emulators.iterm_script(["/a b/tmux", 'x"y']) == (
        'tell application "iTerm"\n'
        "    create window with default profile command \"'/a b/tmux' 'x\\\"y'\"\n"
        "    activate\n"
        "end tell"
    )


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")), min_size=1))
def test_a_script_gives_back_every_word_of_any_command(command):
    script = emulators.iterm_script(command)
    literal = script.partition(" command ")[2].rpartition("\n    activate")[0]
    assert literal[0] == literal[-1] == '"'
    plain = []
    inside = iter(literal[1:-1])
    for character in inside:
        assert character != '"'
        plain.append(next(inside) if character == "\\" else character)
    assert shlex.split("".join(plain)) == command
