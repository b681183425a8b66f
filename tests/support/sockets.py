"""A socket module with another class of sockets, for a module that takes its sockets from _socket."""

from __future__ import annotations

import _socket
import types


def with_class(sockets: type) -> types.SimpleNamespace:
    return types.SimpleNamespace(**{**vars(_socket), "socket": sockets})
