"""What commands understand without argparse is what argparse makes of it."""

from __future__ import annotations

import importlib

import pytest

from termsprawlctl.cli import parser

WORDS = [
    ("doctor", []),
    ("call", []),
    ("call", ["canvas_list"]),
    ("call", ["x", "-"]),
    ("call", ["x", "a=1", "b:=[1]", ""]),
    ("call", ["x", "{}", "@f"]),
    ("mcp", []),
    ("mcp", ["--start-host"]),
]


@pytest.mark.parametrize(("command", "words"), WORDS, ids=lambda value: " ".join(value) if value else "")
def test_plain_words_mean_what_argparse_makes_of_them(command, words):
    declared = parser.command_parser(command)
    parse = declared.parse_args if declared.has_commands else declared.parse_intermixed_args
    expected = vars(parse(words))
    expected.pop("session", None)
    assert importlib.import_module(f"termsprawlctl.cli.commands.{command}").plain(words) == expected


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("doctor", ["--explain"]),
        ("doctor", ["x"]),
        ("call", ["x", "--field", "a"]),
        ("call", ["--", "-x"]),
        ("call", ["-h"]),
        ("mcp", ["agent"]),
        ("mcp", ["--wait", "3"]),
    ],
)
def test_all_other_words_are_for_argparse(command, words):
    assert importlib.import_module(f"termsprawlctl.cli.commands.{command}").plain(words) is None
