"""The HTTP side: which API a request speaks, which turn it gets, and how that turn is played."""

from __future__ import annotations

import json
import re
import select
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import chat, gemini, messages, responses, tools
from .conversation import USAGE, Reply, call_id, next_turn, session, working_directory

APIS = [(re.compile(api.PATH), api) for api in (responses, chat, messages, gemini)]
MODELS = ["fake-model", "fake-model-2"]
SECRET_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
FOR_EVER = 10**9


def serve(owner, port: int) -> ThreadingHTTPServer:
    """A server on loopback, bound already; `owner` is the FakeProvider."""
    http = _Server(("127.0.0.1", port), _Handler)
    http.owner = owner
    return http


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address) -> None:
        # CLIs hang up at any moment.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        """Silence: provider.requests holds what came."""

    def do_HEAD(self) -> None:
        self._json(200, {})

    def do_GET(self) -> None:
        self._record(None, {})
        models = [{"id": name, "object": "model", "owned_by": "fake"} for name in MODELS]
        self._json(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        path = self.path.split("?")[0]
        api = next((api for pattern, api in APIS if pattern.search(path)), None)
        offered = api.offered(body) if api and isinstance(body, dict) else {}
        self._record(body, offered)
        if path.endswith(("/count_tokens", ":countTokens")):
            self._json(200, {"input_tokens": 100, "totalTokens": 100})
        elif api is None or not isinstance(body, dict):
            self._json(404, chat.error(404, f"no such endpoint: {path}"))
        else:
            script = self.server.owner.script_for(path)
            if script is None:
                self._json(404, api.error(404, "no such script"))
            else:
                self._play(api, path, body, offered, script)

    # --- one turn ---------------------------------------------------------------------------

    def _play(self, api, path: str, body: dict, offered: dict, script: dict) -> None:
        number, turn = _turn(api, body, offered, script)
        time.sleep(turn.get("delay", 0))
        if turn.get("hang") == "connect":
            self._fall_silent()
            return
        fault = turn.get("error")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if fault and self.server.owner.count_try(session(headers, body), number) <= fault.get("times", FOR_EVER):
            after = {"retry-after": str(fault["retry_after"])} if "retry_after" in fault else {}
            message = api.error(fault["status"], fault.get("message", "scripted error"))
            self._json(fault["status"], message, after)
            return
        model = body.get("model") or path.rsplit("/", 1)[-1].split(":", maxsplit=1)[0]
        events = list(api.events(_reply(turn, number, model, offered, working_directory(body))))
        if api.streamed(body, self.path):
            self._stream(events, turn)
        else:
            self._whole(api, events, turn)

    def _stream(self, events: list, turn: dict) -> None:
        broken = turn.get("hang") or turn.get("cut")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events[: len(events) // 2] if broken else events:
            text = data if isinstance(data, str) else json.dumps(data)
            event = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if turn.get("hang"):
            self._fall_silent()
        elif turn.get("cut"):
            self.close_connection = True  # without the last chunk
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _whole(self, api, events: list, turn: dict) -> None:
        answer = api.assembled([data for _, data in events])
        if answer is None:
            self._json(400, api.error(400, "only streams are played here"))
        elif turn.get("hang"):
            self._fall_silent()
        elif turn.get("cut"):
            self.close_connection = True
        else:
            self._json(200, answer)

    def _fall_silent(self) -> None:
        """Say nothing until the client hangs up or the server is stopped."""
        self.close_connection = True
        while not self.server.owner.stopping.is_set():
            if select.select([self.connection], [], [], 0.1)[0]:
                try:
                    if not self.connection.recv(65536):
                        return
                except OSError:
                    return

    def _json(self, status: int, data: dict, headers: dict | None = None) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _record(self, body: object, offered: dict) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in SECRET_HEADERS}
        entry = {"method": self.command, "path": self.path, "headers": headers, "body": body, "tools": list(offered)}
        self.server.owner.record(entry)


def _turn(api, body: dict, offered: dict, script: dict) -> tuple[int, dict]:
    """(number, turn) of the script that this conversation has come to."""
    if not offered:
        return 0, {"text": script.get("side", "A title")}
    number = next_turn(api.said(body))
    turns = script["turns"]
    return number, turns[number] if number < len(turns) else {"text": "(the script is over)"}


def _reply(turn: dict, number: int, model: str, offered: dict, directory: str | None) -> Reply:
    repeat = turn.get("repeat") or {"unit": "", "times": 0}
    made = [tools.call(intention, offered, directory) for intention in turn.get("calls", [])]
    return Reply(
        number=number,
        model=model,
        reasoning=turn.get("reasoning", ""),
        text=turn.get("text", "") + repeat["unit"] * repeat["times"],
        phase=turn.get("phase"),
        items=turn.get("items", []),
        calls=[(call_id(number, index), *call) for index, call in enumerate(made) if call is not None],
        usage={**USAGE, **turn.get("usage", {})},
        failure=turn.get("stream_error"),
    )
