"""What each line of input means: answered here, or put on a lane of worker threads.

Everything in this module is called by the one reading thread and never blocks; the
`_work_*` functions run on lanes.
"""

from __future__ import annotations

from functools import partial

from ..base import jsontext, log
from . import protocol, stdio
from .calls import MAX_OPEN_BYTES, Batch, Book, Call, Request
from .protocol import NO_ID, Refused
from .provider import Provider, ProviderFault
from .workers import Lane

# Gemini CLI adds this argument to every call and sends it on to servers.
FOREIGN_ARGUMENT = "wait_for_previous"
# One answer holds all that a batch asks for, in memory and on one line.
MAX_BATCH = 100
MAX_SUBSCRIPTIONS = 100  # nothing is ever sent to any of them
_BOM = b"\xef\xbb\xbf"


class Dispatcher:
    """Takes lines for one provider and hands answers to a writer.

    `writer` takes whole lines (put) and tells when there is room (wait_for_room);
    `rouse()` wakes the reading thread when held progress changes how long it may sleep.
    """

    def __init__(self, provider: Provider, writer, rouse) -> None:
        self._provider = provider
        self._writer = writer
        self._info = {"name": provider.name, "version": provider.version}
        self._calls = Lane(1 if provider.ordered else provider.max_running, self._perform)
        self._aside = Lane(1, self._perform)
        self.prepared = False  # or about to be
        self.failed = False  # a request stays without an answer: there was no memory even to say so
        self._rouse = rouse
        self._revision: protocol.Revision | None = None  # of the last handshake
        self._subscriptions: list[Request] = []
        self.book = Book(writer.put, rouse, writer.has_room)
        either = {"tools/list": self._list_tools, "tools/call": self._call_tool}
        self._legacy = {"initialize": self._initialize, "ping": self._ping, **either}
        self._modern = {"server/discover": self._discover, "subscriptions/listen": self._listen, **either}

    def take(self, line) -> None:
        """One line of input, or TOO_LONG in the place of one."""
        original = self._provider.original_frame_errors
        if line is stdio.TOO_LONG:
            limit = f"Message too large: more than {self._provider.max_line_bytes} bytes on one line"
            self._complain(protocol.INVALID_REQUEST, "Message too large" if original else limit)
            return
        if not line.removeprefix(_BOM).strip():
            return
        try:
            message = jsontext.loads(line)
        except ValueError as reason:
            self._complain(protocol.PARSE_ERROR, f"Parse error: {reason}")
            return
        if isinstance(message, dict):
            self._receive(message, None, len(line))
        elif isinstance(message, list) and self._revision is not None and self._revision.batches:
            self._receive_batch(message, len(line))
        elif not original or message is None:
            self._complain(protocol.INVALID_REQUEST, "Invalid request: a message is a JSON object")

    def end_of_input(self) -> None:
        """The client will send no more: end what only waits for it."""
        for request in self._subscriptions:
            self._answer(request, {"_meta": {protocol.SUBSCRIPTION_KEY: request.id}})
        self._subscriptions.clear()
        for call in self.book.calls():
            call.last_try.set()

    def cancel_all(self) -> None:
        """Cancel every call; none of them is answered."""
        self._stop(self.book.cancel_all())

    def prepare(self) -> None:
        """Have the provider load what calls will need, unless it has."""
        if self.prepared:
            return
        self.prepared = True
        try:
            self._calls.add(None)
        except RuntimeError:
            return  # no thread to be had now; calls will load what they need

    # --- frames -------------------------------------------------------------------------

    def _complain(self, code: int, text: str) -> None:
        """Answer a line whose request cannot be told."""
        if self._provider.original_frame_errors:
            answer = protocol.error(None, protocol.INTERNAL_ERROR, text)
        else:
            answer = protocol.error(NO_ID, code, text)
        self.book.send(protocol.encode(answer))

    def _receive_batch(self, messages: list, size: int) -> None:
        if len(messages) > MAX_BATCH:
            text = f"Invalid request: a batch of {len(messages)} messages; send at most {MAX_BATCH} at once"
            self.book.send(protocol.encode(protocol.error(NO_ID, protocol.INVALID_REQUEST, text)))
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
        self.book.answer(whole, None)

    def _refuse_unidentified(self, batch: Batch | None) -> None:
        if batch is not None:
            batch.expect()
        request = Request(NO_ID, modern=False, token=None, batch=batch)
        text = "Invalid request: a message is a JSON object, and its id a string or a number"
        self._refuse(request, Refused(protocol.INVALID_REQUEST, text))

    def _receive(self, message: dict, batch: Batch | None, size: int) -> None:
        """One message: a request is answered or put on a lane, anything else never answered."""
        method, params = message.get("method"), message.get("params")
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(params, dict):
                self._cancel(params.get("requestId"))
            return
        if "method" not in message and ("result" in message or "error" in message):
            return  # a response, but this server never asks
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
            self._refuse(request, fault)

    def _cancel(self, request_id: object) -> None:
        """Stop what carries this id, without an answer; anything that does not fit is ignored."""
        if not protocol.is_id(request_id):
            return
        key = protocol.id_key(request_id)
        self._subscriptions = [entry for entry in self._subscriptions if protocol.id_key(entry.id) != key]
        self._stop(self.book.cancel(request_id))

    def _stop(self, calls: list[Call]) -> None:
        for call in calls:
            if not (self._calls.remove(call) or self._aside.remove(call)):
                call.cancel()

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

    def _initialize(self, request: Request, params: dict) -> None:
        if request.batch is not None:
            raise Refused(protocol.INVALID_REQUEST, "Invalid request: initialize cannot be part of a batch")
        work = partial(self._work_initialize, protocol.negotiate(params.get("protocolVersion")))
        if type(self._provider).greet is Provider.greet:
            self._answer(request, work(None))
        else:
            self._start(self._calls if self._provider.ordered else self._aside, request, work)

    def _work_initialize(self, revision: protocol.Revision, call: Call | None) -> dict:
        if call is not None:
            self._provider.greet(call)
        self._revision = revision  # settled only now: a handshake that fails changes nothing
        result = {"protocolVersion": revision.name, "capabilities": protocol.CAPABILITIES, "serverInfo": self._info}
        return self._instructed(result)

    def _discover(self, request: Request, _params: dict) -> None:
        result = {"supportedVersions": protocol.MODERN, "capabilities": protocol.CAPABILITIES}
        self._answer(request, self._cacheable(self._instructed(result)))

    def _ping(self, request: Request, _params: dict) -> None:
        self._answer(request, {})

    def _listen(self, request: Request, _params: dict) -> None:
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
        self.book.send(protocol.encode(protocol.notification("notifications/subscriptions/acknowledged", params)))

    def _list_tools(self, request: Request, params: dict) -> None:
        if params.get("cursor") is not None:
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: unknown cursor; the list has one page")
        if self._provider.tools_block():
            self._start(self._aside, request, partial(self._work_list, modern=request.modern))
        else:
            self._answer(request, self._work_list(modern=request.modern))
        self.prepare()

    def _work_list(self, _call: Call | None = None, *, modern: bool) -> dict:
        result = {"tools": self._provider.tools()}
        return self._cacheable(result) if modern else result

    def _call_tool(self, request: Request, params: dict) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: name is missing or not a string")
        if arguments is None:
            arguments = {}
        tool = self._provider.find_tool(name)
        if tool is None and not self._provider.any_tool_name:
            raise Refused(protocol.INVALID_PARAMS, f"Unknown tool: {name}")
        if isinstance(arguments, dict):
            if FOREIGN_ARGUMENT not in (tool or {}).get("inputSchema", {}).get("properties", {}):
                arguments.pop(FOREIGN_ARGUMENT, None)
        elif not self._provider.any_arguments:
            raise Refused(protocol.INVALID_PARAMS, "Invalid params: arguments is not an object")
        self._start(self._calls, request, partial(self._provider.call, name, arguments))

    def _instructed(self, result: dict) -> dict:
        text = self._provider.instructions()
        return {**result, "instructions": text} if text else result

    def _cacheable(self, result: dict) -> dict:
        return {**result, "ttlMs": self._provider.list_ttl_ms, "cacheScope": self._provider.list_scope}

    # --- work and answers ---------------------------------------------------------------

    def _start(self, lane: Lane, request: Request, work) -> None:
        call = Call(self.book, request, work)
        self.book.open(call)
        try:
            lane.add(call)
        except RuntimeError as fault:
            self.book.close(call, self._encode_fault(request, fault))

    def _perform(self, call: Call | None) -> None:
        """Run one call, or prepare for calls, in a worker thread."""
        try:
            self._carry_out(call)
        except BaseException:  # noqa: BLE001 - whoever waits for the answer learns it by the end
            self.failed = True
            self._rouse()

    def _carry_out(self, call: Call | None) -> None:
        if call is None:
            self._prepare()
            return
        self._writer.wait_for_room()
        if not call.open:
            return  # cancelled between leaving the queue and here
        try:
            answer = self._encode_result(call.request, call.work(call))
        except BaseException as fault:  # noqa: BLE001 - a worker has to survive whatever its tool does
            answer = self._encode_fault(call.request, fault)
        self.book.close(call, answer)

    def _prepare(self) -> None:
        try:
            self._provider.prepare()
        except Exception as fault:  # noqa: BLE001 - the calls will say what is wrong
            log.log(f"preparing failed: {type(fault).__name__} {log.where(fault)}")

    def _answer(self, request: Request, result: dict) -> None:
        self.book.answer(request, self._encode_result(request, result))

    def _refuse(self, request: Request, fault: BaseException) -> None:
        self.book.answer(request, self._encode_fault(request, fault))

    def _encode_result(self, request: Request, result: dict) -> bytes:
        if not isinstance(result, dict):
            raise TypeError("a provider's result is a dict")
        if request.modern:
            result = protocol.modern_result(result, self._info)
        return protocol.encode(protocol.response(request.id, result))

    def _encode_fault(self, request: Request, fault: BaseException) -> bytes:
        if isinstance(fault, (Refused, ProviderFault)):
            answer = protocol.error(request.id, fault.code, str(fault), fault.data)
        else:
            # The text of a foreign exception may quote what nobody should read.
            log.log(f"internal error: {type(fault).__name__} {log.where(fault)}")
            answer = protocol.error(request.id, protocol.INTERNAL_ERROR, f"Internal error: {type(fault).__name__}")
        return protocol.encode(answer)
