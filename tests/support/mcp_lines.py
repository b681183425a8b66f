"""Hypothesis strategies for what an MCP client may send: messages good, odd and broken, as lines."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from support import hostile
from support.jsonrpc_model import LEGACY, PREFIX, VERSION

VERSION_KEY, CAPABILITIES_KEY = PREFIX + "protocolVersion", PREFIX + "clientCapabilities"
METHODS = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen"]
NOTIFICATIONS = ["notifications/initialized", "notifications/cancelled", "notifications/progress"]
FOREIGN = ["logging/setLevel", "resources/list", "completion/complete", "rpc.discover", "", "__init__", "tools/call\n"]

# Few of them, so that ids meet each other and cancellations their calls.
common_ids = st.sampled_from([0, 1, "", "1", 1.0, -1, "a"])
ids = common_ids | st.sampled_from(["x" * 3000, "\ud800", "\u2028", 2**64, 0.1]) | hostile.json_values
versions = hostile.values_beside(VERSION, *LEGACY, "2024-11-04", "2099-01-01", "")
meta = hostile.objects_with(
    **{
        VERSION_KEY: hostile.values_beside(VERSION),
        CAPABILITIES_KEY: hostile.values_beside({}),
        "progressToken": hostile.values_beside(0, "", "t", True, 1.5),
    }
)
MODERN_META = {VERSION_KEY: VERSION, CAPABILITIES_KEY: {}}


def params(names: list[str]):
    """Parameters of any method, for a server whose tools have these names."""
    return (
        st.none()
        | hostile.json_values
        | hostile.objects_with(
            protocolVersion=versions,
            name=hostile.values_beside(*names),
            arguments=hostile.values_beside({}, None),
            cursor=hostile.values_beside(None),
            requestId=ids,
            _meta=meta | st.just(MODERN_META) | hostile.json_values,
        )
    )


def messages(names: list[str]):
    """JSON values for one line or a member of a batch, most of them objects that look like messages."""
    method = st.sampled_from(METHODS + NOTIFICATIONS) | hostile.values_beside(*FOREIGN)
    anything = hostile.objects_with(
        jsonrpc=hostile.values_beside("2.0"),
        id=ids,
        method=method,
        params=params(names),
        result=hostile.json_values,
        error=hostile.json_values,
    )
    good = st.builds(
        lambda number, method, params: {"jsonrpc": "2.0", "id": number, "method": method, "params": params},
        common_ids,
        st.sampled_from(METHODS),
        params(names),
    )
    cancelled = st.builds(
        lambda number: {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}, ids
    )
    negotiated = st.builds(
        lambda version: {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": version}},
        st.sampled_from(LEGACY),
    )
    return good | anything | cancelled | negotiated | hostile.json_values


def lines(names: list[str], cap: int):
    """One line, without its end and without any line end within."""
    message = messages(names)
    batches = st.lists(message, max_size=4) | st.sampled_from([[], [{}] * 101, [[]]])
    good = hostile.encoded(st.builds(hostile.dump, message | batches))
    repeated = hostile.object_texts(
        jsonrpc=st.just('"2.0"'),
        id=st.builds(json.dumps, ids),
        method=st.builds(json.dumps, st.sampled_from(METHODS)),
        params=st.builds(json.dumps, params(names)),
    )

    def padded(line: bytes, size: int) -> bytes:
        return line + b" " * (size - len(line))

    long = st.builds(padded, good, st.integers(cap - 1, cap + 2) | st.just(2 * cap + 7))
    wrapped = st.builds(
        lambda start, line: start + line, st.sampled_from([b"\xef\xbb\xbf", b" ", b"\0", b"\x1e"]), good
    )
    whole = good | hostile.encoded(repeated) | hostile.damaged(good) | hostile.json_bytes | long | wrapped
    return whole.map(lambda line: line.replace(b"\n", b" "))


def streams(names: list[str], cap: int):
    """Some lines with their ends; the last may be without one."""
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n"])
    pairs = st.lists(st.tuples(lines(names, cap), ends), max_size=8)
    body = pairs.map(lambda found: b"".join(line + end for line, end in found))
    return st.builds(bytes.__add__, body, st.just(b"") | lines(names, cap))
