"""`completion`: prints a completion script, and the words that the script asks for."""

from __future__ import annotations

import argparse
import os

from ...base import console
from ...base.errors import OK, UsageError

EPILOG = """\
examples:
  source <(termsprawlctl completion bash)                      this shell; ~/.bashrc for all
  source <(termsprawlctl completion zsh)                       after compinit, in ~/.zshrc
  termsprawlctl completion fish > ~/.config/fish/completions/termsprawlctl.fish

Completes commands, options, operations, their arguments, and the ids of live nodes:
termsprawlctl call terminal_read nodeId=<TAB>
"""
SHELLS = ("bash", "zsh", "fish")


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.passes_on = ""
    parser.add_argument("shell", nargs="?", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    # What the scripts ask; the words of the command line follow behind --, the last one being typed.
    parser.add_argument("--candidates", action="store_true", help=argparse.SUPPRESS)


def run(args) -> int:
    if args.candidates:
        return _print_candidates(getattr(args, "passed_on", None) or [""])
    if args.shell is None:
        raise UsageError("which shell?", f"Known: {', '.join(SHELLS)}.")
    from ..completion.scripts import SCRIPTS

    console.out(SCRIPTS[args.shell])
    return OK


def _print_candidates(words: list[str]) -> int:
    from ..completion.candidates import Tree, candidates
    from ..completion.values import Values
    from ..parser import COMMANDS, command_parser

    tree = Tree({name: summary for name, (_, summary) in COMMANDS.items()}, command_parser)
    answer = candidates(words, tree, Values(os.environ))
    lines = [f"{one.word}\t{' '.join(one.about.split())}" for one in answer.values]
    if answer.files:
        lines.append(f":{answer.files}")
    console.out("".join(line + "\n" for line in lines))
    return OK
