#!/usr/bin/env python3
"""Write docs/reference.md and docs/termsprawlctl.1 from the program itself.

Everything comes from the argparse tree and the operation table that the program runs by.
argparse's own help is not used: its layout changes with every version of Python.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from termsprawlctl import __version__  # noqa: E402 - only now can it be found
from termsprawlctl.agents.model.settings import PREFIX  # noqa: E402
from termsprawlctl.app.discovery import ENVIRONMENT_VARIABLE  # noqa: E402
from termsprawlctl.base.layout import DATA_VARIABLE  # noqa: E402
from termsprawlctl.cli import parser  # noqa: E402
from termsprawlctl.cli.commands.tools import signature  # noqa: E402
from termsprawlctl.operations.results import RESULTS, written  # noqa: E402
from termsprawlctl.operations.table import OPERATIONS, Operation  # noqa: E402

# name: all words, as they are typed; usage: the line; about: what it does; arguments: pairs of
# a form and a text; epilog: the examples and remarks below the help.
Command = namedtuple("Command", "name usage about arguments epilog")

ENVIRONMENT = (
    (ENVIRONMENT_VARIABLE, "The session file, where --session does not name one. The app and the host set it."),
    (DATA_VARIABLE, "The embedded host's data directory, where --data does not name one."),
    (f"{PREFIX}MODEL, _EFFORT, _CWD, _TIMEOUT_MS, _HEARTBEAT_MS, _STRUCTURED, _TRACE", "Defaults of `mcp agent`."),
    ("NO_COLOR", "Where it is set, no colours are used. They are for terminals only anyway."),
)
STATUSES = (
    ("0", "Success."),
    ("1", "The operation was refused, was not reached, or the work failed; the output says why."),
    ("2", "Nothing was called: wrong usage, bad input, no session."),
    ("130", "Ctrl-C."),
)
FILES = (
    ("DATA/agent-tools/sessions/NODE.json", "A node's session: its id, its project's, and its token."),
    ("DATA/agent-tools/endpoint.json", "Where the app or host listens. Read again for every call."),
    ("DATA/agent-tools/preferences.json", "The terminal that `external` opens, and the agent `custom`."),
    ("PROJECT/.termsprawl/project.json", "The canvas of a project."),
)


def commands() -> list[Command]:
    """Every command and subcommand, in the order of the help."""
    found = []
    for name, (_, summary) in parser.COMMANDS.items():
        found += _below(name, parser.command_parser(name), summary)
    return found


def _below(name: str, parser, summary: str) -> list[Command]:
    actions = [action for action in parser.actions() if action.help != argparse.SUPPRESS and action.dest != "version"]
    options = [action for action in actions if action.option_strings and action.dest != "help"]
    positionals = [action for action in actions if not action.option_strings]
    groups = [action for action in positionals if isinstance(action.choices, dict)]
    arguments = [(_form(action), _help(action)) for action in positionals if action not in groups]
    arguments += [(_form(action), _help(action)) for action in options]
    found = [Command(name, _usage(name, parser, positionals, options), summary, arguments, parser.epilog or "")]
    for group in groups:
        # argparse keeps the helps apart from the parsers, and none for those that are not for people.
        for shown in group._choices_actions:  # noqa: SLF001
            child = group.choices[shown.dest]
            below = _below(f"{name} {shown.dest}", child, shown.help)
            if below[0].epilog == found[0].epilog:
                below[0] = below[0]._replace(epilog="")
            found += below
    return found


def _usage(name: str, parser, positionals: list, options: list) -> str:
    if parser.usage:
        return parser.usage
    words = [f"termsprawlctl {name}", *(_form(action) for action in options if action.required)]
    words += ["[OPTIONS]"] if any(not action.required for action in options) else []
    words += map(_positional, positionals)
    return " ".join(words) + (f" [-- {parser.passes_on}]" if parser.passes_on else "")


def _positional(action) -> str:
    form = _metavar(action)
    if action.nargs == "?" or (isinstance(action.choices, dict) and not action.required):
        return f"[{form}]"
    return f"[{form}...]" if action.nargs == "*" else form


def _metavar(action) -> str:
    if action.metavar:
        return action.metavar
    return f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper()


def _form(action) -> str:
    names = ", ".join(action.option_strings)
    if not names:
        return _metavar(action)
    return names if action.nargs == 0 else f"{names} {_metavar(action)}"


def _help(action) -> str:
    text = action.help or ""
    return text % {"default": action.default} if "%" in text else text


def remarks(epilog: str) -> list[tuple[str, str]]:
    """("text" or "code", content) pieces of an epilog: indented lines are code."""
    pieces: list[tuple[str, str]] = []
    for line in epilog.splitlines():
        kind = "code" if line.startswith("  ") else "text"
        if not line.strip():
            pieces.append(("", ""))
        elif not re.fullmatch(r"examples?:", line):
            if pieces and pieces[-1][0] == kind:
                joiner = "\n" if kind == "code" else " "
                pieces[-1] = (kind, pieces[-1][1] + joiner + line.strip())
            else:
                pieces.append((kind, line.strip()))
    return [piece for piece in pieces if piece[0]]


def hints(operation: Operation) -> str:
    """The hints of an operation in words."""
    given = {
        "read-only": operation.read_only,
        "destructive": operation.destructive,
        "idempotent": operation.idempotent,
        "open world": operation.open_world,
    }
    return ", ".join(word for word, is_given in given.items() if is_given) or "none"


def argument_text(argument) -> str:
    """Type, need, description and choices of an operation's argument."""
    kind = {"strings": "array of strings"}.get(argument.kind, argument.kind)
    choices = f" One of: {', '.join(argument.choices)}." if argument.choices else ""
    about = f" {argument.description}." if argument.description else ""
    return f"{kind}, {'required' if argument.required else 'optional'}.{about}{choices}"


