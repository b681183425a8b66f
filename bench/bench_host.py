"""The embedded host against the app's stand-in in Node: calls per second, CPU for each, and memory.

Clients are processes of their own that open a connection for each call, as every client does; the two servers
are asked in turn, round by round. CPU and memory are the servers' own, as the kernel counts them.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from support import node_app
from support.figures import PYTHON, Row, compared
from support.running_host import RunningHost

CALLS_PER_ROUND = 240  # shared by the clients of a round
CLIENTS = (1, 8)
OPERATIONS = ("session_info", "canvas_list")
NOTES = 5  # on the canvas that is listed
OURS, NODE = "ours", "the app's stand-in in Node"
# Waits for a line, then calls as fast as it can; the request is made once, so that the server is what takes time.
CLIENT = r"""
import json, socket, sys
port, token, operation, calls = sys.argv[1:]
body = json.dumps({"operation": operation, "args": {}}).encode()
head = "POST /call HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n"
request = (head % (token, len(body))).encode() + body
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(calls)):
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200 "), answer
    print("done", flush=True)
"""


class Figures:
    """What the rounds measured of one server, by (operation, clients)."""

    def __init__(self) -> None:
        self.rates: dict[tuple[str, int], list[float]] = {}
        self.cpu_us: dict[tuple[str, int], list[float]] = {}
        self.memory_mib: list[float] = []


def rows(program: str, runs: int) -> list[Row]:
    """Every figure, with Node's beside it; a reason where a server cannot be measured."""
    # Short, because sockets are made in it.
    with tempfile.TemporaryDirectory(prefix="b") as place, contextlib.ExitStack() as running:
        try:
            servers = {OURS: _started(RunningHost, program, Path(place, "o"), running)}
        except (OSError, AssertionError, subprocess.SubprocessError) as reason:
            return _absent(str(reason).strip() or type(reason).__name__)
        why = node_app.absent()
        if not why:
            servers[NODE] = _started(node_app.NodeApp, program, Path(place, "n"), running)
        figures = {name: Figures() for name in servers}
        for operation in OPERATIONS:
            for clients in CLIENTS:
                _measure(servers, figures, operation, clients, runs)
        for name, server in servers.items():
            figures[name].memory_mib.append(_memory_mib(server.pid()))
    return _rows(figures[OURS], figures.get(NODE), why)


def _started(kind: type[RunningHost], program: str, root: Path, running: contextlib.ExitStack) -> RunningHost:
    root.mkdir()
    env = {"PATH": f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", "HOME": str(root), "SHELL": "/bin/sh"}
    server = kind(program, root, env)
    running.callback(server.stop, "--kill-sessions")
    server.start()
    for _ in range(NOTES):
        server.value("sticky_open", text="a note")
    return server


def _measure(servers: dict, figures: dict, operation: str, clients: int, runs: int) -> None:
    with contextlib.ExitStack() as stack:
        crews = {name: _crew(server, operation, clients, stack) for name, server in servers.items()}
        for _ in range(runs):
            for name, crew in crews.items():
                before_s = _cpu_s(servers[name].pid())
                taken_s = _seconds_of(crew)
                spent_s = _cpu_s(servers[name].pid()) - before_s
                figures[name].rates.setdefault((operation, clients), []).append(CALLS_PER_ROUND / taken_s)
                figures[name].cpu_us.setdefault((operation, clients), []).append(1e6 * spent_s / CALLS_PER_ROUND)
        for crew in crews.values():
            for client in crew:
                client.stdin.close()


def _crew(server: RunningHost, operation: str, clients: int, stack: contextlib.ExitStack) -> list[subprocess.Popen]:
    words = [
        PYTHON,
        "-ISB",
        "-c",
        CLIENT,
        str(server.port()),
        server.token(),
        operation,
        str(CALLS_PER_ROUND // clients),
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    crew = [stack.enter_context(subprocess.Popen(words, env=server.env, **pipes)) for _ in range(clients)]
    for client in crew:
        client.stdout.readline()
    return crew


def _seconds_of(crew: list) -> float:
    """How long the clients need for their calls, started together."""
    start = time.perf_counter()
    for client in crew:
        client.stdin.write("go\n")
    for client in crew:
        client.stdout.readline()
    return time.perf_counter() - start


def _rows(ours: Figures, node: Figures | None, why: str) -> list[Row]:
    found = []
    for operation in OPERATIONS:
        for clients in CLIENTS:
            key, what = (operation, clients), f"{operation}, {clients} client{'s' * (clients > 1)}"
            rates = ours.rates[key], node and node.rates[key]
            found += _against(f"host {operation} {clients}", f"calls of {what}", *rates, "per s", why)
            # The CPU clock counts hundredths of a second: only the mean over all rounds says something.
            costs = [statistics.mean(ours.cpu_us[key])], node and [statistics.mean(node.cpu_us[key])]
            found += _against(f"host cpu {operation} {clients}", f"CPU of a call of {what}", *costs, "us", why)
    found += _against("host memory", "memory of the host", ours.memory_mib, node and node.memory_mib, "MiB", why)
    return found


def _against(key: str, what: str, ours: list[float], node: list[float] | None, unit: str, why: str) -> list[Row]:
    return compared(key, what, ours, {NODE: ("node", node if node is not None else why)}, unit)


def _absent(why: str) -> list[Row]:
    return [Row(key, key, None, None, NODE, "", why) for key in KEYS]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mib(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


KEYS = [
    *(
        f"host {what}{operation} {clients}/node"
        for what in ("", "cpu ")
        for operation in OPERATIONS
        for clients in CLIENTS
    ),
    "host memory/node",
]
