"""The operation table as a provider of MCP tools: each call goes to the app as it is.

Nothing of the app is kept between calls except which extensions the host offers, so a
session goes on when the app restarts.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from ..base import jsontext
from ..mcp.provider import Context, Provider, ProviderFault
from ..operations import guides, schema
from ..operations.table import OPERATIONS

# How long a question for the host's extensions may hold up tools/list: codex starts
# working after a second, without the tools of a server that has not listed them by then.
LIST_DEADLINE_S = 0.5
RETRY_S = 0.2
CHANGING_LIST_TTL_MS = 60_000

_IMPORTING = threading.Lock()

# The first bytes of pictures, as base64, and what they are; a picture whose type is
# wrong makes models' services refuse the whole conversation.
_SIGNATURES = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"))
_DEFAULT_TYPE = "image/png"  # what the app's screenshots are


class Bridge(Provider):
    """All operations of the session file at `session_path`.

    `wait_s`: for how many seconds the handshake tries again while the app cannot be reached.
    """

    name = "termsprawl"
    version = "1.0.0"
    ordered = True
    max_line_bytes = 262_144
    any_tool_name = True  # the app may know operations that this table does not
    original_frame_errors = True
    list_ttl_ms = CHANGING_LIST_TTL_MS
    list_scope = "private"

    def __init__(self, session_path: str, wait_s: float = 0.0) -> None:
        self._session_path = session_path
        self._wait_s = wait_s
        self._overview: str | None = None
        self._offered: frozenset | None = None  # names of operations; None while nobody has told
        self._told_at_s = 0.0

    def instructions(self) -> str:
        if self._overview is None:
            self._overview = guides.read("overview")
        return self._overview

    def prepare(self) -> None:
        self.instructions()
        _transport()

    def greet(self, context: Context) -> None:
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
        is_old = (time.monotonic() - self._told_at_s) * 1000 >= CHANGING_LIST_TTL_MS
        return self._offered is None or is_old

    def tools(self) -> list[dict]:
        if self.tools_block():
            self._learn(self._ask("session_info", {}, Context(), deadline_s=LIST_DEADLINE_S))
        offered = self._offered or ()
        return [schema.mcp_tool(one) for one in OPERATIONS.values() if not one.extension or one.name in offered]

    def find_tool(self, name: str) -> dict | None:
        operation = OPERATIONS.get(name)
        return None if operation is None else schema.mcp_tool(operation)

    def call(self, name: str, arguments: dict, context: Context) -> dict:
        result = self._ask(name, arguments, context)
        if name == "session_info":
            self._learn(result)
        return {"content": [_block(result)], "isError": not result["ok"]}

    def _ask(self, operation: str, args: dict, context: Context, **options) -> dict:
        try:
            return _transport().call(
                self._session_path,
                operation,
                args,
                connected=lambda sock: context.on_cancel(partial(_hang_up, sock)),
                **options,
            )
        finally:
            context.on_cancel(None)

    def _learn(self, result: dict) -> None:
        """Take from a session_info which operations this app offers; one that was not reached tells nothing."""
        if result["ok"]:
            value = result.get("value")
            names = value.get("operations") if isinstance(value, dict) else None
            known = names if isinstance(names, list) else ()
            self._offered = frozenset(name for name in known if isinstance(name, str))
            self._told_at_s = time.monotonic()


def _transport():
    """The module that calls the app, imported with the first call: tools/list does not need it."""
    # The handshake and a list may be the first at the same time. Python's own lock for each
    # module gives way where it suspects a deadlock, and lets the second see half of it (3.9 does).
    with _IMPORTING:
        from . import transport
    return transport


def _is_unavailable(result: dict) -> bool:
    return result["error"].startswith(_transport().UNAVAILABLE)


def _hang_up(sock) -> None:
    import socket

    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the app was faster


def _block(result: dict) -> dict:
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
