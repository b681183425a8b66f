"""The command line: which commands there are, and the way from argv to an exit status.

Nothing of a command is imported before it is chosen: start-up time is a feature.
"""

from __future__ import annotations

import gc
import importlib
import sys

from .. import __version__
from ..base import console
from ..base.errors import FAILED, INTERRUPTED, OK, CommandLineError, CtlError, words_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .arguments import Parser

PROGRAM = "termsprawlctl"

# name: (form in the usage line, one line of help). The module is commands/<name>.py.
COMMANDS = {
    "doctor": ("doctor", "check the connection to the app (session_info)"),
    "call": ("call OPERATION [JSON_ARGS]", "run one operation and print its result"),
    "run": ("run [NODE] -- COMMAND", "run a command in a terminal, with its output and exit status"),
    "wait": ("wait NODE", "wait until a terminal shows a text, is silent, or its command ends"),
    "mcp": ("mcp", "serve the operations to an MCP client over stdio"),
    "tools": ("tools [OPERATION]", "list the operations and their arguments"),
    "guide": ("guide [TOPIC]", "print a guide for agents"),
    "map": ("map", "draw the canvas: boxes, what runs in them, links"),
    "external": ("external NODE_ID", "show a node's terminal in a window of its own"),
    "attach": ("attach NODE_ID", "show a node's terminal in this terminal"),
    "tui": ("tui ACTION", "share a live tmux client with an agent, or use a share"),
    "launch": ("launch AGENT", "start a coding agent in a terminal of the host"),
    "agent": ("agent run AGENT PROMPT", "give a task to a coding agent, show its steps, print its answer"),
    "install": ("install CLIENT", "add an MCP server to an MCP client's configuration"),
    "uninstall": ("uninstall CLIENT", "remove an MCP server from an MCP client's configuration"),
    "completion": ("completion SHELL", "print a completion script for bash, zsh or fish"),
    "self": ("self check FILE", "compare this file with a release's checksum"),
    "host": ("host ACTION", "run a headless host when the app is not available"),
    "reach": ("reach DESTINATION", "use a host on another machine, over ssh"),
    "send": ("send --via COMMAND", "copy this file into another machine or container"),
}

# Those that talk to the app of a session; the others take --session as well and have no use for it.
OF_A_SESSION = ("doctor", "call", "run", "wait", "mcp", "map", "external", "attach")

# Over before there is garbage worth collecting.
QUICK = ("doctor", "call", "tools", "guide")

SESSION_HELP = "the session file; overrides TERMSPRAWL_SESSION_FILE"

# Asked for by people who know them from elsewhere; neither has a module.
HELP, VERSION = "help", "version"
VERSION_OPTIONS = ("--version", "-V")

# The first line is the contract's; agents look for it.
USAGE_LINE = f"Usage: {PROGRAM} doctor | call OPERATION [JSON_ARGS] | mcp | ..."

EPILOG = """\
examples:
  termsprawlctl doctor
  termsprawlctl call terminal_read '{"nodeId": "n-1"}'
  termsprawlctl call terminal_submit nodeId=n-1 command='make test'
  eval "$(termsprawlctl host start)"

`termsprawlctl COMMAND --help` explains a command. --session PATH may stand anywhere and
overrides TERMSPRAWL_SESSION_FILE; without both, a running host's session is used.
exit status: 0 success, 1 refused or failed, 2 nothing was called, 130 interrupted
"""


