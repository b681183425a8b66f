"""Types for annotations alone; nothing imports this at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional, Protocol

from ...mcp.provider import Question

# An object of JSON from outside: whatever its fields hold has to be looked at first.
Json = dict[str, Any]
# Hears of each step of a run, as a label.
Report = Callable[[str], None]
# Has a person choose one of the options, (value, title) each; None where nobody can be asked. Never blocks.
AskPerson = Callable[[str, "list[tuple[str, str]]"], Optional[Question]]


class HearError(Protocol):
    """Hears of a line on stderr, cleaned, and whether it is to be logged."""

    def __call__(self, line: str, *, log: bool) -> None: ...
