"""What each operation does here: one handler each, bound to its declaration in the table."""

from __future__ import annotations

# Each binds its handlers when it is loaded.
from . import agents, artifacts, canvas, context, extensions, messaging, session, terminals  # noqa: F401
from .binding import NOT_OFFERED, Arguments, Caller, HostContext, ToolRefusal, all_bound

HANDLERS = all_bound()


def run(host: HostContext, caller: Caller, operation: str, args: Arguments) -> object:
    """Run a validated operation for a caller. Raises CtlError, OSError."""
    if operation in NOT_OFFERED:
        raise ToolRefusal("This host has no browser.", "session_info lists the operations that it offers.")
    return HANDLERS[operation](host, caller, args)
