"""What the revisions of MCP say, as data and pure functions: no I/O, no state.

Legacy revisions open with `initialize`; the modern one is stateless and marks every
request. The era is a property of each request, never of the connection: clients mix
both on one pipe while they find out what a server speaks.
"""

from __future__ import annotations

from ..base import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = PREFIX + "protocolVersion"
CAPABILITIES_KEY = PREFIX + "clientCapabilities"
SERVER_KEY = PREFIX + "serverInfo"
SUBSCRIPTION_KEY = PREFIX + "subscriptionId"


class Revision:
    """One row: `modern` ones are stateless; `batches`: an array of messages is one message.

    `asks`: how a choice is put to the user, "" where it cannot be.
    """

    __slots__ = ("asks", "batches", "modern", "name")

    def __init__(self, name: str, *, modern: bool = False, batches: bool = False, asks: str = "") -> None:
        self.name = name
        self.modern = modern
        self.batches = batches
        self.asks = asks


NAMED, TITLED = "enumNames", "oneOf"
REVISIONS = (
    Revision("2024-11-05"),
    Revision("2025-03-26", batches=True),
    Revision("2025-06-18", asks=NAMED),
    Revision("2025-11-25", asks=TITLED),
    Revision("2026-07-28", modern=True, asks=TITLED),
)
LEGACY = {revision.name: revision for revision in REVISIONS if not revision.modern}
MODERN = [revision.name for revision in REVISIONS if revision.modern]
OLDEST_LEGACY, *_, NEWEST_LEGACY = LEGACY.values()
# Methods that only the modern revision has: they mark a request as well as its _meta does.
MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
CAPABILITIES: Json = {"tools": {}}

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

NO_ID = object()  # an error whose request is unknown; the member is left out


class Refused(Exception):
    """A request that is answered with a JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def negotiate(requested: object) -> Revision:
    """The revision that `initialize` answers; `requested` is None where the client named none."""
    if requested is None:
        return OLDEST_LEGACY
    return LEGACY.get(requested, NEWEST_LEGACY) if isinstance(requested, str) else NEWEST_LEGACY


def is_modern(method: str, params: object) -> bool:
    """The era of one request."""
    if method in MODERN_ONLY:
        return True
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_modern(params: Json) -> None:
    """Raise Refused unless a modern request says its version and capabilities as it has to."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise Refused(INVALID_PARAMS, "params is missing _meta (object)")
    version = meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise Refused(INVALID_PARAMS, f"_meta is missing {VERSION_KEY} (string)")
    if version not in MODERN:
        data = {"supported": MODERN, "requested": version}
        raise Refused(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise Refused(INVALID_PARAMS, f"_meta is missing {CAPABILITIES_KEY} (object)")


def asks(revision: Revision | None, capabilities: object) -> str:
    """How a client of this revision and these capabilities is asked; "" where it cannot be."""
    form = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    # {} is what 2025-06-18 has, and means forms later, too.
    able = isinstance(form, dict) and (not form or "form" in form)
    return revision.asks if revision is not None and able else ""


def is_id(value: object) -> bool:
    """Whether a value may identify a request: a string or a number."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def request_id(head: bytes) -> object:
    """The id of the request that begins like this; None where it is not certain that it is one, and which."""
    members = jsontext.first_members(head)
    found = members.get("id")
    return found if is_id(found) and isinstance(members.get("method"), str) else None


def id_key(value: object) -> tuple[type, object]:
    """An id as a dictionary key: 1, 1.0 and "1" are three ids."""
    return (type(value), value)


def progress_token(params: Json) -> object:
    """The token that asks for progress (string or integer, 0 and "" count), else None."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None


def modern_result(result: Json, server_info: Json) -> Json:
    """A result with what the modern revision adds to each."""
    meta = result.get("_meta")
    meta = {**meta, SERVER_KEY: server_info} if isinstance(meta, dict) else {SERVER_KEY: server_info}
    return {"resultType": "complete", **result, "_meta": meta}


def response(request_id: object, result: Json) -> Json:
    """A JSON-RPC response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error(request_id: object, code: int, message: str, data: object = None) -> Json:
    """A JSON-RPC error response; with NO_ID it has no id member."""
    body: Json = {"jsonrpc": "2.0"}
    if request_id is not NO_ID:
        body["id"] = request_id
    body["error"] = {"code": code, "message": message}
    if data is not None:
        body["error"]["data"] = data
    return body


def request(request_id: str, method: str, params: Json) -> Json:
    """A JSON-RPC request of ours."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: Json) -> Json:
    """A JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: object) -> bytes:
    """Compact UTF-8 on one line, without its end.

    Line separators that some readers split at are escaped, lone surrogates replaced.
    Raises ValueError or TypeError for what JSON cannot hold.
    """
    text = jsontext.compact(message)
    if "\u2028" in text or "\u2029" in text:
        # Both can only stand inside strings.
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return jsontext.encode(text)
