"""The words that may stand next on a command line.

Walks the same argparse tree that parses the words, so that the two cannot drift. Pure,
but for what `Values` asks the running session.
"""

from __future__ import annotations

import argparse

from .values import FILES, FOLDERS, Answer, Value, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = Answer([], "")
_SESSION = Value("--session", "the session file; wins over TERMSPRAWL_SESSION_FILE")

# What an argument takes, by the name that its help gives it.
_BY_METAVAR: dict[str, Callable[[Values], list[Value]]] = {
    "OPERATION": Values.operations,
    "NODE_ID": Values.terminals,
    "FROM": Values.nodes,
    "TO": Values.nodes,
    "TOPIC": Values.topics,
}
_PATHS = {"FILE": FILES, "PATH": FILES, "DIR": FOLDERS, "LOG": FILES}


class Tree:
    """The commands: `commands` maps names to one line of help, `parser_of(name)` gives a cli.Parser."""

    def __init__(self, commands: dict[str, str], parser_of) -> None:
        self.commands = commands
        self.parser_of = parser_of


def candidates(words: list[str], tree: Tree, values: Values) -> Answer:
    """What may stand in place of the last word, which is being typed (perhaps ""), after the others."""
    *before, current = words or [""]
    before, path_is_next = _without_session(before, values)
    if path_is_next:
        return Answer([], FILES)
    if not before:
        options = [Value("--help", "what there is"), Value("--version", "print the version")]
        named = [Value(name, summary) for name, summary in tree.commands.items()]
        return _matching(Answer(options if current.startswith("-") else named, ""), current)
    if before[0] not in tree.commands:
        return NOTHING
    return _matching(_Walk(tree.parser_of(before[0]), before[0], values).next(before[1:], current), current)


def _without_session(words: list[str], values: Values) -> tuple[list[str], bool]:
    """(the words without `--session PATH`, whether PATH is what comes next)."""
    rest: list[str] = []
    position = 0
    while position < len(words) and words[position] != "--":
        if words[position] == "--session":
            if position + 1 == len(words):
                return rest, True
            values.session = words[position + 1]
            position += 1
        elif words[position].startswith("--session="):
            values.session = words[position].partition("=")[2]
        else:
            rest.append(words[position])
        position += 1
    return rest + words[position:], False


def _matching(answer: Answer, current: str) -> Answer:
    return Answer([value for value in answer.values if value.word.startswith(current)], answer.files)


class _Walk:
    """Through the words of one command, up to the one that is being typed."""

    def __init__(self, parser, command: str, values: Values) -> None:
        self._command = command
        self._values = values
        self._current = ""
        self._enter(parser)

    def _enter(self, parser) -> None:
        actions = parser.actions()
        self._passes_on = parser.passes_on
        self._options = {name: action for action in actions for name in action.option_strings}
        self._positionals = [action for action in actions if not action.option_strings]
        self._given: list[str] = []  # the positional words so far
        self._used: set = set()

    def next(self, words: list[str], current: str) -> Answer:
        """What may come after the words."""
        self._current = current
        waiting = None  # the option whose value comes next
        for word in words:
            if waiting is not None:
                waiting = None
            elif word == "--" and self._passes_on:
                return Answer([], FILES)  # another program's words
            elif word.startswith("-") and word.partition("=")[0] in self._options:
                waiting = self._option(word)
            elif not word.startswith("-") or word == "-":
                self._positional(word)
        if waiting is not None:
            return self._of(waiting)
        if current.startswith("--") and "=" in current:
            name = current.partition("=")[0]
            answer = self._of(self._options[name]) if name in self._options else NOTHING
            return Answer([Value(f"{name}={one.word}", one.about) for one in answer.values], answer.files)
        if current.startswith("-"):
            return Answer(self._open_options(), "")
        action = self._next_positional()
        return Answer(self._open_options(), "") if action is None else self._of(action)

    def _option(self, word: str):
        """Note an option; returns its action when its value is a word of its own."""
        name, equals, _ = word.partition("=")
        action = self._options[name]
        self._used.add(action)
        return None if equals or action.nargs == 0 else action

    def _positional(self, word: str) -> None:
        action = self._next_positional()
        if action is not None and _has_subcommands(action) and word in action.choices:
            self._enter(action.choices[word])
        else:
            self._given.append(word)

    def _next_positional(self):
        position = min(len(self._given), len(self._positionals) - 1)
        if position < 0:
            return None
        action = self._positionals[position]
        # Only the last may take any number of words.
        return action if position == len(self._given) or action.nargs in ("*", "+") else None

    def _open_options(self) -> list[Value]:
        """The options that may still be given, each by its longest name."""
        found = []
        for action in dict.fromkeys(self._options.values()):
            repeatable = isinstance(action.default, list)
            if (action not in self._used or repeatable) and not _is_hidden(action):
                found.append(Value(max(action.option_strings, key=len), action.help or ""))
        # Every command takes it; those that need it declare it.
        return found if any(one.word == _SESSION.word for one in found) else [*found, _SESSION]

    def _of(self, action) -> Answer:
        """What an option or a positional takes."""
        if _has_subcommands(action):
            # argparse keeps the helps apart from the parsers, and none for those that are not for people.
            shown = action._choices_actions  # noqa: SLF001
            return Answer([Value(one.dest, one.help or "") for one in shown], "")
        words = getattr(action, "words", None)
        if words is not None:
            return Answer([Value(word, "") for word in words()], "")
        if action.choices is not None:
            return Answer([Value(str(word), "") for word in action.choices], "")
        if self._command == "call" and action.dest == "arguments":
            return self._values.fields(self._given, self._current)
        known = _BY_METAVAR.get(action.metavar)
        if known is not None:
            return Answer(known(self._values), "")
        return Answer([], _PATHS.get(action.metavar, ""))


def _has_subcommands(action) -> bool:
    return isinstance(action.choices, dict)


def _is_hidden(action) -> bool:
    return action.help == argparse.SUPPRESS
