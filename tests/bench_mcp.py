"""The MCP server against one on the official Python SDK: time to the first tools/list, and memory.

rows() gives table rows; both sides run in turn on the same machine, so the ratios mean something.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.counterparts import INSTALLED, INSTALLER

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / "tests" / "counterparts" / "drivers" / "python_server.py"
PYTHON = os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
SDK_PYTHON = INSTALLED / "python" / "bin" / "python"
PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}


def rows(program: str | None = None, runs: int = 15) -> list[tuple[str, str, str, str]]:
    """(what, ours, the other's, ratio) as text; the other's says why where it could not be measured."""
    ours = [program or str(ROOT / "dist" / "termsprawlctl"), "mcp", "--session", "/nonexistent"]
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": os.pathsep.join([os.path.dirname(PYTHON), os.defpath]), "HOME": folder}
        tools = Path(folder) / "tools.json"
        tools.write_text(json.dumps(first_list(ours, env)[2]))
        commands = {"bare": [PYTHON, "-I", "-S", "-c", BARE], "ours": ours}
        if (INSTALLED / "python" / "requirements.txt").is_file():
            commands["sdk"] = [str(SDK_PYTHON), str(DRIVER), str(tools)]
        measured: dict[str, list] = {name: [] for name in commands}
        for number in range(-1, runs):
            for name, command in commands.items():
                seconds, kib, listed = first_list(command, env)
                if number >= 0:
                    measured[name].append((seconds, kib))
                if name != "bare":
                    assert len(listed) == len(json.loads(tools.read_text()))
    medians = {name: tuple(statistics.median(column) for column in zip(*values)) for name, values in measured.items()}
    return [*_rows(medians, "bare", "a bare python3 that echoes a line"), *_rows(medians, "sdk", "the Python SDK")]


# The least that a server in Python can do: start, read a line and answer it.
BARE = """
import sys
sys.stdin.readline()
sys.stdout.write('{"result":{"tools":[]}}' + chr(10))
sys.stdout.flush()
sys.stdin.readline()
"""


def _rows(medians: dict, other: str, name: str) -> list[tuple[str, str, str, str]]:
    ours_s, ours_kib = medians["ours"]
    titles = (f"first tools/list, against {name}", f"memory then, against {name}")
    ours = (f"{ours_s * 1000:.1f} ms", f"{ours_kib / 1024:.1f} MiB")
    if other not in medians:
        return [(title, mine, f"not measured: run {INSTALLER}", "") for title, mine in zip(titles, ours)]
    other_s, other_kib = medians[other]
    theirs = (f"{other_s * 1000:.1f} ms", f"{other_kib / 1024:.1f} MiB")
    ratios = (f"{other_s / ours_s:.2f}", f"{other_kib / ours_kib:.2f}")
    return [(title, mine, their, ratio) for title, mine, their, ratio in zip(titles, ours, theirs, ratios)]


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
        status = Path(f"/proc/{process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else ["VmHWM: 0"]
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        process.stdin.close()
        process.wait()
    return seconds, kib, json.loads(data)["result"]["tools"]


if __name__ == "__main__":
    for row in rows(*sys.argv[1:2]):
        print("  ".join(row))
