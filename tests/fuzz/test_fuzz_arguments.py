"""Whatever words the command line is given: a documented exit status, a sentence, and no word too much."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import corpus, hostile

from termsprawlctl.cli import parser
from termsprawlctl.operations.table import OPERATIONS

TOKEN = "0123456789abcdef" * 4
STATUSES = (0, 1, 2, 130)
USAGE_BYTES = 20_000  # far more than the longest help or usage
# Started with free words, these would open windows, start agents and hosts, or write into the
# user's files: here their words are parsed, and what they would do is left out. `mcp` takes the
# process's own streams; it has fuzz tests of its own.
PARSED_ONLY = ("attach", "external", "launch", "agent", "install", "uninstall", "tui", "mcp")
PARSED_ONLY_HOST_ACTIONS = ("run", "start", "stop", "link", "unlink")


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """A home, a working directory and a session whose app is not there; what starts something is left out."""
    root = tmp_path_factory.mktemp("arguments")
    session = root / "agent-tools" / "sessions" / "n-1.json"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"nodeId": "n-1", "projectId": "p-1", "token": TOKEN}))
    # Port 1 is nobody's on 127.0.0.1.
    (root / "agent-tools" / "endpoint.json").write_text(json.dumps({"url": "http://127.0.0.1:1/call"}))
    (root / "args.json").write_text('{"nodeId": "n-1"}')
    (root / "odd").write_bytes(b"\xff{")
    os.mkfifo(root / "fifo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in list(os.environ):
            patch.delenv(name)
        patch.setenv("PATH", os.pathsep.join([os.path.join(sys.base_prefix, "bin"), "/usr/bin", "/bin"]))
        patch.setenv("HOME", str(root))
        patch.setenv("TERMSPRAWL_SESSION_FILE", str(session))
        for name in PARSED_ONLY:
            patch.setattr(importlib.import_module(f"termsprawlctl.cli.commands.{name}"), "run", lambda _args: 0)
        host = importlib.import_module("termsprawlctl.cli.commands.host")
        run = host.run
        patch.setattr(host, "run", lambda args: 0 if args.action in PARSED_ONLY_HOST_ACTIONS else run(args))
        mapped = importlib.import_module("termsprawlctl.cli.commands.map")
        draw = mapped.run
        patch.setattr(mapped, "run", lambda args: 0 if args.watch else draw(args))
        yield root


class Output:
    """What a command line left."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out
        self.err = err

    def check(self, argv_bytes: int) -> None:
        assert self.status in STATUSES, self.err
        text = self.err.decode("utf-8")
        self.out.decode("utf-8")
        assert "Traceback" not in text
        assert "internal error" not in text
        assert not hostile.shows(TOKEN, self.out)
        assert not hostile.shows(TOKEN, self.err)
        # What is wrong is said, also where it is long, and only once or twice.
        assert len(self.err) < USAGE_BYTES + 10 * argv_bytes
        if self.status == 2:
            assert text.strip()
            assert not self.out


def run(words: list[str], capfd) -> Output:
    """The command line in this process, as it would run in one of its own."""
    capfd.readouterr()
    saved, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        status = parser.main(words)
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(null)
    sys.stdout.flush()
    out, err = capfd.readouterr()
    return Output(status, out.encode("utf-8", "surrogateescape"), err.encode("utf-8", "surrogateescape"))


def words_of(name: str) -> list[str]:
    """What the command itself knows: options, choices, subcommands and theirs."""
    found, parsers = [], [parser.command_parser(name)]
    while parsers:
        for action in parsers.pop().actions():
            found += action.option_strings
            found += [str(choice) for choice in action.choices or ()]
            if isinstance(action.choices, dict):
                parsers += action.choices.values()
    return sorted(set(found))


