"""Many requests in flight to one MCP server, and a ledger of what became of each."""

from __future__ import annotations

import itertools
from collections import Counter

from .mcp_client import McpServer

MAX_FAULTS = 20  # kept as text; all are counted


class Pump:
    """Sends requests with an entry each, and gives the entry back with the answer.

    Every answer has to belong to a request that waits for one. `counts` has sent, answered, duplicate (an id that
    nobody waits for), wrong and lost; `faults` says what was wrong in words.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.waiting: dict[int, object] = {}
        self.counts: Counter = Counter(sent=0, answered=0, duplicate=0, wrong=0, lost=0)
        self.faults: list[str] = []
        self.unidentified = 0  # answers with the id null
        self._ids = itertools.count(1_000_000)

    def send(self, *requests: tuple[str, dict | None, object]) -> list[int]:
        """(method, params, entry) each, in one write; returns their ids."""
        ids, messages = [], []
        for method, params, entry in requests:
            request_id = next(self._ids)
            self.waiting[request_id] = entry
            ids.append(request_id)
            message = {"jsonrpc": "2.0", "id": request_id, "method": method}
            messages.append(message if params is None else {**message, "params": params})
        self.counts["sent"] += len(ids)
        self.server.send(*messages)
        return ids

    def call(self, name: str, arguments: dict, entry: object) -> int:
        """One tools/call; returns its id."""
        return self.send(("tools/call", {"name": name, "arguments": arguments}, entry))[0]

    def next(self, timeout_s: float = 60.0) -> tuple[object, dict]:
        """(entry, answer) of the next answer to one of the requests."""
        while True:
            message = self.server.read(timeout_s)
            if "method" in message:
                continue  # progress
            if message.get("id") is None:
                self.unidentified += 1
                continue
            if message["id"] not in self.waiting:
                self.counts["duplicate"] += 1
                self.fault(f"an answer that nobody waits for: {str(message)[:200]}")
                continue
            self.counts["answered"] += 1
            return self.waiting.pop(message["id"]), message

    def settle(self, request_id: int) -> bool:
        """A request that gets no answer any more; False when it has got one."""
        return self.waiting.pop(request_id, self) is not self

    def expect(self, right: bool, what: str) -> None:
        """Count and keep what is not right."""
        if not right:
            self.counts["wrong"] += 1
            self.fault(what)

    def fault(self, what: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(what)

    def close_ledger(self) -> None:
        """Whatever still waits is lost."""
        self.counts["lost"] += len(self.waiting)
        for request_id, entry in itertools.islice(self.waiting.items(), 5):
            self.fault(f"no answer to {request_id}: {entry!r}")
        self.waiting.clear()
