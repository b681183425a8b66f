"""The embedded host against the app's stand-in in Node: calls per second, CPU for each, and memory.

Clients are processes of their own that open a connection for each call, as every client does; the two servers
are asked in turn, round by round. CPU and memory are the servers' own, as the kernel counts them.
"""

from __future__ import annotations

import contextlib
import json
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
# A large canvas: what is done to it, by one client, and how often in a round.
MANY_NOTES, LARGE_CALLS_PER_ROUND = 3_000, 24
LARGE = {"canvas_move": [{"nodeId": "n-7", "x": 1, "y": 2}, {"nodeId": "n-7", "x": 2, "y": 1}], "canvas_list": [{}]}
OURS, NODE = "ours", "the app's stand-in in Node"
# Waits for a line, then calls as fast as it can; the requests are made once, so that the server is what takes time.
CLIENT = r"""
import json, socket, sys
port, token, operation, calls, some_args = sys.argv[1:]
head = "POST /call HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n"
bodies = [json.dumps({"operation": operation, "args": args}).encode() for args in json.loads(some_args)]
requests = [(head % (token, len(body))).encode() + body for body in bodies]
print("ready", flush=True)
for line in sys.stdin:
    for number in range(int(calls)):
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            connection.sendall(requests[number % len(requests)])
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200 "), answer
    print("done", flush=True)
"""


class Figures:
    """What the rounds measured of one server, by what was done: the operation and the number of clients, or `large`."""

    def __init__(self) -> None:
        self.rates: dict[str, list[float]] = {}
        self.cpu_us: dict[str, list[float]] = {}
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
                _measure(servers, figures, f"{operation} {clients}", operation, runs, clients=clients)
        for name, server in servers.items():
            figures[name].memory_mib.append(_memory_mib(server.pid()))
            _fill(server)
        for operation, some_args in LARGE.items():
            _measure(servers, figures, f"large {operation}", operation, runs, some_args, calls=LARGE_CALLS_PER_ROUND)
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


def _fill(server: RunningHost) -> None:
    """Make its canvas a large one, as another program would."""
    path = server.project / ".termsprawl" / "project.json"
    note = {"type": "sticky", "style": {"width": 200, "height": 130}}
    text = {"kind": "sticky", "text": "a note " * 10, "color": "amber", "collapsed": False}
    places = ({"id": f"n-{number}", "position": {"x": number * 240, "y": 60}} for number in range(MANY_NOTES))
    document = {"version": 1, "rev": 100, "nodes": [{**place, **note, "data": text} for place in places]}
    path.write_text(json.dumps(document, indent=2))


def _measure(
    servers: dict,
    figures: dict,
    what: str,
    operation: str,
    runs: int,
    some_args: list[dict] | None = None,
    *,
    clients: int = 1,
    calls: int = CALLS_PER_ROUND,
) -> None:
    words = [operation, str(calls // clients), json.dumps(some_args or [{}])]
    with contextlib.ExitStack() as stack:
        crews = {name: _crew(server, words, clients, stack) for name, server in servers.items()}
        for _ in range(runs):
            for name, crew in crews.items():
                before_s = _cpu_s(servers[name].pid())
                taken_s = _seconds_of(crew)
                spent_s = _cpu_s(servers[name].pid()) - before_s
                figures[name].rates.setdefault(what, []).append(calls / taken_s)
                figures[name].cpu_us.setdefault(what, []).append(1e6 * spent_s / calls)
        for crew in crews.values():
            for client in crew:
                client.stdin.close()


def _crew(server: RunningHost, words: list[str], clients: int, stack: contextlib.ExitStack) -> list[subprocess.Popen]:
    words = [PYTHON, "-ISB", "-c", CLIENT, str(server.port()), server.token(), *words]
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
            key, what = f"{operation} {clients}", f"{operation}, {clients} client{'s' * (clients > 1)}"
            rates = ours.rates[key], node and node.rates[key]
            found += _against(f"host {key}", f"calls of {what}", *rates, "per s", why)
            found += _against(f"host cpu {key}", f"CPU of a call of {what}", *_costs(ours, node, key), "us", why)
    for operation in LARGE:
        key, what = f"large {operation}", f"{operation} among {MANY_NOTES:,} notes"
        times = [[1e3 / rate for rate in side.rates[key]] if side else None for side in (ours, node)]
        found += _against(f"host {key}", what, times[0] or [], times[1], "ms", why)
        costs = [[us / 1e3 for us in each] if each else None for each in _costs(ours, node, key)]
        found += _against(f"host cpu {key}", f"CPU of {what}", costs[0] or [], costs[1], "ms", why)
    found += _against("host memory", "memory of the host", ours.memory_mib, node and node.memory_mib, "MiB", why)
    return found


def _costs(ours: Figures, node: Figures | None, key: str) -> tuple[list[float], list[float] | None]:
    # The CPU clock counts hundredths of a second: only the mean over all rounds says something.
    return [statistics.mean(ours.cpu_us[key])], [statistics.mean(node.cpu_us[key])] if node else None


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
    *(f"host {what}large {operation}/node" for what in ("", "cpu ") for operation in LARGE),
    "host memory/node",
]
