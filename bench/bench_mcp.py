"""The MCP bridge against bridges on the official SDKs, and against no bridge at all.

Time to the first tools/list and memory then; what a call takes through the bridge and how much the bridge adds to
the same call over HTTP; calls per second with several in flight; memory after those. The app behind all of them is
the same.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support import counterparts
from support.figures import PYTHON, Row, compared
from support.mcp_client import META, McpServer
from support.pump import Pump
from support.restarting_app import RestartingApp

DRIVERS = Path(__file__).resolve().parents[1] / "tests" / "counterparts" / "drivers"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
CALLS_PER_ROUND = 20  # of each way, one after the other
CALLS_AT_ONCE = 100  # in a round of those with several in flight
IN_FLIGHT = 8
SDKS = {"python": "the Python SDK", "typescript": "the TypeScript SDK"}
# The least that a server in Python can do: start, read a line and answer it.
BARE = """
import sys
sys.stdin.readline()
sys.stdout.write('{"result":{"tools":[]}}' + chr(10))
sys.stdout.flush()
sys.stdin.readline()
"""


class Bridges:
    """The commands to compare: `ours` and those of the SDKs that are installed; `absent` tells why one is not."""

    def __init__(self, program: str, session: str, folder: Path) -> None:
        self.env = {"PATH": os.pathsep.join([os.path.dirname(PYTHON), os.defpath]), "HOME": str(folder)}
        self.commands = {"ours": [program, "mcp", "--session", session]}
        self.absent: dict[str, str] = {}
        tools = folder / "tools.json"
        self.tools = first_list(self.commands["ours"], self.env)[2]
        tools.write_text(json.dumps(self.tools))
        for key, command in (("python", _on_python), ("typescript", _on_typescript)):
            try:
                self.commands[key] = [str(word) for word in [*command(), tools, session]]
            except pytest.skip.Exception as reason:
                self.absent[key] = str(reason)

    def others(self, measured: dict[str, list]) -> dict:
        """The SDKs' measurements, or why there are none, as figures.compared() takes them."""
        return {name: (key, measured.get(key) or self.absent[key]) for key, name in SDKS.items()}


def _on_python() -> list:
    return [counterparts.python(), DRIVERS / "python_server.py"]


def _on_typescript() -> list:
    package = counterparts.package("@modelcontextprotocol/sdk")
    return [counterparts.node(), DRIVERS / "typescript_server.mjs", package]


def rows(program: str, runs: int) -> list[Row]:
    """All of it; `runs` rounds of each, in turn."""
    with tempfile.TemporaryDirectory(prefix="b") as place:
        folder = Path(place)
        app = RestartingApp(folder)
        try:
            app.start()
            bridges = Bridges(program, app.session, folder)
            return [*_first_lists(bridges, runs), *_calls(bridges, app.session, runs)]
        finally:
            app.stop()


def _first_lists(bridges: Bridges, runs: int) -> list[Row]:
    commands = {"bare": [PYTHON, "-I", "-S", "-c", BARE], **bridges.commands}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-1, runs):
        for name, command in commands.items():
            taken_s, kib, listed = first_list(command, bridges.env)
            if name != "bare":
                assert len(listed) == len(bridges.tools), name
            if number >= 0:
                seconds[name].append(taken_s)
                memory[name].append(kib)
    found = []
    for key, what, unit, factor, taken in (
        ("list", "first tools/list of mcp", "ms", 1000, seconds),
        ("list memory", "memory of mcp then", "MiB", 1 / 1024, memory),
    ):
        others = {"a python3 that echoes a line": ("bare", taken["bare"]), **bridges.others(taken)}
        found += compared(key, what, taken["ours"], others, unit, factor)
    return found


def first_list(command: list[str], env: dict) -> tuple[float, int, list]:
    """(seconds from start to the first tools/list answer, peak resident KiB then, the tools)."""
    message = json.dumps(LIST).encode() + b"\n"
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )
    with process:
        process.stdin.write(message)
        data = b""
        while not data.endswith(b"\n"):
            chunk = os.read(process.stdout.fileno(), 1 << 20)
            if not chunk:
                sys.exit(f"no tools came from {command[0]}")
            data += chunk
        seconds = time.perf_counter() - start
        kib = _peak_kib(process.pid)
        process.stdin.close()
        process.wait()
    return seconds, kib, json.loads(data)["result"]["tools"]


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else ["VmHWM: 0"]
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _calls(bridges: Bridges, session: str, runs: int) -> list[Row]:
    """One call after the other and several at once, through each bridge and past all of them."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, command in bridges.commands.items():
            servers[name] = stack.enter_context(McpServer(command, bridges.env))
            servers[name].initialize()
        ways = {"direct": lambda number: direct(session, number)}
        ways.update({name: lambda number, server=server: _through(server, number) for name, server in servers.items()})
        taken: dict[str, list[float]] = {name: [] for name in ways}
        rates: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(-1, runs):
            for number in range(CALLS_PER_ROUND):
                for name, way in ways.items():
                    begun = time.perf_counter()
                    way(number)
                    if turn >= 0:
                        taken[name].append(time.perf_counter() - begun)
            for name, server in servers.items():
                rate = _rate(server)
                if turn >= 0:
                    rates[name].append(rate)
        peaks = {name: [_peak_kib(server.process.pid)] for name, server in servers.items()}
    floor_s = statistics.median(taken["direct"])
    added = {name: [statistics.median(values) - floor_s] for name, values in taken.items() if name != "direct"}
    plain = {"the same call by http.client": ("direct", taken["direct"])}
    return [
        *compared("call", "a call through mcp", taken["ours"], {**plain, **bridges.others(taken)}, "ms", 1000),
        *compared("call added", "added to a call over HTTP by mcp", added["ours"], bridges.others(added), "ms", 1000),
        *compared("rate", f"calls through mcp, {IN_FLIGHT} in flight", rates["ours"], bridges.others(rates), "per s"),
        *compared("call memory", "memory of mcp after them", peaks["ours"], bridges.others(peaks), "MiB", 1 / 1024),
    ]


def direct(session: str, number: int) -> None:
    """The call itself, as a client without a bridge makes it: files read, one connection."""
    token = json.loads(Path(session).read_bytes())["token"]
    url = json.loads((Path(session).parent.parent / "endpoint.json").read_bytes())["url"]
    connection = http.client.HTTPConnection("127.0.0.1", int(url.split(":")[2].partition("/")[0]))
    body = json.dumps({"operation": "terminal_submit", "args": _arguments(number)})
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json", "connection": "close"}
    connection.request("POST", "/call", body, headers)
    result = json.loads(connection.getresponse().read())
    connection.close()
    assert result["value"]["nodeId"] == str(number)


def _arguments(number: int) -> dict:
    return {"nodeId": str(number), "command": "make test"}


def _through(server: McpServer, number: int) -> None:
    _check(server.answer_to(server.call("terminal_submit", **_arguments(number))), number)


def _check(message: dict, number: int) -> None:
    assert json.loads(message["result"]["content"][0]["text"])["value"]["nodeId"] == str(number), message


def _rate(server: McpServer) -> float:
    """Calls per second."""
    pump = Pump(server)
    begun = time.perf_counter()
    for number in range(CALLS_AT_ONCE):
        if len(pump.waiting) >= IN_FLIGHT:
            _check_next(pump)
        pump.call("terminal_submit", _arguments(number), number)
    while pump.waiting:
        _check_next(pump)
    return CALLS_AT_ONCE / (time.perf_counter() - begun)


def _check_next(pump: Pump) -> None:
    number, message = pump.next()
    _check(message, number)