KNOWN = {name: words_of(name) for name in parser.COMMANDS}
TABLE = sorted(OPERATIONS)
# Bytes of any kind, as Python has them in argv: without NUL, and those that are no UTF-8 escaped.
hostile_words = (hostile.encoded(hostile.any_text) | hostile.binary).map(
    lambda data: os.fsdecode(data.replace(b"\0", b""))
)
json_words = hostile.json_texts.map(lambda text: text.replace("\0", "").encode("utf-8", "replace").decode())
odd_words = st.sampled_from(
    [
        *(
            "",
            " ",
            "-",
            "--",
            "---",
            "-h",
            "--help",
            "--version",
            "--session",
            "--session=",
            "--session=/no/such",
            "-=x",
        ),
        *(
            "@",
            "@args.json",
            "@odd",
            "@fifo",
            "@.",
            "@/dev/null",
            "@no/such",
            "args.json",
            "fifo",
            ".",
            "/no/such",
            "n-1",
        ),
        *(
            "--=",
            "--x=y",
            "-x",
            "-xyz",
            "--sess",
            "x=",
            "x:=",
            "=x",
            ":=1",
            "x:=NaN",
            "x==y",
            "é=1",
            "nodeId=n-1",
            "-1",
            "1e9",
        ),
        *(
            "value",
            "value.",
            ".",
            "..",
            "value.0",
            "value.-1",
            "[0]",
            "ok",
            "error",
            "{}",
            "[]",
            "null",
            "'",
            '"',
            "%s",
            "{0}",
        ),
        *("\u0661", "9" * 5000, "x" * 100_000, "x=" + "y" * 100_000, "x:=" + "[" * 5000, "-" * 5000, "--" + "z" * 5000),
    ]
)
any_word = odd_words | hostile_words | json_words | json_words.map(lambda text: f"x:={text}")


@st.composite
def lines(draw, commands=tuple(parser.COMMANDS)) -> list[str]:
    """A command line: mostly a command with its own words, in any order, between others."""
    name = draw(st.sampled_from(commands))
    own = st.sampled_from(KNOWN[name] or [""])
    word = own | own.flatmap(lambda option: any_word.map(lambda value: f"{option}={value}")) | any_word
    words = draw(st.lists(word | st.sampled_from(TABLE) if name in ("call", "tools") else word, max_size=6))
    if draw(st.integers(0, 9)) == 0:
        return [*words, name]
    return [name, *words]


def argv_bytes(words: list[str]) -> int:
    return sum(len(os.fsencode(word)) for word in words)


def kept(path) -> list[str]:
    """The words of a corpus entry, each ended by NUL, as the system keeps a command line."""
    return [os.fsdecode(word) for word in path.read_bytes().split(b"\0")[:-1]]


@pytest.mark.parametrize("path", corpus.entries("arguments"), ids=corpus.name)
def test_words_that_are_easily_misread_are_answered(capfd, path):
    words = kept(path)
    run(words, capfd).check(argv_bytes(words))


@given(lines() | st.lists(any_word, max_size=4))
@example(["call", "session_info", "--field", "value." + "x" * 100_000])
@example(["--session"])
@example(["guide", "x" * 100_000])
def test_any_words_get_a_documented_exit_status(capfd, words):
    run(words, capfd).check(argv_bytes(words))


# doctor asks tmux and others for their versions.
NAMES = [pytest.param(name, marks=pytest.mark.process if name == "doctor" else ()) for name in sorted(parser.COMMANDS)]


@pytest.mark.parametrize("name", NAMES)
def test_the_options_of_every_command_may_come_in_any_order_and_number(capfd, name):
    @settings(max_examples=settings.default.max_examples // 6)
    @given(lines((name,)))
    def answered(words) -> None:
        run(words, capfd).check(argv_bytes(words))

    answered()


@given(st.lists(any_word | lines().map(" ".join), max_size=3), lines(), st.booleans())
def test_any_half_line_is_completed_with_words_or_with_nothing(capfd, before, line, with_line):
    words = ["completion", "--candidates", "--", *(line if with_line else before)]
    done = run(words, capfd)
    done.check(argv_bytes(words))
    assert done.status == 0
    assert not done.err
    for offered in done.out.decode().splitlines():
        word, tab, about = offered.partition("\t")
        assert word
        assert offered in (":files", ":folders") or tab, (offered, about)


def built(ctl: str, words: list[str], place) -> Output:
    done = subprocess.run(
        [ctl, *words],
        env=dict(os.environ),
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Output(done.returncode, done.stdout, done.stderr)


SAFE = tuple(name for name in parser.COMMANDS if name not in (*PARSED_ONLY, "host", "map"))


@settings(max_examples=settings.default.max_examples // 5)  # each starts a process
@given(
    lines(SAFE)
    | st.builds(lambda name, line: [name, "--help", *line[1:]], st.sampled_from(sorted(parser.COMMANDS)), lines(SAFE))
    | st.lists(any_word, max_size=3).filter(lambda words: not words or words[0] not in parser.COMMANDS)
)
def test_the_built_file_says_the_same(ctl, capfd, place, words):
    words = [word[:60_000] for word in words]
    done = built(ctl, words, place)
    done.check(argv_bytes(words))
    assert done.status == run(words, capfd).status
