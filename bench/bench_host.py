"""Calls per second of the embedded host, from one client and from several, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

from support.figures import PYTHON, Row, compared
from support.running_host import RunningHost

CALLS_PER_ROUND = 160  # shared by the clients of a round
CLIENTS = (1, 8)
# Waits for a line, then calls as fast as it can through the archive's own transport.
CLIENT = r"""
import sys
archive, session, calls = sys.argv[1:]
sys.path.insert(0, archive)
from termsprawlctl.app.transport import call
assert call(session, "session_info")["ok"]
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(calls)):
        assert call(session, "session_info")["ok"]
    print("done", flush=True)
"""


def rows(program: str, runs: int) -> list[Row]:
    """One client's rate, and eight clients' against it."""
    one, eight = "calls of the host, one client", "calls of the host, eight clients"
    # Short, because sockets are made in it.
    with tempfile.TemporaryDirectory(prefix="b") as place:
        env = {"PATH": f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", "HOME": place, "SHELL": "/bin/sh"}
        host = RunningHost(program, Path(place), env)
        try:
            rates = calls_per_second(program, host.start(), env, runs)
        except (OSError, AssertionError, subprocess.SubprocessError) as reason:
            why = str(reason).strip() or type(reason).__name__
            return [
                Row("host one", one, None, None, "", "per s", why),
                Row("host eight", eight, None, None, "", "per s", why),
            ]
        finally:
            host.stop("--kill-sessions")
    (alone,) = compared("host one", one, rates[1], {"": ("", rates[1])}, "per s")
    return [
        alone._replace(key="host one", other=None),
        *compared("host eight", eight, rates[8], {"one client": ("one", rates[1])}, "per s"),
    ]


def calls_per_second(archive: str, session: str, env: dict, runs: int) -> dict[int, list[float]]:
    """Number of clients to their calls per second together, one figure for each round."""
    rates: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
    with contextlib.ExitStack() as stack:
        crews = {}
        for clients in CLIENTS:
            words = [PYTHON, "-ISB", "-c", CLIENT, archive, session, str(CALLS_PER_ROUND // clients)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
            crews[clients] = [stack.enter_context(subprocess.Popen(words, env=env, **pipes)) for _ in range(clients)]
        for crew in crews.values():
            for client in crew:
                client.stdout.readline()
        for _ in range(runs):
            for clients, crew in crews.items():
                rates[clients].append(CALLS_PER_ROUND / _seconds_of(crew))
        for crew in crews.values():
            for client in crew:
                client.stdin.close()
    return rates


def _seconds_of(crew: list) -> float:
    """How long the clients need for their calls, started together."""
    start = time.perf_counter()
    for client in crew:
        client.stdin.write("go\n")
    for client in crew:
        client.stdout.readline()
    return time.perf_counter() - start
