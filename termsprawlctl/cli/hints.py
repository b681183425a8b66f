"""What may have been meant, once the app has refused a call: on top of its words, never instead of them."""

from __future__ import annotations

import re

from ..operations.table import OPERATIONS
from .suggest import suggestion

_ARGUMENT = re.compile(r"Unknown argument: (\w+)")


def hint(operation: str | None, error: str) -> str:
    """One line for the person who called, or "" where there is nothing to add."""
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
