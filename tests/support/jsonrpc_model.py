"""What a client may expect of any lines that it sends: a second reading of the rules of the protocol.

Written from the rules and not from the server, and slow where that is plainer.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter

PREFIX = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
BATCHES = "2025-03-26"
LEGACY = ("2024-11-05", BATCHES, "2025-06-18", "2025-11-25")
MAX_DEPTH = 500
MAX_DIGITS = 1000
MAX_BATCH = 100
RESULT = 0  # in the place of an error code
INTERNAL_ERROR = -32603
HEAD_BYTES = 4096
NO_ID = object()


class Rules:
    """How one server differs from others.

    `cap` is in bytes, `tools` are names (None: any goes); `any_arguments`: not only objects;
    `original`: errors of frames as the session bridge's original answers them.
    """

    def __init__(self, cap: int, tools=None, *, any_arguments: bool = False, original: bool = False) -> None:
        self.cap = cap
        self.tools = tools
        self.any_arguments = any_arguments
        self.original = original


class Due:
    """One answer: to which id (or NO_ID), which codes are right (RESULT among them), whether it may stay away."""

    def __init__(self, request_id: object, codes: set[int]) -> None:
        self.id = request_id
        self.key = None if request_id is NO_ID else id_key(request_id)
        self.codes = codes
        self.optional = False

    def __repr__(self) -> str:
        return f"{'maybe ' if self.optional else ''}{self.key} {sorted(self.codes)}"


class Model:
    """Takes the same lines as a server; `due` are single answers, `batches` lists of answers that come in one array.

    `subscriptions` are answers that come at the end of the input. A call that a cancellation
    may have met in time is optional. `greets`: whether a handshake can fail, and then settles nothing.
    """

    def __init__(self, rules: Rules, *, greets_well: bool = True) -> None:
        self.rules = rules
        self.due: list[Due] = []
        self.batches: list[list[Due]] = []
        self.subscriptions: list[Due] = []
        self.acknowledged: Counter = Counter()
        self.handshakes = 0
        self._greets_well = greets_well
        self._batches_allowed = False

    def start_anew(self) -> None:
        """Everything has been answered; what was negotiated stays."""
        self.due, self.batches, self.subscriptions, self.acknowledged = [], [], [], Counter()

    def feed(self, data: bytes) -> None:
        """A whole stream, to its end."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self.take(line)
        if rest:
            self.take(rest)

    def take(self, line: bytes) -> None:
        line = line[:-1] if line.endswith(b"\r") else line
        if len(line) > self.rules.cap:
            request_id = NO_ID if self.rules.original else _id_before_the_long_part(line[:HEAD_BYTES])
            self.due.append(Due(request_id, {-32603 if self.rules.original else -32600}))
            return
        if not line.removeprefix(b"\xef\xbb\xbf").strip():
            return
        try:
            message = strict(line)
        except ValueError:
            self._complaint(-32700)
            return
        if isinstance(message, dict):
            self.due += self._message(message, in_batch=False)
        elif isinstance(message, list) and self._batches_allowed:
            if len(message) > MAX_BATCH or not message:
                self.due.append(Due(NO_ID, {-32600}))
                return
            answers: list[Due] = []
            self.batches.append(answers)  # at once, for a member may cancel another
            for member in message:
                answers += self._member(member)
            if not answers:
                self.batches.remove(answers)
        else:
            self._neither(message)

    def _neither(self, message: object) -> None:
        if isinstance(message, list):
            self.due.append(Due(NO_ID, {-32600}))
        elif not self.rules.original or message is None:
            self._complaint(-32600)

    def _complaint(self, code: int) -> None:
        self.due.append(Due(NO_ID, {-32603 if self.rules.original else code}))

    def _member(self, member: object) -> list[Due]:
        return self._message(member, in_batch=True) if isinstance(member, dict) else [Due(NO_ID, {-32600})]

    def _message(self, message: dict, *, in_batch: bool) -> list[Due]:
        method, params = message.get("method"), message.get("params")
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(params, dict) and is_id(params.get("requestId")):
                self._cancel(params["requestId"])
            return []
        if "method" not in message and ("result" in message or "error" in message):
            return []
        if not is_id(message["id"]):
            return [Due(NO_ID, {-32600})]
        due = Due(message["id"], self._codes(method, {} if params is None else params, in_batch))
        if method == "subscriptions/listen" and RESULT in due.codes:
            self.subscriptions.append(due)
            self.acknowledged[due.key] += 1
            return []
        if method == "initialize" and due.codes == {RESULT}:
            self.handshakes += 1
            if self._greets_well:
                self._batches_allowed = (params or {}).get("protocolVersion") == BATCHES
            else:
                due.codes = {-32603}
        return [due]

    def _cancel(self, request_id: object) -> None:
        def is_meant(due: Due) -> bool:
            return type(due.id) is type(request_id) and due.id == request_id

        self.subscriptions = [due for due in self.subscriptions if not is_meant(due)]
        for due in (*self.due, *(due for batch in self.batches for due in batch)):
            # An error of the protocol is said at once; nothing else is certain to have been.
            due.optional = due.optional or (is_meant(due) and RESULT in due.codes)

    def _codes(self, method: object, params: object, in_batch: bool) -> set[int]:
        if not isinstance(method, str):
            return {-32600}
        modern_only = ("server/discover", "subscriptions/listen")
        meta = params.get("_meta") if isinstance(params, dict) else None
        modern = method in modern_only or (isinstance(meta, dict) and PREFIX + "protocolVersion" in meta)
        known = modern_only if modern else ("initialize", "ping")
        unknown = set() if method in (*known, "tools/list", "tools/call") else {-32601}
        if not isinstance(params, dict):
            return {-32602, *unknown}
        if modern:
            version = meta.get(PREFIX + "protocolVersion") if isinstance(meta, dict) else None
            if isinstance(version, str) and version != VERSION:
                return {-32022}
            if not isinstance(version, str) or not isinstance(meta.get(PREFIX + "clientCapabilities"), dict):
                return {-32602}
        if unknown:
            return unknown
        if in_batch and method in ("initialize", "subscriptions/listen"):
            return {-32600}
        if method == "tools/list" and params.get("cursor") is not None:
            return {-32602}
        return self._codes_of_call(params) if method == "tools/call" else {RESULT}

    def _codes_of_call(self, params: dict) -> set[int]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or (self.rules.tools is not None and name not in self.rules.tools):
            return {-32602}
        if not (arguments is None or isinstance(arguments, dict) or self.rules.any_arguments):
            return {-32602}
        return {RESULT}


