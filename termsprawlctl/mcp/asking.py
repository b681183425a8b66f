"""Questions to the person in front of the client, which revisions of MCP carry in two ways.

Up to 2025-11-25 the question is a request to the client while the call is open. In 2026-07-28
the call is answered with the question (`input_required`), and the client calls again with what was
chosen; the call's work goes on meanwhile, and its result waits for the client (MRTR, "multi round-trip
requests"). Whoever asks sees no difference but `Question.alone`.
"""

from __future__ import annotations

import os
import time

from . import protocol
from .provider import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .calls import Call, InFlight, Request

    Json = dict[str, Any]
    Options = list[tuple[str, str]]

METHOD, KEY, FIELD = "elicitation/create", "question", "decision"
# A client that does not come back: what it left is forgotten.
MAX_ALONE = 64
KEPT_S = 600.0


class _Open:
    """A question that has been asked: of which call, what may be chosen, and where the answer goes."""

    __slots__ = ("call", "options", "question", "since_s")

    def __init__(self, call: Call, question: Question, options: Options) -> None:
        self.call = call
        self.question = question
        self.options = options
        self.since_s = time.monotonic()

    def settle(self, answer: object) -> None:
        """Take what the client sent in place of an answer, if it is one."""
        self.question.settle(_chosen(answer, self.options))


class Questions:
    """All open questions of a server. `encode(request, result)` makes a response's line."""

    def __init__(self, in_flight: InFlight, encode: Callable[[Request, Json], bytes]) -> None:
        self._in_flight = in_flight
        self._encode = encode
        self._asked: dict[str, _Open] = {}  # by the id of our request
        self._alone: dict[str, _Open] = {}  # by the state that the client has to bring
        self._number = 0

    def ask(self, call: Call, message: str, options: Options) -> Question | None:
        """Ask; None where it cannot be done. Never blocks."""
        with self._in_flight.lock:
            if not call.open or not call.request.asks or call.last_try.is_set():
                return None
            question = Question(self._withdraw)
            entry = _Open(call, question, options)
            params = _params(message, options, call.request.asks)
            if call.request.modern:
                return question if self._send_away(entry, params) else None
            self._number += 1
            key = f"ask-{self._number}"
            self._asked[key] = entry
            self._in_flight.send(protocol.encode(protocol.request(key, METHOD, params)))
            return question

    def _send_away(self, entry: _Open, params: Json) -> bool:
        """Answer the call with the question. Under the lock; False when too many are away."""
        self._forget_old()
        if len(self._alone) >= MAX_ALONE:
            return False
        state = os.urandom(16).hex()
        asked = {KEY: {"method": METHOD, "params": params}}
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        entry.question.alone = True
        self._alone[state] = entry
        self._in_flight.part(entry.call, self._encode(entry.call.request, result))
        return True

    def _forget_old(self) -> None:
        before = time.monotonic() - KEPT_S
        for state, entry in list(self._alone.items()):
            if entry.since_s < before and entry.question.answer is not None:
                del self._alone[state]
                entry.call.cancel()

    def answered(self, message: Json) -> None:
        """A response of the client; one that nobody asked for is ignored."""
        key = message.get("id")
        with self._in_flight.lock:
            entry = self._asked.pop(key, None) if isinstance(key, str) else None
            if entry is not None:
                entry.settle(message.get("result"))

    def resume(self, request: Request, tool: tuple[str, object], state: str, responses: object) -> None:
        """The client has come back with an answer, or without. Raises Refused."""
        with self._in_flight.lock:
            entry = self._alone.get(state)
            if entry is None or entry.call.tool != tool:
                text = "Invalid params: requestState is none of this call, or has expired; call again without it"
                raise protocol.Refused(protocol.INVALID_PARAMS, text)
            self._in_flight.rejoin(entry.call, request)
            del self._alone[state]
            entry.question.alone = False
            entry.settle(responses.get(KEY) if isinstance(responses, dict) else None)

    def stop(self, request_id: object = None) -> None:
        """Cancel the calls that wait for their client: the one of this id, or all."""
        with self._in_flight.lock:
            meant = [
                state
                for state, entry in self._alone.items()
                if request_id is None or protocol.id_key(entry.call.request.id) == protocol.id_key(request_id)
            ]
            calls = [self._alone.pop(state).call for state in meant]
        for call in calls:
            call.cancel()

    def end_of_input(self) -> None:
        """Nobody can answer any more."""
        with self._in_flight.lock:
            for entry in self._asked.values():
                entry.question.settle("")
            self._asked.clear()

    def _withdraw(self, question: Question) -> None:
        with self._in_flight.lock:
            key = next((key for key, entry in self._asked.items() if entry.question is question), None)
            if key is not None:
                del self._asked[key]
                params = {"requestId": key, "reason": "nobody waits for the answer any more"}
                self._in_flight.send(protocol.encode(protocol.notification("notifications/cancelled", params)))
        question.settle("")


def _params(message: str, options: Options, form: str) -> Json:
    """One choice, as the revision has it. Source: schema of each, ElicitRequestParams."""
    field: Json = {"type": "string", "title": "Decision"}
    if form == protocol.NAMED:
        field["enum"] = [value for value, _ in options]
        field["enumNames"] = [title for _, title in options]
    else:
        field["oneOf"] = [{"const": value, "title": title} for value, title in options]
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    params = {"message": message, "requestedSchema": schema}
    return params if form == protocol.NAMED else {"mode": "form", **params}


def _chosen(answer: object, options: Options) -> str:
    """The value that an ElicitResult accepts, if it was offered; else ""."""
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return ""
    content = answer.get("content")
    value = content.get(FIELD) if isinstance(content, dict) else None
    return value if isinstance(value, str) and any(value == offered for offered, _ in options) else ""
