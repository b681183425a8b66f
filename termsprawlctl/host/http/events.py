"""What the audit log tells of a call: who, which operation, on which terminal, how it went."""

from __future__ import annotations

from ...operations.table import OPERATIONS
from ..operations import HANDLERS


def note_call(host, session, request: dict, value: object, duration_ms: int) -> None:
    """Write the events of a call that has ended; `value` is its answer, None when it was refused."""
    operation, args = request.get("operation"), request.get("args")
    if not isinstance(operation, str) or operation not in HANDLERS:
        operation = None  # whatever a client sends is no name of ours
    caller, project = session.node_id, session.project_id
    is_ok = value is not None
    node_id = args.get("nodeId") if isinstance(args, dict) else None
    made = value.get("nodeId") if isinstance(value, dict) else None
    if operation is not None and OPERATIONS[operation].creates_node and made and node_id is None:
        node_id = made
        host.audit.event("node-opened", project=project, node=made, caller=caller)
    host.audit.event(
        "call",
        project=project,
        caller=caller,
        operation=operation,
        # Only an answer tells that this was an id and not something else that looks like one.
        node=node_id if is_ok and made == node_id else _known(host, project, node_id),
        ok=is_ok,
        ms=duration_ms,
    )
    if operation == "terminal_close" and is_ok:
        host.audit.event("node-closed", project=project, node=node_id, caller=caller)


def _known(host, project: str, node_id: object) -> str | None:
    """A node id of the project that has a session; None for anything else."""
    for session in host.sessions.all() if node_id else ():
        if session.node_id == node_id and session.project_id == project:
            return session.node_id
    return None
