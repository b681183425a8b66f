"""Streamable HTTP in front of a stdio MCP server, for a conformance suite that speaks only HTTP.

It adds what HTTP needs (sessions, header checks, status codes, event streams) and nothing
else: every JSON-RPC body goes to the server, and comes from it, as it is.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "io.modelcontextprotocol/"
HEADER_MISMATCH = -32020
# How the modern revision maps JSON-RPC errors to HTTP; any other error is sent with 200.
STATUS_OF_ERROR = {-32700: 400, -32600: 400, -32602: 400, HEADER_MISMATCH: 400, -32021: 400, -32022: 400, -32601: 404}
LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
KEEP_ALIVE_S = 0.3
END_S = 5.0


class StdioServer:
    """One server process; several requests may be in flight, each with an id of its own."""

    def __init__(self, argv: list[str], env: dict) -> None:
        self._process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        self._waiting: dict[str, queue.Queue] = {}
        self._token_of: dict[str, str] = {}  # progress token -> id, both as JSON
        threading.Thread(target=self._distribute, daemon=True).start()

    def send(self, message: object) -> None:
        data = json.dumps(message).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def request(self, message: dict) -> queue.Queue | None:
        """Send a request; what belongs to it comes out of the queue. None when its id is in flight."""
        key = json.dumps(message["id"])
        with self._lock:
            if key in self._waiting:
                return None
            mine = self._waiting[key] = queue.Queue()
            token = _meta(message).get("progressToken")
            if token is not None:
                self._token_of[json.dumps(token)] = key
        self.send(message)
        return mine

    def forget(self, request_id: object) -> None:
        with self._lock:
            self._waiting.pop(json.dumps(request_id), None)

    def end(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._process.kill()
        self._process.wait()

    def _distribute(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            with self._lock:
                if "method" in message:
                    params = message.get("params") or {}
                    subscription = _meta(message).get(f"{PREFIX}subscriptionId")
                    token = json.dumps(params.get("progressToken"))
                    key = self._token_of.get(token) if subscription is None else json.dumps(subscription)
                    receiver = self._waiting.get(key)
                else:
                    receiver = self._waiting.pop(json.dumps(message.get("id")), None)
            if receiver is not None:
                receiver.put(message)
        self._process.stdout.close()


def _meta(message: dict) -> dict:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


class HttpBridge:
    """`with HttpBridge(argv, env) as bridge:`; bridge.url is what the suite is pointed at."""

    def __init__(self, argv: list[str], env: dict) -> None:
        self.start_server = lambda: StdioServer(argv, env)
        self.sessions: dict[str, StdioServer] = {}
        self._stateless: list[StdioServer] = []
        self._lock = threading.Lock()

        class Handler(_Handler):
            bridge = self

        self._http = _HttpServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/mcp"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._http.shutdown()
        self._http.server_close()
        for server in [*self.sessions.values(), *self._stateless]:
            server.end()

    def stateless_request(self, message: dict) -> tuple[StdioServer, queue.Queue]:
        """Send a modern request to a server in which its id is free."""
        with self._lock:
            for server in self._stateless:
                mine = server.request(message)
                if mine is not None:
                    return server, mine
            self._stateless.append(self.start_server())
            return self._stateless[-1], self._stateless[-1].request(message)


class _HttpServer(ThreadingHTTPServer):
    def handle_error(self, *_) -> None:
        """A client that resets its connection is none of the test's business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bridge: HttpBridge

    def log_message(self, *_) -> None:
        """Silence: the suite reports what matters."""

    def do_GET(self) -> None:
        self._reply(405 if self._is_local() else 403)

    def do_DELETE(self) -> None:
        server = self.bridge.sessions.pop(self.headers.get("mcp-session-id", ""), None)
        if server is not None:
            server.end()
        self._reply(404 if server is None else 200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self._is_local():
            self._reply(403, _error(None, -32000, "not a local host or origin"))
            return
        try:
            message = json.loads(body)
        except ValueError:
            self._reply(400, _error(None, -32700, "not JSON"))
            return
        session = self.headers.get("mcp-session-id")
        if session is not None:
            self._in_session(session, message)
        elif message.get("method") == "initialize" and f"{PREFIX}protocolVersion" not in _meta(message):
            session = uuid.uuid4().hex
            self.bridge.sessions[session] = self.bridge.start_server()
            self._in_session(session, message)
        else:
            self._stateless(message)

    def _in_session(self, session: str, message: dict) -> None:
        server = self.bridge.sessions.get(session)
        if server is None:
            self._reply(404, _error(message.get("id"), -32001, "no such session"))
        elif "id" not in message or "method" not in message:
            server.send(message)
            self._reply(202)
        else:
            self._stream(server, server.request(message), message, {"mcp-session-id": session}, modern=False)

    def _stateless(self, message: dict) -> None:
        if not self._headers_fit(message):
            self._reply(400, _error(message.get("id"), HEADER_MISMATCH, "headers and body differ"))
        elif "id" not in message:
            self._reply(202)
        else:
            server, mine = self.bridge.stateless_request(message)
            self._stream(server, mine, message, {}, modern=True)

    def _headers_fit(self, message: dict) -> bool:
        params = message.get("params") if isinstance(message.get("params"), dict) else {}
        version = _meta(message).get(f"{PREFIX}protocolVersion")
        named = params.get("uri" if message.get("method") == "resources/read" else "name")
        return (
            (version is None or self.headers.get("mcp-protocol-version") == version)
            and self.headers.get("mcp-method", message.get("method")) == message.get("method")
            and self.headers.get("mcp-name", named) == named
        )

    def _stream(self, server: StdioServer, mine: queue.Queue, message: dict, headers: dict, *, modern: bool) -> None:
        """Answer with one JSON body, or with events when something comes before the response."""
        first = mine.get()
        if "method" not in first:
            code = first.get("error", {}).get("code")
            self._reply(STATUS_OF_ERROR.get(code, 200) if modern else 200, first, headers)
            return
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        try:
            self._event(first)
            while True:
                try:
                    event = mine.get(timeout=KEEP_ALIVE_S)
                except queue.Empty:
                    self.wfile.write(b": still here\n\n")  # shows whether the client is
                    continue
                self._event(event)
                if "method" not in event:
                    return
        except OSError:
            # Hanging up is how an HTTP client cancels.
            server.forget(message["id"])
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}})

    def _event(self, message: dict) -> None:
        self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        self.wfile.flush()

    def _is_local(self) -> bool:
        host = (self.headers.get("host") or "").rsplit(":", 1)[0]
        origin = self.headers.get("origin")
        return host in LOCAL_NAMES and (not origin or origin.split("//")[-1].rsplit(":", 1)[0] in LOCAL_NAMES)

    def _reply(self, status: int, message: dict | None = None, headers: dict | None = None) -> None:
        data = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if data:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _error(request_id: object, code: int, text: str) -> dict:
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": text}}
    return body if request_id is None else {**body, "id": request_id}
