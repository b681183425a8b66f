"""Which function does what: each operation's handler is bound to its declaration, and nothing else is offered.

A handler is a function `(host, caller, args) -> value`; its arguments are validated, its
project's turn is held. A CtlError is the tool's answer "no", with a text for the agent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from ...base.errors import CtlError
from ...base.layout import DataPaths
from ...base.tmux import Tmux
from ...operations.table import OPERATIONS
from ..messaging.tasks import TaskStore
from ..registry.projects import ProjectStore
from ..registry.sessions import Session, SessionStore
from ..terminals.nodes import Terminals
from ..terminals.panes import Panes
from ..terminals.shells.commands import Commands
from ..terminals.streams import Streams
from .receipts import Receipts


class Encoded:
    """A value that is JSON already, in UTF-8: what is made once and answered often."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


Caller = Session
Arguments = dict[str, Any]


class HostContext(Protocol):
    """What the handlers work with."""

    paths: DataPaths
    instance_id: str
    operations: tuple[str, ...]
    overview: str
    sessions: SessionStore
    projects: ProjectStore
    tasks: TaskStore
    tmux: Tmux
    terminals: Terminals
    panes: Panes
    streams: Streams
    commands: Commands
    receipts: Receipts
    stopping: threading.Event

    def preferences(self) -> dict[str, Any]:
        """The user's preferences file; {} where there is none. Raises CtlError when it is not JSON."""

    def prepare_node(self, node_id: str, project: str) -> dict[str, str]:
        """Write what a node is launched with; returns its environment: paths and ids, never the token."""

    def forget_node(self, node_id: str, project: str) -> None:
        """Revoke the token of a project's node and remove what it was launched with."""

    def ended_nodes(self) -> frozenset[str]:
        """The nodes whose terminals are known to have ended, without a look at them."""

    def log(self, text: str) -> None:
        """One line in the log; never a payload or a token."""


Handler = Callable[[HostContext, Caller, Arguments], object]


class ToolRefusal(CtlError):
    """The operation is understood and refused; the text is for the agent."""


# What the table has and this host has not: it has no browser.
NOT_OFFERED = frozenset(name for name, operation in OPERATIONS.items() if operation.guide == "browser")
_bound: dict[str, Handler] = {}


def handles(name: str) -> Callable[[Handler], Handler]:
    """Bind a function to the operation of this name. Raises ValueError where there is none, or it has one."""

    def bind(handler: Handler) -> Handler:
        if name not in OPERATIONS or name in NOT_OFFERED or name in _bound:
            raise ValueError(f"{name} is no operation of this host, or has a handler already")
        _bound[name] = handler
        return handler

    return bind


def all_bound() -> dict[str, Handler]:
    """Name to handler in the table's order. Raises ValueError for an operation without a handler."""
    missing = [name for name in OPERATIONS if name not in _bound and name not in NOT_OFFERED]
    if missing:
        raise ValueError(f"no handler for {', '.join(missing)}")
    return {name: _bound[name] for name in OPERATIONS if name in _bound}
