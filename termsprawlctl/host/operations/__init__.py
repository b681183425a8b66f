"""What each operation does here.

A handler is a function `(host, session, args) -> value` of the operation's name; its
arguments are validated, its project's turn is held. A CtlError is the tool's answer
"no", with a text for the agent.
"""

from __future__ import annotations

from ...operations.table import OPERATIONS
from . import agents, artifacts, canvas, context, extensions, messaging, session, terminals
from .nodes import ToolRefusal

_MODULES = (session, canvas, terminals, agents, messaging, context, artifacts, extensions)


def _handlers() -> dict:
    found = {name: getattr(module, name) for module in _MODULES for name in OPERATIONS if hasattr(module, name)}
    return {name: found[name] for name in OPERATIONS if name in found}


# name -> handler in the table's order. What stands in the table only is not supported yet.
HANDLERS = _handlers()


def run(host, caller, operation: str, args: dict) -> object:
    """Run a validated operation for a caller. Raises CtlError, OSError."""
    handler = HANDLERS.get(operation)
    if handler is None and operation.startswith("browser_"):
        raise ToolRefusal("This host has no browser.", "session_info lists the operations that it offers.")
    if handler is None:
        raise ToolRefusal(
            f"{operation} is not supported by this host yet.", "session_info lists the operations that it offers."
        )
    return handler(host, caller, args)
