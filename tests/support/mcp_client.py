"""A bare MCP client: lines to a server process and lines back, nothing read before it is asked for."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from .waiting import PATIENCE_S

PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
META = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
SUPPORT = Path(__file__).resolve().parent


class Silence(AssertionError):
    """The server said nothing for as long as the test waits."""


class McpServer:
    """`with McpServer(argv, env) as server:`; ends the process whatever the test did.

    `stderr`: where the server's goes; None: to a file that `log()` reads.
    """

    def __init__(self, argv, env, *, stderr=None, stdout=subprocess.PIPE, cwd=None) -> None:
        self._argv, self._env, self._cwd = [str(word) for word in argv], env, cwd
        self._stdout = stdout
        self._stderr = stderr
        self._log: int | None = None
        self._buffer = b""
        self._ids = itertools.count(1)
        self.notifications: list[dict] = []

    def __enter__(self):
        if self._stderr is None:
            self._log = os.memfd_create("stderr")
        self.process = subprocess.Popen(
            self._argv,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=self._stdout,
            stderr=self._stderr if self._log is None else self._log,
            cwd=self._cwd,
            bufsize=0,
        )
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._log is not None:
            os.close(self._log)
            self._log = None

    # --- to the server ----------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def send(self, *messages: object) -> None:
        """Each message on a line."""
        self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def ask(self, method: str, params: object = None, *, request_id: object = None) -> object:
        """Send a request; returns its id."""
        request_id = next(self._ids) if request_id is None else request_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return request_id

    def call(self, name: str, *, token: object = None, request_id: object = None, **arguments) -> object:
        """Send a legacy tools/call; returns its id."""
        params: dict = {"name": name, "arguments": arguments}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.ask("tools/call", params, request_id=request_id)

    def block(self, gate: str = "g", request_id: object = None) -> object:
        """Have the toy's blocking tool run; returns the call's id once it does."""
        request_id = self.call("block", gate=gate, token="block", request_id=request_id)
        assert self.read()["params"]["message"] == f"{gate} blocks"
        return request_id

    def cancel(self, request_id: object) -> None:
        """Send notifications/cancelled."""
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})

    # --- from the server --------------------------------------------------------------

    def read_some(self, size: int = 65536, timeout_s: float = PATIENCE_S) -> bytes:
        """The next bytes, b"" at the end of the output."""
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            raise Silence(f"nothing came within {timeout_s:g} s; stderr: {self.log()}")
        return os.read(self.process.stdout.fileno(), size)

    def read_line(self, timeout_s: float = PATIENCE_S) -> bytes:
        """The next whole line without its end; raises EOFError at the end of the output."""
        end = time.monotonic() + timeout_s
        parts = [self._buffer]
        while b"\n" not in parts[-1]:
            parts.append(self.read_some(timeout_s=max(0.0, end - time.monotonic())))
            if not parts[-1]:
                raise EOFError(f"the output ended with {b''.join(parts)[-200:]!r}; stderr: {self.log()}")
        line, _, self._buffer = b"".join(parts).partition(b"\n")
        return line

    def read(self, timeout_s: float = PATIENCE_S) -> object:
        """The next message."""
        return json.loads(self.read_line(timeout_s))

    def answer_to(self, request_id: object) -> dict:
        """Read on until the response with this id; notifications are collected, other responses are a fault."""
        while True:
            message = self.read()
            assert isinstance(message, dict), message
            if "method" in message:
                self.notifications.append(message)
                continue
            assert (type(message.get("id")), message.get("id")) == (type(request_id), request_id), message
            return message

    def request(self, method: str, params: object = None, *, request_id: object = None) -> dict:
        """Ask and read the response."""
        return self.answer_to(self.ask(method, params, request_id=request_id))

    def modern(self, method: str, **params) -> dict:
        """A request of the modern revision; returns the response."""
        return self.request(method, {**params, "_meta": {**META, **params.get("_meta", {})}})

    def initialize(self, version: str = "2025-11-25", capabilities: dict | None = None) -> dict:
        """The legacy handshake; returns the response."""
        client = {"name": "t", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": client}
        answer = self.request("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def is_silent(self, ping_id: object = "are you there") -> bool:
        """Whether nothing at all comes before the answer to a ping that is sent now."""
        self.ask("ping", request_id=ping_id)
        return self.read() == {"jsonrpc": "2.0", "id": ping_id, "result": {}}

    # --- the end ----------------------------------------------------------------------

    def close(self) -> None:
        """Close the server's standard input."""
        self.process.stdin.close()

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def rest(self) -> list:
        """All messages until the end of the output; fails on a half line."""
        parts = [self._buffer]
        while chunk := self.read_some():
            parts.append(chunk)
        data = b"".join(parts)
        assert data == b"" or data.endswith(b"\n"), data[-200:]
        self._buffer = b""
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def exit_status(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(PATIENCE_S)

    def peak_memory_kib(self) -> int:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))

    def log(self) -> str:
        """What the server has written to stderr so far."""
        if self._log is None:
            return "(not kept)"
        # The server shares the descriptor's position, which therefore has to stay.
        return os.pread(self._log, 16 << 20, 0).decode()


def toy(ctl: str, *words: str) -> list[str]:
    """The command line of the toy provider (mcp_toy.py), served by the built file's own core."""
    return [sys.executable, "-I", "-S", str(SUPPORT / "mcp_toy.py"), ctl, *words]
