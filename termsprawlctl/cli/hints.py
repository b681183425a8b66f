"""What may have been meant: the nearest word, and a hint on top of a refusal, never instead of it."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ARGUMENT = re.compile(r"Unknown argument: (\w+)")


def near_words(word: str, known: Iterable[str]) -> list[str]:
    """The nearest of the known words, or up to two that begin like it; none where none is near."""
    import difflib  # for those who mistype only

    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    # Half of a word is no mistake in spelling, but as clear.
    near = near or [one for one in lower if len(word) >= 3 and one.startswith(word.lower())][:2]
    return [lower[one] for one in near]


def suggestion(word: str, known: Iterable[str]) -> str:
    """`Did you mean ...?` with the near words; "" where none is near."""
    near = near_words(word, known)
    return f"Did you mean {' or '.join(near)}?" if near else ""


def near_command(word: str) -> str:
    """What somebody meant who gave this as a command: a command, a subcommand, or an operation."""
    from ..operations.table import OPERATIONS
    from .parser import COMMANDS, command_parser

    if word.lower() not in OPERATIONS and near_words(word, COMMANDS):
        return suggestion(word, COMMANDS)
    full = {operation: f"call {operation}" for operation in OPERATIONS}
    for command in COMMANDS:
        for action in command_parser(command).actions():
            if isinstance(action.choices, dict):
                full.update({name: f"{command} {name}" for name in action.choices if name not in full})
    near = [f"`termsprawlctl {full[name]}`" for name in near_words(word, full)]
    return f"Did you mean {' or '.join(near)}?" if near else ""


def hint(operation: str | None, error: str) -> str:
    """One line for the person who called, or "" where there is nothing to add."""
    from ..operations.table import OPERATIONS

    known = OPERATIONS.get(operation) if operation else None
    if error == "Unknown operation" and (known is None or known.extension):
        if known is not None:
            return f"{operation} is an operation of the embedded host, which this app does not have."
        near = suggestion(operation, OPERATIONS) if operation else "Name one."
        return f"{near} `termsprawlctl tools` lists the operations.".strip()
    match = _ARGUMENT.match(error)
    if match is None or known is None:
        return ""
    names = [argument.name for argument in known.arguments]
    takes = f"{operation} takes {', '.join(names)}." if names else f"{operation} takes no arguments."
    return f"{suggestion(match.group(1), names)} {takes}".strip()