# Markdown


def markdown() -> str:
    """The whole of reference.md."""
    lines = [
        "# termsprawlctl: reference",
        "",
        "Made by `make docs` from the program itself; changes belong into its sources.",
        "",
        "    termsprawlctl COMMAND [ARGUMENTS] [--session PATH]",
        "",
        "`--session PATH` may stand anywhere in a command, before a `--`, and wins over",
        f"`{ENVIRONMENT_VARIABLE}`. Every command knows `--help` and `--version`.",
        "",
        "## Commands",
        "",
    ]
    for command in commands():
        lines += [f"###{'#' * command.name.count(' ')} {command.name}", "", _sentence(command.about), ""]
        lines += ["```", command.usage, "```", ""]
        if command.arguments:
            lines += ["| argument | meaning |", "|---|---|"]
            lines += [f"| `{_cell(form)}` | {_cell(_literal(text))} |" for form, text in command.arguments]
            lines.append("")
        for kind, text in remarks(command.epilog):
            lines += [*(["```sh", text, "```"] if kind == "code" else [_literal(text)]), ""]
    lines += ["## Operations", "", "What `call` and the MCP server of `mcp` offer. The app checks every argument.", ""]
    lines += [
        "`Returns` is the shape of the answer's `value`. A key that ends in `?` may be missing: the app leaves out",
        "what only the embedded host adds.",
        "",
    ]
    lines += _operations(extension=False)
    lines += [
        "## Operations of the embedded host",
        "",
        "Offered where the running host's `session_info` names them; the app does not know them.",
        "",
        *_operations(extension=True),
    ]
    for title, rows in (("Environment", ENVIRONMENT), ("Files", FILES), ("Exit status", STATUSES)):
        lines += [f"## {title}", "", "| | |", "|---|---|"]
        lines += [f"| `{name}` | {text} |" for name, text in rows]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _operations(*, extension: bool) -> list[str]:
    lines = []
    for operation in OPERATIONS.values():
        if operation.extension != extension:
            continue
        lines += [f"### {operation.name}", "", f"`{signature(operation)}`", "", _literal(operation.description), ""]
        if operation.arguments:
            lines += ["| argument | meaning |", "|---|---|"]
            lines += [f"| `{one.name}` | {_cell(_literal(argument_text(one)))} |" for one in operation.arguments]
            lines.append("")
        if operation.name in RESULTS:
            lines += [f"Returns: `{written(RESULTS[operation.name])}`", ""]
        lines += [f"Hints: {hints(operation)}.", ""]
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _literal(text: str) -> str:
    """Text whose <, * and _ Markdown would take for its own, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<*_\[\]])", r"\\\1", part) for part in parts)


# The manual page, in the macros of man(7)


def manual() -> str:
    """The whole of termsprawlctl.1."""
    lines = [
        '.\\" Made by `make docs` from the program itself.',
        f'.TH TERMSPRAWLCTL 1 "" "termsprawlctl {__version__}" "User Commands"',
        ".SH NAME",
        "termsprawlctl \\- talk to a running terminal app",
        ".SH SYNOPSIS",
        ".B termsprawlctl",
        ".I COMMAND",
        "[ARGUMENTS] [\\-\\-session PATH]",
        ".SH DESCRIPTION",
        "Opens, reads and drives the terminals of a running termsprawl app, or of the embedded host where the app is",
        "not; serves them, a shared TUI, or a coding agent to MCP clients.",
        ".PP",
        "\\-\\-session PATH may stand anywhere in a command and wins over the environment.",
        ".SH COMMANDS",
    ]
    for command in commands():
        lines += [
            f".SS {_roff(command.name)}",
            _roff(_sentence(command.about)),
            ".PP",
            f"\\fB{_roff(command.usage)}\\fR",
        ]
        for form, text in command.arguments:
            lines += [".TP", f"\\fB{_roff(form)}\\fR", _roff(text)]
        for kind, text in remarks(command.epilog):
            body = [_roff(line) for line in text.split("\n")]
            lines += [".PP", ".nf", ".RS 4", *body, ".RE", ".fi"] if kind == "code" else [".PP", *body]
    lines += [".SH OPERATIONS"]
    for operation in OPERATIONS.values():
        lines += [f".SS {_roff(operation.name)}"]
        if operation.extension:
            lines += ["(Only where the embedded host offers it.)"]
        lines += [_roff(operation.description)]
        for argument in operation.arguments:
            lines += [".TP", f"\\fI{_roff(argument.name)}\\fR", _roff(argument_text(argument))]
    for title, rows in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES), ("EXIT STATUS", STATUSES)):
        lines.append(f".SH {title}")
        for name, text in rows:
            lines += [".TP", f"\\fB{_roff(name)}\\fR", _roff(text)]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    # Without these the characters become typographic ones, which no shell takes.
    text = text.replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    text = "".join(character if character.isascii() else f"\\[u{ord(character):04X}]" for character in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> None:
    for name, text in (("reference.md", markdown()), ("termsprawlctl.1", manual())):
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
