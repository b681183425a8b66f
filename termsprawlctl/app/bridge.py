"""The operation table as a provider of MCP tools: each call goes to the app as it is.

Nothing of the app is kept between calls except which extensions the host offers, so a
session goes on when the app restarts.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial

from ..base import jsontext
from ..base.layout import DataPaths
from ..mcp.options import Options
from ..mcp.provider import Context, Provider, ProviderFault, Turn
from ..operations import guides, schema
from ..operations.arguments import coerced, explained
from ..operations.table import AT_ONCE, IN_TURN, OPERATIONS, REACHING_IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..operations.table import Operation

    Json = dict[str, Any]

# How long a question for the host's extensions may hold up tools/list: codex starts
# working after a second, without the tools of a server that has not listed them by then.
LIST_DEADLINE_S = 0.5
RETRY_S = 0.2
LIST_TTL_MS = 60_000
_ALL = "all calls"  # a key for one line of all

_IMPORTING = threading.Lock()

# The first bytes of pictures, as base64, and what they are; a picture whose type is
# wrong makes models' services refuse the whole conversation.
_SIGNATURES = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"))
_DEFAULT_TYPE = "image/png"  # what the app's screenshots are


OPTIONS = Options(
    max_line_bytes=262_144,
    # Calls wait for terminals, up to half a minute each; what reaches in finds a thread all the same.
    max_running=128,
    any_tool_name=True,  # the app may know operations that this table does not
    original_frame_errors=True,
    list_ttl_ms=LIST_TTL_MS,
    list_is_private=True,
    initialize_waits=True,
)


class Bridge(Provider):
    """All operations of the session file at `session_path`; to be served with OPTIONS.

    `wait_s`: for how many seconds the handshake tries again while the app cannot be reached.
    """

    name = "termsprawl"

    def __init__(self, session_path: str, wait_s: float = 0.0) -> None:
        self._session_path = session_path
        self._wait_s = wait_s
        self._offered: frozenset[str] | None = None  # names of operations; None while unknown
        self._learned_at_s = 0.0

    def instructions(self) -> str:
        return guides.instructions(extended=self._is_embedded_host())

    def prepare(self) -> None:
        self.instructions()
        _transport()

    def on_initialize(self, context: Context) -> None:
        end_s = time.monotonic() + self._wait_s
        while True:
            result = self._ask("session_info", {}, context)
            if result["ok"]:
                self._learn(result)
                return
            # Only an app that is away may come back; its "no" is final.
            if not _is_unavailable(result) or time.monotonic() >= end_s or context.last_try.wait(RETRY_S):
                raise ProviderFault(result["error"])

    def tools_block(self) -> bool:
        # Whoever caches the list asks again after this time, and then wants to hear the news.
        is_old = (time.monotonic() - self._learned_at_s) * 1000 >= LIST_TTL_MS
        return self._offered is None or is_old

    def tools(self) -> list[Json]:
        if self.tools_block():
            self._learn(self._ask("session_info", {}, Context(), deadline_s=LIST_DEADLINE_S))
        listed = [one for one in OPERATIONS.values() if self._is_listed(one)]
        extended = any(one.extension for one in listed)
        return [schema.mcp_tool(one, extended=extended) for one in listed]

    def find_tool(self, name: str) -> Json | None:
        operation = OPERATIONS.get(name)
        return None if operation is None else schema.mcp_tool(operation)

    def turn(self, name: str, arguments: Json) -> Turn | None:
        if not self._is_embedded_host():
            return Turn(_ALL)  # the app is promised the order of arrival
        operation, node_id = OPERATIONS.get(name), arguments.get("nodeId")
        if operation is None or operation.order == AT_ONCE or not isinstance(node_id, str):
            return None
        return Turn(node_id, reaches_in=operation.order == REACHING_IN)

    def call(self, name: str, arguments: Json, context: Context) -> Json:
        operation = OPERATIONS.get(name)
        if operation is not None:
            arguments = coerced(operation, arguments)
        waits = operation is not None and operation.order == IN_TURN and self._is_embedded_host()
        result = self._ask(name, arguments, context, begun=context.begun if waits else None)
        if name == "session_info":
            self._learn(result)
        if operation is not None and not result["ok"]:
            result = {**result, "error": explained(operation, arguments, result["error"])}
        return {"content": [_block(result)], "isError": not result["ok"]}

    def _ask(
        self,
        operation: str,
        args: Json,
        context: Context,
        *,
        deadline_s: float | None = None,
        begun: Callable[[], None] | None = None,
    ) -> Json:
        transport = _transport()
        try:
            result: Json = transport.call(
                self._session_path,
                operation,
                args,
                deadline_s=transport.DEADLINE_S if deadline_s is None else deadline_s,
                connected=lambda sock: context.on_cancel(partial(_hang_up, sock)),
                begun=begun,
            )
            return result
        finally:
            context.on_cancel(None)

    def _learn(self, result: Json) -> None:
        """Take from a session_info which operations this app offers; one that was not reached says nothing."""
        if result["ok"]:
            value = result.get("value")
            names = value.get("operations") if isinstance(value, dict) else None
            known = names if isinstance(names, list) else ()
            self._offered = frozenset(name for name in known if isinstance(name, str))
            self._learned_at_s = time.monotonic()

    def _is_listed(self, operation: Operation) -> bool:
        """What an embedded host offers, and the same before that is known; of the app, all that it may offer."""
        if not self._is_embedded_host():
            return not operation.extension
        return not operation.app_only if self._offered is None else operation.name in self._offered

    def _is_embedded_host(self) -> bool:
        """Whether extensions are offered; by what a host leaves in its data directory while that is unknown."""
        if self._offered is not None:
            return any(name in self._offered for name, one in OPERATIONS.items() if one.extension)
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(self._session_path))))
        return os.path.exists(DataPaths(root).flock)


def _transport() -> ModuleType:
    """The module that calls the app, imported with the first call: tools/list does not need it."""
    # The handshake and a list may be the first at the same time. Python's own lock for each
    # module gives way where it suspects a deadlock, and lets the second see half of it (3.9 does).
    with _IMPORTING:
        from . import transport
    return transport


def _is_unavailable(result: Json) -> bool:
    return str(result["error"]).startswith(_transport().UNAVAILABLE)


def _hang_up(sock: socket.socket) -> None:
    from socket import SHUT_RDWR

    try:
        sock.shutdown(SHUT_RDWR)
    except OSError:
        return  # the app was faster


def _block(result: Json) -> Json:
    """The one content block of a ToolResult: a picture, or all of it as text."""
    value = result.get("value") if result["ok"] else None
    image = value.get("image") if isinstance(value, dict) else None
    if isinstance(image, str) and image and _is_base64(image):
        return {"type": "image", "data": image, "mimeType": _image_type(image)}
    return {"type": "text", "text": jsontext.compact(result)}


def _is_base64(text: str) -> bool:
    import binascii

    try:
        # Longer than needed for nothing: without strict mode (Python 3.11) stray characters are skipped.
        return len(binascii.a2b_base64(text)) == len(text) // 4 * 3 - text[-2:].count("=") and len(text) % 4 == 0
    except ValueError:
        return False


def _image_type(image: str) -> str:
    import binascii

    for signature, kind in _SIGNATURES:
        if image.startswith(signature):
            return kind
    head = binascii.a2b_base64(image[:16])
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else _DEFAULT_TYPE
