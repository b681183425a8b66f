"""`--help` at every level: one screen, with examples that hold; and what is said to those who mistype."""

from __future__ import annotations

import re
import shlex

import pytest
from support.command import run
from support.scripted_server import ScriptedServer, answer
from support.session_files import SessionFiles

from termsprawlctl.cli import arguments, hints, parser
from termsprawlctl.cli.hints import suggestion

LINES, COLUMNS = 40, 80  # a terminal window of usual size


def levels() -> dict[str, arguments.Parser]:
    """Every command and subcommand that is for people, with its parser."""
    found = {}

    def add(name: str, parser) -> None:
        found[name] = parser
        for action in parser.actions():
            if isinstance(action.choices, dict):
                for shown in action._choices_actions:
                    add(f"{name} {shown.dest}", action.choices[shown.dest])

    for command in parser.COMMANDS:
        add(command, parser.command_parser(command))
    return found


LEVELS = levels()


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(arguments, "_columns", lambda: COLUMNS - 2)


@pytest.mark.parametrize("name", list(LEVELS))
def test_help_fits_on_a_screen_and_has_an_example(name, narrow):
    text = LEVELS[name].format_help()
    rows = sum(-(-len(line) // COLUMNS) or 1 for line in text.splitlines())
    assert rows <= LINES, text
    assert re.search(rf"^examples?:\n(  .*\n)*  .*termsprawlctl {name.split(' ')[0]}\b", text, re.MULTILINE)
    assert f"usage: termsprawlctl {name}" in text


def test_every_command_that_needs_a_session_says_in_its_help_how_to_name_one(narrow):
    for name in ("doctor", "call", "mcp", "map", "external", "attach", "install"):
        text = LEVELS[name].format_help()
        assert "--session" in text, name
        assert "TERMSPRAWL_SESSION_FILE" in text, name


@pytest.mark.parametrize("words", ["install", "mcp agent", "agent run"])
def test_words_that_are_handed_on_stand_once_in_the_usage(ctl, hermetic_env, words):
    told = run([ctl, *words.split(), "--help"], hermetic_env).out.decode()
    refused = run([ctl, *words.split(), "--no-such-option"], hermetic_env).err.decode()
    for text in (told, refused):
        assert text.count("[-- ARGS]") == 1, text


def test_a_session_may_still_stand_anywhere_but_behind_two_dashes():
    assert parser.take_session(["--session", "a", "call", "x"]) == (["call", "x"], "a")
    assert parser.take_session(["call", "--session=a", "x", "--", "--session", "b"]) == (
        ["call", "x", "--", "--session", "b"],
        "a",
    )
    args = parser.command_parser("call").parse_intermixed_args(["op", "--", "--session"])
    assert args.arguments == ["--session"]


def test_a_newcomer_finds_everything_from_the_first_help_on(ctl, hermetic_env, narrow):
    text = run([ctl, "--help"], hermetic_env).out.decode()
    assert len(text.splitlines()) <= LINES
    for name in parser.COMMANDS:
        assert re.search(rf"^  {name}  +\w", text, re.MULTILINE)
    assert "COMMAND --help" in text
    for name in LEVELS:
        parent, _, last = name.rpartition(" ")
        if parent:
            assert re.search(rf"^ +{last}\b", LEVELS[parent].format_help(), re.MULTILINE), name


def examples() -> list[str]:
    """Every command line of ours in the examples of the helps."""
    found = []
    for command in [parser.command_parser(name) for name in parser.COMMANDS] + list(LEVELS.values()):
        for line in (command.epilog or "").splitlines():
            match = re.match(r"  .*?\b(termsprawlctl .*)", line)
            if match and not line.startswith("  termsprawlctl completion fish"):
                found.append(re.split(r"  +|\)| \| | 2?> ?|<", match.group(1))[0])
    return sorted({*found, *re.findall(r"^  (termsprawlctl [^|)\n]*)", parser.EPILOG, re.MULTILINE)})


@pytest.mark.parametrize("line", examples())
def test_every_example_is_a_command_line_that_is_understood(line):
    words, _ = parser.take_session(shlex.split(line)[1:])
    command = parser.command_parser(words[0])
    parse = command.parse_args if command.has_commands else command.parse_intermixed_args
    parse(words[1:])


# Near misses


@pytest.fixture
def app(tmp_path):
    def script(connection):
        connection.read_request()
        connection.send(answer(server.result))

    with ScriptedServer(script) as server:
        server.session = str(SessionFiles(tmp_path, server.port).session)
        yield server


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["canvas_mov"], "Unknown operation", "Did you mean canvas_move?"),
        (["terminal_reed"], "Unknown operation", "Did you mean terminal_read"),
        (["TERMINAL_READ"], "Unknown operation", "Did you mean terminal_read"),
        (["zzz"], "Unknown operation", "`termsprawlctl tools` lists"),
        ([], "Unknown operation", "Name one."),
        (["terminal_wait"], "Unknown operation", "embedded host, which this app does not have"),
        (["terminal_read", "nodeid=n"], "Unknown argument: nodeid", "Did you mean nodeId? terminal_read takes nodeId,"),
        (["canvas_list", "a=b"], "Unknown argument: a", "canvas_list takes no arguments."),
    ],
    ids=repr,
)
def test_what_was_meant_is_told_after_the_apps_refusal_and_never_instead(app, ctl, hermetic_env, words, error, said):
    app.result = {"ok": False, "error": error}
    done = run([ctl, "call", *words, "--session", app.session], hermetic_env)
    assert (done.status, done.out.decode()) == (1, f'{{\n  "ok": false,\n  "error": "{error}"\n}}\n')
    assert said in done.err.decode()
    assert done.err.count(b"\n") == 1


@pytest.mark.parametrize("error", ["Unknown node: n-1.", "Unknown operation", "Missing argument: nodeId"])
def test_other_refusals_get_nothing_on_top(app, ctl, hermetic_env, error):
    app.result = {"ok": False, "error": error}
    operation = "canvas_list" if error.startswith("Unknown") else "operation_of_tomorrow"
    done = run([ctl, "call", operation, "--session", app.session], hermetic_env)
    assert (done.status, done.err) == (1, b"")


def test_an_answer_of_yes_gets_nothing_on_top():
    assert hints.hint("canvas_mov", "") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docter"], "Did you mean doctor?"),
        (["Map"], "Did you mean map?"),
        (["comp"], "Did you mean completion?"),
        (["xyzzy"], "unknown command 'xyzzy'. See termsprawlctl --help."),
        (["call", "x", "--feild", "y"], "Did you mean --field?"),
        (["install", "claude", "--wirte"], "Did you mean --write?"),
        (["tools", "canvas_mov"], "Did you mean canvas_move?"),
    ],
    ids=repr,
)
def test_a_mistyped_word_of_ours_is_answered_with_the_nearest(ctl, hermetic_env, words, said):
    done = run([ctl, *words], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert said in done.err.decode()


def test_a_suggestion_is_near_or_none():
    names = ["terminal_read", "terminal_run"]
    assert suggestion("termnal_read", names) == "Did you mean terminal_read?"
    assert suggestion("term", names) == "Did you mean terminal_read or terminal_run?"
    assert suggestion("", names) == suggestion("b", names) == ""