def strict(line: bytes) -> object:
    """The JSON value of a line; ValueError where there is none, or one beyond the bounds."""

    def refuse(_text):
        raise ValueError("not JSON")

    def integer(text):
        return int(text) if len(text) <= MAX_DIGITS else refuse(text)

    def real(text):
        return refuse(text) if math.isinf(float(text)) else float(text)

    text = line.decode("utf-8").removeprefix("\ufeff")
    try:
        value = json.loads(text, parse_constant=refuse, parse_int=integer, parse_float=real)
    except RecursionError:
        raise ValueError("too deep") from None
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return value if depth <= MAX_DEPTH else refuse(text)


def is_id(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def id_key(value: object) -> str:
    """An id as it has to come back: value and type, lone surrogates replaced."""
    if isinstance(value, str):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return f"{type(value).__name__} {value!r}"


class Unanswered(AssertionError):
    """All answers are right, and some are missing (yet)."""


class Answers:
    """What a server wrote, checked to be protocol; `single`, `batches` and `acknowledged` as in Model."""

    def __init__(self) -> None:
        self.single: list[dict] = []
        self.batches: list[list[dict]] = []
        self.acknowledged: Counter = Counter()

    def take(self, line: bytes) -> None:
        """One line without its end; AssertionError unless it is a message."""
        value = json.loads(line.decode("utf-8"), parse_constant=lambda name: 1 / 0)
        if isinstance(value, list):
            assert value
            for member in value:
                check_response(member)
            self.batches.append(value)
        elif "method" in value:
            self._notification(value)
        else:
            check_response(value)
            self.single.append(value)

    def _notification(self, message: dict) -> None:
        assert set(message) == {"jsonrpc", "method", "params"}, message
        assert message["jsonrpc"] == "2.0"
        if message["method"] == "notifications/subscriptions/acknowledged":
            self.acknowledged[id_key(message["params"]["_meta"][PREFIX + "subscriptionId"])] += 1
        else:
            assert message["method"] == "notifications/progress", message


def check_response(message: dict) -> None:
    """AssertionError unless a message is a JSON-RPC response, to the letter."""
    assert isinstance(message, dict), message
    assert message["jsonrpc"] == "2.0", message
    assert set(message) - {"id"} in ({"jsonrpc", "result"}, {"jsonrpc", "error"}), message
    if "result" in message:
        assert isinstance(message["result"], dict), message
        assert is_id(message["id"]), message
    else:
        error = message["error"]
        assert set(error) - {"data"} == {"code", "message"}, message
        assert type(error["code"]) is int, message
        assert isinstance(error["message"], str), message


def settle(due: list[Due], answers: list[dict]) -> None:
    """AssertionError unless the answers are exactly those that are due; Unanswered if only some are missing."""
    left = list(due)
    for answer in answers:
        key = id_key(answer["id"]) if answer.get("id") is not None else None
        code = answer["error"]["code"] if "error" in answer else RESULT
        # First those that have to come, and that nothing else fits.
        fitting = [one for one in left if one.key == key and code in one.codes]
        fitting.sort(key=lambda one: (one.optional, len(one.codes)))
        assert fitting, f"nobody asked for {answer!r:.500}; due: {left}"
        left.remove(fitting[0])
    missing = [one for one in left if not one.optional]
    if missing:
        raise Unanswered(f"{missing}; answers: {answers!r:.500}")


def settle_batches(due: list[list[Due]], answers: list[list[dict]]) -> None:
    """The same for batches, which are answered in the order of their last answers."""
    left = list(due)
    for answer in answers:
        for number, batch in enumerate(left):
            try:
                settle(batch, answer)
            except AssertionError:
                continue
            del left[number]
            break
        else:
            raise AssertionError(f"no batch is answered by {answer!r:.500}; due: {left}")
    if not all(one.optional for batch in left for one in batch):
        raise Unanswered(f"{left}")


def _id_before_the_long_part(head: bytes) -> object:
    """The id of a request of which only so much was read; NO_ID where that does not tell."""
    members: dict = {}
    for end, byte in enumerate(head):
        if byte in b",}":
            with contextlib.suppress(ValueError):
                found = strict(head[:end] + b"}")
                members = found if isinstance(found, dict) else members
    is_id = isinstance(members.get("id"), (str, int, float)) and not isinstance(members["id"], bool)
    return members["id"] if is_id and isinstance(members.get("method"), str) else NO_ID
