"""An embedded host through many calls by two `mcp` servers at once, with terminals opened, used and closed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.footprint import sample
from support.mcp_client import McpServer
from support.pump import Pump
from support.running_host import RunningHost

TERMINALS, SHORT_TERMINALS = 200, 8
WARM_UP, SHORT_WARM_UP = 20, 4  # terminals, on top of them
SAMPLES = 20
# Terminals in use at once by each client; and how many other calls go on beside them.
IN_USE, BESIDE = 3, 2
CALLS_BESIDE = 15  # for each terminal
PATIENCE_S = 60.0


class Client:
    """One `mcp` server and its users, generators that yield (operation, arguments) and get the result."""

    def __init__(self, server: McpServer, number: int) -> None:
        self.pump = Pump(server)
        self.terminals: Counter = Counter(opened=0, closed=0, reads=0)
        self._number = number
        self._left = 0
        self._calls_left = 0

    def begin(self, terminals: int) -> None:
        """Start on so many terminals."""
        self._left, self._calls_left = terminals, terminals * CALLS_BESIDE
        for user in [*(self._use_terminals() for _ in range(IN_USE)), *(self._ask() for _ in range(BESIDE))]:
            self._next(user, None)

    def follow(self) -> None:
        """Read one answer and let its user go on."""
        (user, operation), message = self.pump.next()
        result = message.get("result")
        if result is None:
            self.pump.expect(False, f"{operation}: {str(message)[:300]}")
            return
        told = json.loads(result["content"][0]["text"])
        self.pump.expect(result["isError"] != told["ok"], f"{operation}: {str(message)[:300]}")
        self._next(user, told)

    def _next(self, user, told: dict | None) -> None:
        with contextlib.suppress(StopIteration):
            operation, arguments = user.send(told)
            self.pump.call(operation, arguments, (user, operation))

    def _use_terminals(self):
        while self._left > 0:
            self._left -= 1
            self.terminals["opened"] += 1
            key = self.terminals["opened"] * 10 + self._number
            opened = yield "terminal_open", {"title": f"soak {key}"}
            node = opened["value"]["nodeId"]
            command = {"nodeId": node, "command": f"echo it-is-$(({key} * 7))-; seq 200"}
            submitted = yield "terminal_submit", command
            self.pump.expect(submitted["ok"] and submitted["value"]["nodeId"] == node, f"submit: {submitted}")
            yield from self._read_until(node, f"it-is-{key * 7}-")
            closed = yield "terminal_close", {"nodeId": node}
            self.pump.expect(closed == {"ok": True, "value": {"nodeId": node, "closed": True}}, f"close: {closed}")
            self.terminals["closed"] += 1
            gone = yield "terminal_read", {"nodeId": node}
            self.pump.expect(node in gone.get("error", ""), f"a closed terminal was read: {gone}")

    def _read_until(self, node: str, text: str):
        end_s = time.monotonic() + PATIENCE_S
        while True:
            self.terminals["reads"] += 1
            shown = yield "terminal_read", {"nodeId": node}
            if not shown["ok"] or text in shown["value"]["output"]:
                self.pump.expect(shown["ok"], f"read: {shown}")
                return
            if time.monotonic() > end_s:
                self.pump.expect(False, f"{text} did not come: {shown}")
                return

    def _ask(self):
        while self._calls_left > 0:
            self._calls_left -= 1
            if self._calls_left % 2:
                told = yield "session_info", {}
                right = told["value"]["host"] == "local"
            else:
                told = yield "canvas_list", {}
                right = len(told["value"]) <= 2 * IN_USE
            self.pump.expect(right, f"{str(told)[:300]}")


def _run(clients: list[Client], terminals: int) -> None:
    """So many terminals, shared by the clients, until everything is answered."""
    for number, client in enumerate(clients):
        client.begin(terminals * (number + 1) // len(clients) - terminals * number // len(clients))
    while busy := [client for client in clients if client.pump.waiting]:
        for client in busy:
            client.follow()


def soak(program: str, terminals: int, tell=lambda share: None) -> dict:
    """One host through so many terminals; a part of the report. tell(share done) follows it."""
    begun_s = time.monotonic()
    samples = max(4, min(SAMPLES, terminals // 5))
    # Short: a socket's path has to fit into some 100 bytes.
    with tempfile.TemporaryDirectory(prefix="s") as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        temporary = root / "tmp"
        temporary.mkdir()
        path = os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ.get("PATH", os.defpath)])
        host = RunningHost(program, root, {"PATH": path, "HOME": folder, "SHELL": "/bin/sh", "TMPDIR": str(temporary)})
        session = host.start()
        stack.callback(host.stop, "--kill-sessions")
        argv = [program, "mcp", "--session", session]
        clients = [Client(stack.enter_context(McpServer(argv, host.env)), number) for number in range(2)]
        for client in clients:
            client.pump.server.initialize()
        watched = {"host": host.pid(), "mcp": clients[0].pump.server.process.pid}
        _run(clients, WARM_UP if terminals > WARM_UP else SHORT_WARM_UP)
        taken = {name: [sample(pid, 0.0, temporary)] for name, pid in watched.items()}
        for turn in range(samples):
            _run(clients, terminals * (turn + 1) // samples - terminals * turn // samples)
            for name, pid in watched.items():
                taken[name].append(sample(pid, (turn + 1) / samples, temporary, taken[name][0]))
            tell((turn + 1) / samples)
        left = host.tmux("list-sessions", "-F", "#{session_name}").stdout.split()
        clients[0].pump.expect(not left, f"terminals that were closed are left: {left}")
        for client in clients:
            client.pump.close_ledger()
        counts = sum((client.pump.counts + client.terminals for client in clients), Counter())
        names = [*clients[0].pump.counts, *clients[0].terminals]
    return {
        "what": f"host: {terminals} terminals opened, used and closed by two clients",
        "seconds": time.monotonic() - begun_s,
        "counts": {name: counts[name] for name in names},
        "faults": [fault for client in clients for fault in client.pump.faults],
        "processes": taken,
    }
