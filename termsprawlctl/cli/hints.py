"""What may have been meant: the nearest word, and a hint on top of a refusal, never instead of it."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ARGUMENT = re.compile(r"Unknown argument: (\w+)")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`Did you mean ...?` with the nearest of the known words, or what begins like it; "" where none is near."""
    import difflib  # for those who mistype only

    words = list(known)
    lower = {one.lower(): one for one in words}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    # Half of a word is no mistake in spelling, but as clear.
    near = near or [one for one in lower if len(word) >= 3 and one.startswith(word.lower())][:2]
    return f"Did you mean {' or '.join(lower[one] for one in near)}?" if near else ""


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
