"""A stand-in for the app behind the bridge: the server side of the tool hop, scripted by the test.

The embedded host is the real thing; this one can hold an answer back, break a connection
and say what the host never says.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from support.scripted_server import ScriptedServer, answer
from support.session_files import SessionFiles

from .waiting import PATIENCE_S


class StandInApp:
    """`with StandInApp(tmp_path) as app:`; app.session is the session file to hand over.

    `replies` maps an operation to a ToolResult or a function from the args to one; any
    other operation is echoed. `held` maps an operation to an Event that its answer waits
    for. `operations` are the requests in the order in which they arrived.
    """

    def __init__(self, root: Path) -> None:
        self.files = SessionFiles(root)
        self.session = str(self.files.session)
        self.replies: dict = {"session_info": {"ok": True, "value": {"nodeId": "agent-1", "operations": []}}}
        self.held: dict[str, threading.Event] = {}
        self.hung_up: list[str] = []
        self.requests: list[tuple[str, object]] = []
        self._changed = threading.Condition()
        self._server: ScriptedServer | None = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *fault) -> None:
        for gate in self.held.values():
            gate.set()
        self.stop()

    def start(self) -> None:
        """Listen on a new port and publish it, as an app does that starts."""
        self._server = ScriptedServer(self._serve).__enter__()
        self.files.write_endpoint(self._server.port)

    def stop(self) -> None:
        """Go away; the endpoint file stays behind, as after a crash."""
        if self._server is not None:
            self._server.__exit__(None, None, None)
            self._server = None

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.requests]

    def wait_for(self, operation: str, times: int = 1) -> None:
        """Wait until an operation has arrived so many times."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.operations.count(operation) >= times, PATIENCE_S), self.requests

    def hold(self, operation: str) -> threading.Event:
        """Answer this operation only once the returned event is set."""
        self.held[operation] = threading.Event()
        return self.held[operation]

    def _serve(self, connection) -> None:
        message = connection.read_request().json
        operation, args = message.get("operation"), message["args"]
        with self._changed:
            self.requests.append((operation, args))
            self._changed.notify_all()
        gate = self.held.get(operation)
        while gate is not None and not gate.is_set():
            if not connection.client_is_there(0.02):
                with self._changed:
                    self.hung_up.append(operation)
                    self._changed.notify_all()
                return
        reply = self.replies.get(operation, {"ok": True, "value": {"operation": operation, "args": args}})
        with contextlib.suppress(OSError):
            connection.send(answer(reply(args) if callable(reply) else reply))

    def wait_for_hangup(self, operation: str) -> None:
        """Wait until a client has given up an operation that was held."""
        with self._changed:
            assert self._changed.wait_for(lambda: operation in self.hung_up, PATIENCE_S)