VERSION_TEXT = f"{PROGRAM} {__version__}"


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit status and never raises."""
    console.reserve_standard_descriptors()
    try:
        return _run([console.argument_text(word) for word in (sys.argv[1:] if argv is None else argv)])
    except CtlError as error:
        console.err(f"{PROGRAM}: {error}" if error.named else str(error))
        return error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as fault:  # noqa: BLE001 - a traceback helps no user, and may quote a secret
        if isinstance(fault.__context__, KeyboardInterrupt):
            return INTERRUPTED  # argparse trips over its own clean-up when it is interrupted
        console.err(f"{PROGRAM}: {words_for(fault)}")
        return FAILED


def command_parser(name: str) -> Parser:
    """The parser of one command, as its module declares it."""
    from .arguments import Parser

    parser = Parser(prog=f"{PROGRAM} {name}", description=COMMANDS[name][1][:1].upper() + COMMANDS[name][1][1:] + ".")
    _module(name).configure(parser)
    if name in OF_A_SESSION:
        # For the help and for completion: take_session() has it before argparse.
        parser.add_argument("--session", metavar="PATH", help=SESSION_HELP)
    return parser


class Plain:
    """What a command's plain() makes of its words, as argparse's namespace would hold it."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


def _run(words: list[str]) -> int:
    words, session = take_session(words)
    if not words or words[0] not in COMMANDS:
        return _without_command(words)
    name = words[0]
    if name not in QUICK:
        gc.enable()
    # To load argparse costs a bare start of Python, so a command understands by itself what it mostly gets.
    plain = getattr(_module(name), "plain", None)
    values = plain(words[1:]) if plain else None
    if values is not None:
        return _module(name).run(Plain(**values, session=session))
    from .arguments import Exit

    parser = command_parser(name)
    # Intermixed: options may stand between the words of a command, as people type them.
    parse = parser.parse_args if parser.has_commands else parser.parse_intermixed_args
    try:
        args = parse(words[1:])
    except Exit as wish:
        return wish.status
    args.session = session
    return _module(name).run(args)


def take_session(words: list[str]) -> tuple[list[str], str | None]:
    """Split `--session PATH` off, wherever it stands before a `--`; the last one wins.

    Raises CommandLineError when the path is missing.
    """
    rest: list[str] = []
    session = None
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            rest += words[position:]
            break
        if word == "--session":
            if position + 1 == len(words):
                raise CommandLineError(f"{usage()}\n{PROGRAM}: --session needs a path.", "Name a session file.")
            session = words[position + 1]
            position += 1
        elif word.startswith("--session="):
            session = word[len("--session=") :]
        else:
            rest.append(word)
        position += 1
    return rest, session


def usage() -> str:
    """What is printed on top of a mistake in the first words: each command, one a line."""
    return f"{USAGE_LINE}\n\n{_table(form for form, _ in COMMANDS.values())}\n"


def _table(first_column: Iterable[str]) -> str:
    names = list(first_column)
    width = max(map(len, names)) + 2
    return "\n".join(f"  {name:<{width}}{summary}" for name, (_, summary) in zip(names, COMMANDS.values()))


def _without_command(words: list[str]) -> int:
    if words and words[0] in (VERSION, *VERSION_OPTIONS):
        console.out(f"{VERSION_TEXT}\n")
        if "--verbose" in words[1:]:
            from .carried import carried

            console.out(carried())
        return OK
    if words and words[0] in (HELP, "-h", "--help"):
        return _help(words[1:])
    what = f"unknown command {words[0]!r}" if words else "a command is missing"
    near = _near_command(words[0]) if words else ""
    raise CommandLineError(f"{usage()}\n{PROGRAM}: {what}.", f"{near} See {PROGRAM} --help.".strip())


def _help(words: list[str]) -> int:
    """`help`, `help COMMAND` and `help COMMAND ACTION`: as `--help` behind the same words."""
    if words and words[0] in COMMANDS:
        return _run([*words, "--help"])
    if words:
        return _without_command([word for word in words if word != HELP])
    from .arguments import Parser

    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [ARGUMENTS] [--session PATH]",
        description=f"Talk to a running terminal app through one file.\n\ncommands:\n{_table(COMMANDS)}",
        epilog=EPILOG,
    )
    console.out(parser.format_help())
    return OK


def _near_command(word: str) -> str:
    from .hints import near_command

    return near_command(word)


def _module(name: str):
    return importlib.import_module(f".commands.{name}", __package__)
