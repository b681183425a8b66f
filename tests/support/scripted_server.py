"""A TCP server on loopback whose every connection plays one script, byte by byte.

It knows no HTTP beyond what is needed to read one request whole, so that a script can
break the protocol in any way.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading

JOIN_S = 10  # far more than a script needs to notice that its peer is gone


class Request:
    """One request as it arrived: request line, headers (names in lower case), body."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("iso-8859-1").split("\r\n")
        self.line = lines[0]
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.body = body

    @property
    def json(self) -> object:
        return json.loads(self.body)


class Connection:
    """The server's end of one connection, for a script to play on."""

    def __init__(self, sock: socket.socket, server: ScriptedServer) -> None:
        self.sock = sock
        self._server = server

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def read_head(self) -> bytes:
        """Up to and with the empty line after the headers; not a byte of the body."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.sock.recv(1)
            if not byte:
                raise ConnectionError("the client sent no whole head")
            head += byte
        return head[:-4]

    def read_request(self) -> Request:
        """One whole request, which the server remembers."""
        head = self.read_head()
        request = Request(head, b"")
        left = int(request.headers.get("content-length", "0"))
        chunks = []
        while left:
            chunk = self.sock.recv(min(left, 65536))
            if not chunk:
                raise ConnectionError("the client sent no whole body")
            chunks.append(chunk)
            left -= len(chunk)
        request.body = b"".join(chunks)
        self._server.requests.append(request)
        return request

    def wait_for_hangup(self) -> None:
        """Swallow what still comes, until the client is gone or the server closes."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass

    def wait_unread(self) -> None:
        """Until the connection breaks or the server closes, leaving all that comes in the kernel's buffers.

        Without end on purpose: a client that does not keep its deadline hangs here.
        """
        poll = select.poll()
        poll.register(self.sock, 0)  # POLLHUP and POLLERR alone
        poll.poll()

    def client_is_there(self, for_s: float) -> bool:
        """Wait up to for_s seconds; False as soon as the client has hung up or the server closes."""
        readable, _, _ = select.select([self.sock], [], [], for_s)
        if not readable:
            return True
        try:
            return self.sock.recv(65536) != b""
        except OSError:
            return False

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class ScriptedServer:
    """`with ScriptedServer(script) as server:`; server.port, .requests, .connections (how many came).

    `script(connection)` runs in a thread of its own for each connection, which is closed
    after it. An OSError in it is the client's hanging up; anything else fails the test.
    """

    def __init__(self, script, *, receive_buffer: int | None = None) -> None:
        self._script = script
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        self.requests: list[Request] = []
        self.faults: list[BaseException] = []
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, kind, _fault, _trace) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends accept(), which close() alone does not
        self._threads[0].join(JOIN_S)
        self._listener.close()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(JOIN_S)
        for sock in self._open:
            sock.close()
        if kind is None and self.faults:
            raise self.faults[0]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(sock)
            thread = threading.Thread(target=self._play, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _play(self, sock: socket.socket) -> None:
        try:
            self._script(Connection(sock, self))
        except OSError:
            pass
        except BaseException as fault:  # noqa: BLE001 - reported by __exit__
            self.faults.append(fault)
        finally:
            sock.close()


class Trap:
    """A port that must not be touched: `with Trap() as trap: ...; assert trap.untouched()`."""

    def __init__(self) -> None:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._listener.close()

    def untouched(self) -> bool:
        """Whether nobody has connected: the kernel would have queued even one that left again."""
        readable, _, _ = select.select([self._listener], [], [], 0)
        return not readable


def answer(body: bytes | object, status: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP answer with content-length; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(data)}", *headers]
    return "\r\n".join(lines).encode("iso-8859-1") + b"\r\n\r\n" + data


def replying(data: bytes):
    """A script that reads the request whole and sends these bytes."""

    def script(connection: Connection) -> None:
        connection.read_request()
        connection.send(data)

    return script


def unused_port() -> int:
    """A loopback port that nothing listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]
