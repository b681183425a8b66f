"""Commands with numbered effects from three `mcp` servers and the shell at once, on the same terminals.

`python soak/soak_effects.py dist/termsprawlctl [--short] [--minutes N]`: each command that was accepted has its
effect exactly once and its own exit status; each that was refused has none. Exits with 1 unless that is so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from support.mcp_client import McpServer
from support.running_host import RunningHost

TERMINALS, COMMANDS = 200, 10_000
SHORT_TERMINALS, SHORT_COMMANDS = 4, 60
BRIDGES = 3
MINUTES = 240


class Effects:
    """The commands that are still to be run, and what became of those that were."""

    def __init__(self, host: RunningHost, terminals: int, commands: int, until_s: float) -> None:
        self.file = host.project / "effects"
        self._terminals = [host.value("terminal_open")["nodeId"] for _ in range(terminals)]
        self._numbers = iter(range(commands))
        self._lock = threading.Lock()
        self._until_s = until_s
        self.begun = 0
        self.results: dict[int, dict] = {}

    def next(self) -> tuple[int, dict] | None:
        """A number and the arguments of its terminal_run; None when all are taken, or the time is up."""
        with self._lock:
            number = next(self._numbers, None) if time.monotonic() < self._until_s else None
            if number is None:
                return None
            self.begun += 1
        command = f"echo {number} >>{self.file}; (exit {number % 100})"
        return number, {"nodeId": self._terminals[number % len(self._terminals)], "command": command}

    def judge(self) -> tuple[Counter, list[str]]:
        """How many went which way, and what is not so."""
        seen = Counter(map(int, self.file.read_text().split()))
        counts: Counter = Counter(run=0, refused=0)
        faults = []
        for number, result in sorted(self.results.items()):
            counts["run" if result["ok"] else "refused"] += 1
            if seen[number] != int(result["ok"]):
                faults.append(f"{number} had its effect {seen[number]} times: {json.dumps(result)[:300]}")
            elif result["ok"] and result["value"]["exitStatus"] not in (number % 100, None):
                faults.append(f"{number} ended with another status: {json.dumps(result)[:300]}")
        return counts, faults


def by_bridge(host: RunningHost, effects: Effects) -> None:
    """One `mcp` server, one call after the other."""
    env = {**host.env, "TERMSPRAWL_SESSION_FILE": host.session_file}
    with McpServer([host.ctl, "mcp"], env) as server:
        server.initialize()
        while (task := effects.next()) is not None:
            number, arguments = task
            answer = server.request("tools/call", {"name": "terminal_run", "arguments": arguments})
            text = answer["result"]["content"][0]["text"]
            is_error = answer["result"].get("isError", False)
            effects.results[number] = (
                {"ok": False, "error": text} if is_error else {"ok": True, "value": value_of(text)}
            )


def value_of(text: str) -> dict:
    """The value in a tool's text, which may be the whole result."""
    value = json.loads(text)
    return value.get("value", value)


def by_shell(host: RunningHost, effects: Effects) -> None:
    """`termsprawlctl call`, a process each."""
    while (task := effects.next()) is not None:
        effects.results[task[0]] = host.call("terminal_run", **task[1])


def soak(program: str, terminals: int, commands: int, minutes: float = MINUTES) -> tuple[Counter, list[str]]:
    """Run the commands; returns what Effects.judge() says."""
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        root = Path(folder)
        host = RunningHost(program, root, {"PATH": os.environ["PATH"], "HOME": folder, "SHELL": "/bin/bash"})
        host.start()
        try:
            effects = Effects(host, terminals, commands, time.monotonic() + 60 * minutes)
            callers = [threading.Thread(target=by_bridge, args=(host, effects)) for _ in range(BRIDGES)]
            callers.append(threading.Thread(target=by_shell, args=(host, effects)))
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            counts, faults = effects.judge()
            if len(effects.results) != effects.begun:
                faults.append(f"{effects.begun - len(effects.results)} commands got no answer")
            return counts, faults
        finally:
            host.stop("--kill-sessions")


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether each command has its effect exactly once, or is refused.")
    parser.add_argument("program", help="the built file")
    parser.add_argument("--short", action="store_true", help="some seconds of it")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="begin nothing after so long")
    options = parser.parse_args()
    size = (SHORT_TERMINALS, SHORT_COMMANDS) if options.short else (TERMINALS, COMMANDS)
    counts, faults = soak(os.path.abspath(options.program), *size, options.minutes)
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    for fault in faults:
        print(f"NOT SO: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
