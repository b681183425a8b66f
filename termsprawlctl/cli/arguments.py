"""The commands' words by argparse: its parser, in our words and with our errors.

Loaded where a command does not understand its words by itself (see parser.py).
"""

from __future__ import annotations

import argparse
import os
import re
import sys

from ..base import console
from ..base.errors import CommandLineError
from .hints import suggestion
from .parser import PROGRAM, VERSION_OPTIONS, VERSION_TEXT

# argparse's own words, as English as ours: looking for translations imports locale, and
# would find them for some sentences only.
setattr(argparse, "_", str)  # noqa: B010 - no attribute that mypy knows
MAX_HELP_COLUMNS = 98  # longer lines are hard to read
# argparse's own words
_UNKNOWN_WORDS = "unrecognized arguments: "
_CHOICE = re.compile(r"argument [^:]*: invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)


class Exit(Exception):
    """argparse wants to end with this status; help and version are printed already."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _NoColours:
    def __getattr__(self, name: str) -> str:
        return ""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of descriptions and examples.

    argparse makes formatters while arguments are declared, too, and imports shutil for
    the width of each that is not told one. Python 3.14 and newer know colours: those would
    get into the usage of our error texts, and the module that knows them costs half a start.
    """

    _theme = _NoColours()
    _decolor = staticmethod(str)

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns())

    def _set_color(self, *_color, **_options) -> None:
        pass


class Parser(argparse.ArgumentParser):
    """An argument parser that writes UTF-8 and raises instead of exiting."""

    def __init__(self, **options) -> None:
        options.setdefault("formatter_class", _HelpFormatter)
        options.setdefault("allow_abbrev", False)
        if sys.version_info >= (3, 14):
            # The same words with every Python: see _HelpFormatter, and suggestion().
            options.update(color=False, suggest_on_error=False)
        super().__init__(**options)
        self._optionals.title = "options"  # Python 3.9 has another word for them
        self.has_commands = False
        # Every command knows --version; once is enough to tell.
        text = "print the version" if self.prog == PROGRAM else argparse.SUPPRESS
        names = VERSION_OPTIONS if self.prog == PROGRAM else VERSION_OPTIONS[:1]
        self.add_argument(*names, action="version", version=VERSION_TEXT, help=text)
        # What the help calls the words after `--`, for a command that hands them on; "" to keep quiet about it.
        self.passes_on: str | None = None

    def parse_known_args(self, args=None, namespace=None):
        """As argparse does it; words after `--` become `passed_on` where the command hands them on."""
        return super().parse_known_args(*self._without_passed_on(args, namespace))

    def parse_known_intermixed_args(self, args=None, namespace=None):
        """The same; newer Pythons do not come by parse_known_args() on this way."""
        return super().parse_known_intermixed_args(*self._without_passed_on(args, namespace))

    def _without_passed_on(self, args, namespace) -> tuple:
        self.declare()
        if self.passes_on is not None and args is not None and "--" in args:
            cut = list(args).index("--")
            namespace = namespace or argparse.Namespace()
            namespace.passed_on = list(args)[cut + 1 :]
            args = list(args)[:cut]
        return args, namespace

    def format_usage(self) -> str:
        usage = super().format_usage()
        return f"{usage.rstrip()} [-- {self.passes_on}]\n" if self._has_to_add_words() else usage

    def _has_to_add_words(self) -> bool:
        # While argparse parses intermixed words, our own usage is what it takes for the given one.
        return bool(self.passes_on) and self.usage is None

    def declare(self) -> None:
        """Declare what is declared only once the parser is used; for subclasses."""

    def actions(self) -> list[argparse.Action]:
        """Every argument, option and group of subcommands, in the order of their declaration."""
        self.declare()
        return list(self._actions)

    def add_subparsers(self, **options):
        self.has_commands = True
        return super().add_subparsers(**options)

    def format_help(self) -> str:
        text = super().format_help()
        return text.replace("\n\n", f" [-- {self.passes_on}]\n\n", 1) if self._has_to_add_words() else text

    def error(self, message: str):
        usage = self.format_usage().strip()
        remedy = f"See {self.prog} --help."
        if message.startswith(_UNKNOWN_WORDS):
            word = message[len(_UNKNOWN_WORDS) :].split(" ", 1)[0]
            near = suggestion(word, self._option_string_actions) if word.startswith("--") else ""
            remedy = f"{near} {remedy}".strip()
        choice = _CHOICE.match(message)
        if choice:
            known = [one.strip(" '") for one in choice[2].split(",")]
            remedy = f"{suggestion(choice[1], known)} {remedy}".strip()
        raise CommandLineError(f"Usage:{usage[len('usage:') :]}\n{self.prog}: {message}.", remedy)

    def exit(self, status: int = 0, message: str | None = None):  # noqa: ARG002 - argparse's signature
        raise Exit(status)

    def _print_message(self, message: str, file=None) -> None:  # noqa: ARG002 - argparse's signature
        if message:
            console.out(message)


def _columns() -> int:
    try:
        return min(os.get_terminal_size(console.STDOUT).columns - 2, MAX_HELP_COLUMNS)
    except OSError:
        return MAX_HELP_COLUMNS
