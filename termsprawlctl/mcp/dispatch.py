"""What each line of input means: answered here, or given to a pool of worker threads.

Everything in this module is called by the one reading thread and never blocks; the
`_work_*` functions run in the pools of work.py.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from ..base import jsontext
from . import protocol, stdio
from .calls import CALL_BYTES, MAX_OPEN_BYTES, TOO_MANY, Batch, Call, Request, weight
from .protocol import NO_ID, Refused
from .work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .options import Options
    from .provider import Provider

    Json = dict[str, Any]

# Gemini CLI adds this argument to every call and sends it on to servers.
FOREIGN_ARGUMENT = "wait_for_previous"
# One answer holds all that a batch asks for, in memory and on one line.
MAX_BATCH = 100
MAX_SUBSCRIPTIONS = 100  # nothing is ever sent to any of them
_BOM = b"\xef\xbb\xbf"


class _Held:
    """Messages that wait for the answer to `initialize`, in order, with their weight()."""

    def __init__(self) -> None:
        self._messages: deque[tuple[Json | list[object], int]] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._messages)

    def add(self, message: Json | list[object], size: int) -> bool:
        """Keep one more; False while those that are kept hold too much."""
        if self._messages and self._bytes + size + CALL_BYTES > MAX_OPEN_BYTES:
            return False
        self._messages.append((message, size))
        self._bytes += size + CALL_BYTES
        return True

    def take(self) -> tuple[Json | list[object], int]:
        """The oldest, and its weight()."""
        message, size = self._messages.popleft()
        self._bytes -= size + CALL_BYTES
        return message, size

    def drop(self, is_meant: Callable[[Json | list[object]], bool]) -> None:
        """Forget those that are meant."""
        kept = [one for one in self._messages if not is_meant(one[0])]
        self._messages = deque(kept)
        self._bytes = sum(size + CALL_BYTES for _, size in kept)


class Dispatcher:
    """Takes lines for one provider and hands answers to a writer.

    `writer` takes whole lines (put) and tells when there is room (wait_for_room); `wake()`
    wakes the reading thread when held progress changes how long it may sleep, and when
    resume() has something to do.
    """

    def __init__(self, provider: Provider, options: Options, writer: stdio.Writer, wake: Callable[[], object]) -> None:
        self._provider = provider
        self._options = options
        self._info = {"name": provider.name, "version": provider.version}
        self.work = Work(provider, options, writer, wake)
        self._in_flight = self.work.in_flight
        self._revision: protocol.Revision | None = None  # of the last handshake
        self._asks = ""  # how its client's user is asked
        # `initialize` is answered before everything that came behind it.
        self._handshake: Call | None = None
        self._held = _Held()
        self._subscriptions: list[Request] = []
        either = {"tools/list": self._list_tools, "tools/call": self._call_tool}
        self._legacy = {"initialize": self._initialize, "ping": self._ping, **either}
        self._modern = {"server/discover": self._discover, "subscriptions/listen": self._listen, **either}

    def take(self, line: bytes | stdio.TooLong) -> None:
        """One line of input, or what stands for one that is too long."""
        original = self._options.original_frame_errors
        if isinstance(line, stdio.TooLong):
            limit = f"Message too large: more than {self._options.max_line_bytes} bytes on one line"
            request_id = None if original else protocol.request_id(line.head)
            if request_id is not None:
                self._in_flight.send(protocol.encode(protocol.error(request_id, protocol.INVALID_REQUEST, limit)))
            else:
                self._complain(protocol.INVALID_REQUEST, "Message too large" if original else limit)
            return
        if not line.removeprefix(_BOM).strip():
            return
        try:
            message = jsontext.loads(line)
        except ValueError as reason:
            self._complain(protocol.PARSE_ERROR, f"Parse error: {reason}")
            return
        if isinstance(message, (dict, list)):
            size = weight(message, len(line))
            if self._may_pass(message):
                self._receive_any(message, size)
            else:
                self._hold(message, size)
        elif not original or message is None:
            self._complain(protocol.INVALID_REQUEST, "Invalid request: a message is a JSON object")

    def resume(self) -> None:
        """Go on with what was held, once the answer to `initialize` is with the writer."""
        while self._held and self._is_settled():
            self._receive_any(*self._held.take())

    def is_idle(self) -> bool:
        """Whether nothing is left to do: every call is cancelled, or its answer is with the writer."""
        return not self._held and self._in_flight.is_empty()

    def end_of_input(self) -> None:
        """The client will send no more: end what only waits for it."""
        for request in self._subscriptions:
            self.work.answer(request, {"_meta": {protocol.SUBSCRIPTION_KEY: request.id}})
        self._subscriptions.clear()
        for call in self._in_flight.calls():
            call.last_try.set()
        questions = self.work.questions()
        if questions is not None:
            questions.end_of_input()

    def cancel_all(self) -> None:
        """Cancel every call; none of them is answered."""
        self._held.drop(lambda _: True)
        self.work.stop(self._in_flight.cancel_all())
        questions = self.work.questions()
        if questions is not None:
            questions.stop()

    # --- what waits for a handshake -----------------------------------------------------

    def _is_settled(self) -> bool:
        return self._handshake is None or not self._handshake.open

    def _may_pass(self, message: Json | list[object]) -> bool:
        """Whether a message need not wait for the answer to `initialize`: it is of the other era, or asks for life."""
        if self._is_settled() and not self._held:
            return True
        if not isinstance(message, dict):
            return False
        method = message.get("method")
        if "id" not in message or method == "ping" or not isinstance(method, str):
            return "id" not in message or method == "ping"
        return protocol.is_modern(method, message.get("params"))

    def _hold(self, message: Json | list[object], size: int) -> None:
        if self._held.add(message, size):
            return
        if isinstance(message, dict) and protocol.is_id(message.get("id")):
            request = Request(message["id"], modern=False, token=None, batch=None)
            self.work.refuse(request, Refused(protocol.INTERNAL_ERROR, TOO_MANY))
        else:
            self._complain(protocol.INTERNAL_ERROR, TOO_MANY)

    # --- frames -------------------------------------------------------------------------

    def _complain(self, code: int, text: str) -> None:
        """Answer a line whose request is unknown."""
        if self._options.original_frame_errors:
            answer = protocol.error(None, protocol.INTERNAL_ERROR, text)
        else:
            answer = protocol.error(NO_ID, code, text)
        self._in_flight.send(protocol.encode(answer))

    def _receive_any(self, message: Json | list[object], size: int) -> None:
        if isinstance(message, dict):
            self._receive(message, None, size)
        elif self._revision is not None and self._revision.batches:
            self._receive_batch(message, size)
        else:
            text = "Invalid request: this revision has no batches; send each message on a line of its own"
            request_id = None if self._options.original_frame_errors else NO_ID
            self._in_flight.send(protocol.encode(protocol.error(request_id, protocol.INVALID_REQUEST, text)))

    def _receive_batch(self, messages: list[object], size: int) -> None:
        if len(messages) > MAX_BATCH:
            text = f"Invalid request: a batch of {len(messages)} messages; send at most {MAX_BATCH} at once"
            self._in_flight.send(protocol.encode(protocol.error(NO_ID, protocol.INVALID_REQUEST, text)))
            return
        batch = Batch()
        whole = Request(None, modern=False, token=None, batch=batch)
        if not messages:
            self._refuse_unidentified(None)
        for message in messages:
            if isinstance(message, dict):
                self._receive(message, batch, size // len(messages))
            else:
                self._refuse_unidentified(batch)
        self._in_flight.answer(whole, None)

    def _refuse_unidentified(self, batch: Batch | None) -> None:
        if batch is not None:
            batch.expect()
        request = Request(NO_ID, modern=False, token=None, batch=batch)
        text = "Invalid request: a message is a JSON object, and its id a string or a number"
        self.work.refuse(request, Refused(protocol.INVALID_REQUEST, text))

    def _receive(self, message: Json, batch: Batch | None, size: int) -> None:
        """One message: a request is answered or given to a pool, anything else never answered."""
        method, params = message.get("method"), message.get("params")
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(params, dict):
                self._cancel(params.get("requestId"))
            return
        if "method" not in message and ("result" in message or "error" in message):
            questions = self.work.questions()
            if questions is not None:
                questions.answered(message)
            return
        if not protocol.is_id(message["id"]):
            self._refuse_unidentified(batch)
            return
        if batch is not None:
            batch.expect()
        modern = isinstance(method, str) and protocol.is_modern(method, params)
        token = protocol.progress_token(params) if isinstance(params, dict) else None
        request = Request(message["id"], modern=modern, token=token, batch=batch, size=size)
        try:
            self._dispatch(request, method, {} if params is None else params)
        except Exception as fault:  # noqa: BLE001 - answered, and the server goes on
            self.work.refuse(request, fault)

    def _cancel(self, request_id: object) -> None:
        """Stop what carries this id, without an answer; anything that does not fit is ignored."""
        if not protocol.is_id(request_id):
            return
        key = protocol.id_key(request_id)
        self._subscriptions = [entry for entry in self._subscriptions if protocol.id_key(entry.id) != key]
        self._held.drop(lambda message: _has_id(message, key))
        self.work.stop(self._in_flight.cancel(request_id))
        questions = self.work.questions()
        if questions is not None:
            questions.stop(request_id)
        self.resume()

    # --- methods ------------------------------------------------------------------------

    def _dispatch(self, request: Request, method: object, params: object) -> None:
        if not isinstance(method, str):
            raise Refused(protocol.INVALID_REQUEST, "Invalid request: method is not a string")
        if not isinstance(params, dict):
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: params is not an object")
        if request.modern:
            protocol.check_modern(params)
        handler = (self._modern if request.modern else self._legacy).get(method)
        if handler is None:
            raise Refused(protocol.METHOD_NOT_FOUND, "Method not found")
        handler(request, params)

    def _initialize(self, request: Request, params: Json) -> None:
        if request.batch is not None:
            raise Refused(protocol.INVALID_REQUEST, "Invalid request: initialize cannot be part of a batch")
        revision = protocol.negotiate(params.get("protocolVersion"))
        work = partial(self._work_initialize, revision, protocol.asks(revision, params.get("capabilities")))
        call = Call(self._in_flight, request, work)
        if self._options.initialize_waits:
            self._handshake = call
            self.work.start(self.work.handshakes, call)
        else:
            self.work.answer(request, work(call))

    def _work_initialize(self, revision: protocol.Revision, asks: str, call: Call) -> Json:
        self._provider.on_initialize(call)
        # Settled only now: a handshake that fails changes nothing.
        self._revision, self._asks = revision, asks
        result = {"protocolVersion": revision.name, "capabilities": protocol.CAPABILITIES, "serverInfo": self._info}
        return self._instructed(result)

    def _discover(self, request: Request, _params: Json) -> None:
        result = {"supportedVersions": protocol.MODERN, "capabilities": protocol.CAPABILITIES}
        self.work.answer(request, self._cacheable(self._instructed(result)))

    def _ping(self, request: Request, _params: Json) -> None:
        self.work.answer(request, {})

    def _listen(self, request: Request, _params: Json) -> None:
        if request.batch is not None:
            raise Refused(protocol.INVALID_REQUEST, "Invalid request: a subscription cannot be part of a batch")
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            text = f"Too many subscriptions: {MAX_SUBSCRIPTIONS} are open; cancel some, or use one for all"
            raise Refused(protocol.INTERNAL_ERROR, text)
        if sum(entry.size for entry in self._subscriptions) + request.size > MAX_OPEN_BYTES:
            text = "Too large subscriptions: cancel some, or use shorter ids"
            raise Refused(protocol.INTERNAL_ERROR, text)
        self._subscriptions.append(request)
        params = {"_meta": {protocol.SUBSCRIPTION_KEY: request.id}, "notifications": {}}
        self._in_flight.send(protocol.encode(protocol.notification("notifications/subscriptions/acknowledged", params)))

    def _list_tools(self, request: Request, params: Json) -> None:
        if params.get("cursor") is not None:
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: unknown cursor; the list has one page")
        if self._provider.tools_block():
            self.work.start(
                self.work.lists, Call(self._in_flight, request, partial(self._work_list, modern=request.modern))
            )
        else:
            self.work.answer(request, self._work_list(modern=request.modern))
        self.work.prepare()

    def _work_list(self, _call: Call | None = None, *, modern: bool) -> Json:
        result = {"tools": self._provider.tools()}
        return self._cacheable(result) if modern else result

    def _call_tool(self, request: Request, params: Json) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: name is missing or not a string")
        if arguments is None:
            arguments = {}
        tool = self._provider.find_tool(name)
        if tool is None and not self._options.any_tool_name:
            raise Refused(protocol.INVALID_PARAMS, f"Unknown tool: {name}")
        if isinstance(arguments, dict):
            if FOREIGN_ARGUMENT not in (tool or {}).get("inputSchema", {}).get("properties", {}):
                arguments.pop(FOREIGN_ARGUMENT, None)
        elif not self._options.any_arguments:
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: arguments is not an object")
        request.asks = _asks(request, params) if request.modern else self._asks
        if request.modern and params.get("requestState") is not None:
            self._come_back(request, params, (name, arguments))
            return
        call = Call(self._in_flight, request, partial(self._provider.call, name, arguments))
        call.tool = (name, arguments)
        call.on_begun = partial(self.work.calls.begun, call)
        call.on_ask = partial(self.work.ask, call)
        self.work.start(self.work.calls, call, self._provider.turn(name, arguments))

    def _come_back(self, request: Request, params: Json, tool: tuple[str, object]) -> None:
        """A call that was answered with a question is made again, with what the user chose."""
        questions = self.work.questions()
        state = params["requestState"]
        if questions is None or not isinstance(state, str):
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: requestState is none that this server gave")
        questions.resume(request, tool, state, params.get("inputResponses"))

    def _instructed(self, result: Json) -> Json:
        text = self._provider.instructions()
        return {**result, "instructions": text} if text else result

    def _cacheable(self, result: Json) -> Json:
        scope = "private" if self._options.list_is_private else "public"
        return {**result, "ttlMs": self._options.list_ttl_ms, "cacheScope": scope}


def _asks(request: Request, params: Json) -> str:
    """How the user behind a modern request is asked: each says what its client can do."""
    meta = params["_meta"]
    revision = next(known for known in protocol.REVISIONS if known.name == meta[protocol.VERSION_KEY])
    return protocol.asks(revision, meta[protocol.CAPABILITIES_KEY]) if request.batch is None else ""


def _has_id(message: Json | list[object], key: tuple[type, object]) -> bool:
    return isinstance(message, dict) and protocol.is_id(message.get("id")) and protocol.id_key(message["id"]) == key
