"""A node's terminal over there, in the terminal that this runs in."""

from __future__ import annotations

import os

from ..base.errors import CtlError, UsageError
from ..base.layout import is_id
from ..base.processes import find_program
from .places import Place, plain_path
from .ssh import Connection


def attach(place: Place, node: str) -> None:
    """Become an ssh that runs `attach` there; returns never. Raises CtlError for what is wrong on this side."""
    if not is_id(node):
        raise UsageError(
            f"{node!r} is not a node id.", "A node id has letters, digits, - and _ only; canvas_list shows them."
        )
    if not (os.isatty(0) and os.isatty(1)):
        raise CtlError(
            "attach needs a terminal on standard input and output.",
            f"Run it at a shell, or open a window: termsprawlctl external {node}",
        )
    connection = Connection(place)
    if not connection.is_up():
        raise CtlError(f"{place.destination} is not connected.", f"Run: termsprawlctl reach {place.destination}")
    record = place.record()
    python, file, data = (plain_path(record.get(name)) for name in ("python", "file", "data"))
    words = [python, "-ISBXutf8", file, "attach", node, "--data", data]
    ssh = find_program("ssh") or "ssh"
    try:
        os.chdir(place.root)
        os.execv(ssh, [*connection.client("-t", "-q"), *words])  # noqa: S606 - an argv, no shell
    except OSError as error:
        raise CtlError(f"cannot run {ssh}: {error.strerror}.", "Install the OpenSSH client again.") from None
