"""Completion: the words that are offered, and three real shells that complete them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess

import pytest
from support.mcp_app import StandInApp
from support.scripted_server import Trap
from support.session_files import SessionFiles
from support.waiting import until

from termsprawlctl.cli import parser
from termsprawlctl.cli.completion.candidates import Tree, candidates
from termsprawlctl.cli.completion.scripts import SCRIPTS
from termsprawlctl.cli.completion.values import Values
from termsprawlctl.operations import guides
from termsprawlctl.operations.table import OPERATIONS

NODES = [
    {"id": "n-terminal", "type": "terminal", "data": {"title": "build"}},
    {"id": "n-note", "type": "sticky", "data": {"text": "x"}},
    {"id": "n-web", "type": "browser"},
    "not a node",
    {"id": 5},
]


def ask(*words: str, **environment: str):
    tree = Tree({name: summary for name, (_, summary) in parser.COMMANDS.items()}, parser.command_parser)
    return candidates(list(words), tree, Values(environment))


def offered(*words: str, **environment: str) -> list[str]:
    return [value.word for value in ask(*words, **environment).values]


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path / "app") as running:
        running.replies["canvas_list"] = {"ok": True, "value": NODES}
        yield running


def test_every_command_is_offered_with_its_line_of_help():
    answer = ask("")
    assert [value.word for value in answer.values] == list(parser.COMMANDS)
    assert all(value.about for value in answer.values)
    assert offered("do") == ["doctor"]


@pytest.mark.parametrize("name", list(parser.COMMANDS))
def test_every_option_of_every_command_is_offered(name):
    options = offered(name, "-")
    command = parser.command_parser(name)
    for action in command.actions():
        if action.option_strings and action.help != "==SUPPRESS==":
            assert max(action.option_strings, key=len) in options
    assert options.count("--session") == 1
    assert "--ready-fd" not in offered("host", "run", "--")
    assert "--candidates" not in options


def test_subcommands_are_offered_and_those_for_the_program_itself_are_not():
    assert {"start", "stop", "status", "run"} <= set(offered("host", ""))
    assert "--at-client" not in offered("tui", "revoke", "--")
    assert offered("mcp", "") == ["tui", "agent"]
    assert "--endpoint" in offered("mcp", "tui", "--")
    assert offered("mcp", "agent", "codex", "--effort", "h") == ["high"]


def test_an_option_that_was_given_is_not_offered_again_unless_it_may_be_repeated():
    assert "--json" not in offered("install", "codex", "--json", "--")
    assert "--env" in offered("install", "codex", "--env", "A=b", "--")
    assert offered("install", "codex", "--scope", "") == ["user", "project"]
    assert offered("install", "codex", "--scope=p") == ["--scope=project"]


def test_operations_and_their_arguments_are_offered():
    assert offered("call", "") == list(OPERATIONS)
    assert offered("tools", "terminal_r") == [name for name in OPERATIONS if "terminal_r" in name]
    assert offered("call", "terminal_read", "") == ["nodeId=", "maxChars:="]
    assert offered("call", "terminal_read", "maxChars:=5", "") == ["nodeId="]
    assert offered("call", "guide_read", "topic=") == [f"topic={name}" for name in guides.TOPICS]
    assert offered("call", "agent_launch", "agent=co") == ["agent=codex"]
    assert offered("call", "no_such_operation", "") == []
    assert offered("call", "terminal_read", '{"nodeId":', "") == []
    assert offered("guide", "o") == ["overview"]
    assert offered("call", "x", "--f") == ["--field"]


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_every_argument_of_every_operation_is_offered_in_a_form_that_call_takes(name):
    words = offered("call", name, "")
    assert [word.rstrip(":=") for word in words] == [argument.name for argument in OPERATIONS[name].arguments]
    for word, argument in zip(words, OPERATIONS[name].arguments):
        assert word.endswith(":=") == (argument.kind != "string")


def test_ids_come_from_the_running_session(app):
    environment = {"TERMSPRAWL_SESSION_FILE": app.session}
    assert offered("call", "terminal_read", "nodeId=", **environment) == ["nodeId=n-terminal"]
    assert offered("call", "browser_click", "selector=a", "nodeId=n", **environment) == ["nodeId=n-web"]
    assert offered("call", "canvas_move", "nodeId=", **environment) == [
        "nodeId=n-terminal",
        "nodeId=n-note",
        "nodeId=n-web",
    ]
    assert [(one.word, one.about) for one in ask("attach", "", **environment).values] == [
        ("n-terminal", "terminal build")
    ]
    assert offered("external", "--session", app.session, "") == ["n-terminal"]
    assert offered(f"--session={app.session}", "call", "terminal_close", "nodeId=") == ["nodeId=n-terminal"]
    assert offered("call", "terminal_read", "nodeId=") == []


def test_nobody_is_asked_for_what_is_known(app):
    environment = {"TERMSPRAWL_SESSION_FILE": app.session}
    for words in (["call", ""], ["call", "terminal_read", ""], ["call", "terminal_read", "-"], ["host", ""]):
        offered(*words, **environment)
    assert app.requests == []


def test_a_session_that_does_not_answer_is_waited_for_only_shortly(tmp_path):
    with Trap() as trap:  # listens, and never answers
        files = SessionFiles(tmp_path, trap.port)
        assert offered("call", "terminal_read", "nodeId=", TERMSPRAWL_SESSION_FILE=str(files.session)) == []


def test_files_and_folders_are_left_to_the_shell():
    assert ask("call", "x", "--save", "").files == "files"
    assert ask("--session", "").files == "files"
    assert ask("doctor", "--session", "/").files == "files"
    assert ask("host", "start", "--project", "").files == "folders"
    assert ask("call", "artifact_open", "path=").files == "files"
    assert ask("mcp", "agent", "codex", "--", "").files == "files"
    assert ask("doctor", "").files == ""


def test_words_that_make_no_sense_are_no_fault():
    for words in ([], ["nonsense", ""], ["call", "a", "b", "c", ""], ["host", "nonsense", "x", ""], ["doctor", "--x="]):
        ask(*words)
    assert offered("nonsense", "") == []


def test_nothing_but_words_is_printed_even_when_the_session_is_broken(ctl, hermetic_env):
    done = subprocess.run(
        [ctl, "completion", "--candidates", "--", "attach", ""],
        env={**hermetic_env, "TERMSPRAWL_SESSION_FILE": "/no/such/file"},
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_the_scripts_are_printed_and_another_shell_is_refused(ctl, hermetic_env):
    for shell, script in SCRIPTS.items():
        done = subprocess.run([ctl, "completion", shell], env=hermetic_env, capture_output=True, check=True)
        assert done.stdout.decode() == script
    for words in ([], ["tcsh"]):
        done = subprocess.run([ctl, "completion", *words], env=hermetic_env, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (2, b"")


# The real shells, at a real terminal

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(termsprawlctl completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -D -u; source <(termsprawlctl completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "termsprawlctl completion fish | source"),
}
EACH_SHELL = pytest.mark.parametrize(
    "shell", [name if name == "bash" else pytest.param(name, marks=pytest.mark.counterpart) for name in SHELLS]
)


class Typist:
    """A shell in a terminal of its own; types, and reads the screen."""

    def __init__(self, argv: list[str], env: dict[str, str], folder) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._env = env
        # Wide enough that no line wraps.
        self._run("new-session", "-d", "-x", "150", "-y", "50", "-c", str(folder), shlex.join(argv))

    def _run(self, *words: str) -> str:
        return subprocess.run(
            [*self._tmux, *words], env=self._env, capture_output=True, text=True, check=True, timeout=20
        ).stdout

    def type(self, text: str) -> None:
        for key in re.split(r"(\t)", text):
            if key:
                self._run("send-keys", *(["Tab"] if key == "\t" else ["-l", "--", key]))

    def wait(self, text: str) -> None:
        until(lambda: text in self._run("capture-pane", "-p"), lambda: self._run("capture-pane", "-p"))

    def enter(self) -> None:
        self._run("send-keys", "Enter")

    def stop(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], env=self._env, check=False, capture_output=True)


@pytest.fixture
def typist(ctl, app, tmp_path, hermetic_env):
    started = []

    def start(shell: str) -> Typist:
        argv, load = SHELLS[shell]
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed; tests/counterparts/apt-shells.txt lists it")
        env = {
            **hermetic_env,
            "PATH": os.pathsep.join([os.path.dirname(ctl), hermetic_env["PATH"]]),
            "HOME": str(tmp_path),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "TERMSPRAWL_SESSION_FILE": app.session,
        }
        one = Typist(argv, env, tmp_path)
        started.append(one)
        one.type(f"{load}; echo lo''aded")
        one.enter()
        one.wait("loaded")
        return one

    yield start
    for one in started:
        one.stop()


@EACH_SHELL
def test_a_real_shell_completes_commands_options_operations_and_live_ids(typist, shell):
    typist = typist(shell)
    typist.type("termsprawlctl doc\t")
    typist.wait("termsprawlctl doctor")
    typist.type("--exp\t")
    typist.wait("termsprawlctl doctor --explain")
    typist.type("\x15termsprawlctl call terminal_int\t")
    typist.wait("termsprawlctl call terminal_interrupt")
    typist.type("node\t")
    typist.wait("terminal_interrupt nodeId=")
    typist.type("\t")  # no blank was put behind the =
    typist.wait("terminal_interrupt nodeId=n-terminal")


@EACH_SHELL
def test_a_real_shell_completes_what_it_splits_at_colons_and_signs(typist, shell):
    typist = typist(shell)
    typist.type("termsprawlctl install cursor --server agent:ge\t")
    typist.wait("--server agent:gemini")
    typist.type("\x15termsprawlctl call guide_read topic=art\t")
    typist.wait("guide_read topic=artifacts")
    typist.type("\x15termsprawlctl call terminal_read nodeId=x maxC\t5")
    typist.wait("nodeId=x maxChars:=5")
    typist.type("\x15termsprawlctl install cursor --scope=pro\t")
    typist.wait("--scope=project")


@EACH_SHELL
def test_a_real_shell_completes_files_and_folders(typist, shell, tmp_path):
    (tmp_path / "my folder").mkdir()
    (tmp_path / "my file.json").write_text("")
    (tmp_path / "picture.png").write_text("")
    typist = typist(shell)
    typist.type("termsprawlctl host start --project my\t")
    typist.wait("my\\ folder/")
    typist.type("\x15termsprawlctl call browser_screenshot --save pic\t")
    typist.wait("--save picture.png")
    typist.type("\x15termsprawlctl call artifact_open path=pic\t")
    typist.wait("path=picture.png")


@EACH_SHELL
def test_a_real_shell_lists_what_there_is(typist, shell):
    typist = typist(shell)
    typist.type("termsprawlctl tools canvas_\t\t")
    for name in ("canvas_list", "canvas_move", "canvas_resize", "canvas_group"):
        typist.wait(name)
