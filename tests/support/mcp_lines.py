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
common_ids = st.sampled_from([1, 1.0, "1", 0, ""])
odd_ids = st.sampled_from(["x" * 3000, "\ud800", "\u2028", 2**64, 0.1, -0.0, None, True, [], {}])
ids = hostile.mostly(common_ids, hostile.mostly(odd_ids, hostile.json_values), 2)
versions = hostile.values_beside(VERSION, *LEGACY, "2024-11-04", "2099-01-01", "")
MODERN_META = {VERSION_KEY: VERSION, CAPABILITIES_KEY: {}}
odd_meta = hostile.objects_with(
    **{
        VERSION_KEY: versions,
        CAPABILITIES_KEY: hostile.values_beside({}),
        "progressToken": hostile.values_beside(0, "", "t", True, 1.5),
    }
)
meta = st.sampled_from([None, MODERN_META, MODERN_META | {"progressToken": 0}])
any_meta = hostile.mostly(meta, odd_meta, 3)


def params(names: list[str]):
    """Parameters of any method, for a server whose tools have these names."""
    name, version = st.sampled_from(names), st.sampled_from([*LEGACY, None])
    good = st.builds(
        lambda name, version, meta: {"name": name, "protocolVersion": version, **({"_meta": meta} if meta else {})},
        name,
        version,
        meta,
    )
    odd = hostile.objects_with(
        protocolVersion=versions,
        name=hostile.values_beside(*names),
        arguments=hostile.values_beside({}, None),
        cursor=hostile.values_beside(None),
        requestId=ids,
        _meta=any_meta,
    )
    return hostile.mostly(good, hostile.mostly(odd, hostile.json_values))


def messages(names: list[str]):
    """JSON values for one line or a member of a batch, most of them objects that look like messages."""

    def request(number: object, method: str, params: object) -> dict:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def cancelling(number: object) -> dict:
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}

    good = st.builds(request, common_ids, st.sampled_from(METHODS), params(names))
    odd = hostile.objects_with(
        jsonrpc=hostile.values_beside("2.0"),
        id=ids,
        method=hostile.mostly(
            st.sampled_from(METHODS), st.sampled_from(NOTIFICATIONS) | hostile.values_beside(*FOREIGN)
        ),
        params=params(names),
    )
    answer = hostile.objects_with(id=ids, result=hostile.json_values, error=hostile.json_values)
    cancelled = st.builds(cancelling, ids)
    return st.one_of(
        good, good, good, odd, odd, cancelled, cancelled, answer, st.builds(list, st.just([])) | hostile.json_values
    )


def lines(names: list[str], cap: int):
    """One line, without its end and without any line end within."""
    message = messages(names)
    odd_batches = st.sampled_from([[], [{}] * 101, [[]], [{"id": 1, "method": "ping"}] * 100])
    batches = hostile.mostly(st.lists(message, min_size=1, max_size=3), odd_batches)
    good = hostile.encoded(st.builds(hostile.dump, hostile.mostly(message, batches)))
    repeated = hostile.object_texts(
        id=st.builds(json.dumps, ids),
        method=st.builds(json.dumps, st.sampled_from(METHODS)),
        params=st.builds(json.dumps, params(names)),
    )

    def padded(line: bytes, size: int) -> bytes:
        return line + b" " * (size - len(line))

    long = st.builds(padded, good, st.integers(cap - 1, cap + 2) | st.just(2 * cap + 7))
    wrapped = st.builds(bytes.__add__, st.sampled_from([b"\xef\xbb\xbf", b" ", b"\0", b"\x1e"]), good)
    odd = st.sampled_from([hostile.encoded(repeated), hostile.damaged(good), hostile.json_bytes, long, wrapped])
    whole = hostile.mostly(good, odd.flatmap(lambda strategy: strategy), 2)
    return whole.map(lambda line: line.replace(b"\n", b" "))


HANDSHAKE = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}\n'


def streams(names: list[str], cap: int):
    """Some lines with their ends, the last maybe without one; at times batches have been negotiated before."""
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n"])
    one, start = lines(names, cap), st.sampled_from([b"", HANDSHAKE])
    pairs = st.lists(st.tuples(one, ends), min_size=1, max_size=6)
    body = pairs.map(lambda found: b"".join(line + end for line, end in found))
    return st.builds(lambda *parts: b"".join(parts), start, body, hostile.mostly(st.just(b""), one))
