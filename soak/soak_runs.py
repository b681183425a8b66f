"""One `mcp agent` server through many runs of every kind: completed, failed, cancelled, timed out, in background.

The server remembers the results of the last 200 runs in background, so it grows by some kB for each of those in
the first 200. The CLI is a script, and for a share of the runs the real codex, where it is installed, with a
scripted model service behind it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from support.fake_provider import FakeProvider
from support.footprint import sample
from support.mcp_client import McpServer
from support.pump import Pump
from support.real_agents import FLAGS, RealBox
from support.scripted_agent import Box
from support.waiting import until

RUNS, SHORT_RUNS = 200, 10
WARM_UP_ROUNDS = 3
RUNS_PER_SAMPLE = 10
# Of resident memory, that it may grow by in the 200 runs: what it remembers, some 5 kB for each run in background, and
# buffers of megabytes that come and go.
MEMORY_SHARE = 0.1
IN_FLIGHT = 6
# More calls at once than there ever are later, so that every worker thread exists after the warm-up.
CROWD = 3 * IN_FLIGHT
TIMEOUT_MS, SHORT_TIMEOUT_MS = 6_000, 4_000  # of all runs; most take a tenth of a second
FLOOD_BYTES = 2_000_000
# One run after the other does the next of these; the slowest is first, so that the others go on beside it.
KINDS = (
    "hang-time_out",
    "done",
    "real",
    "background-done",
    "hang-cancel",
    "fail",
    "done",
    "background-hang",
    "children",
    "flood",
    "done",
    "background-done",
    "real",
    "done",
    "children",
    "hang-cancel",
    "done",
    "background-fail",
    "flood",
    "real",
)
REAL_WORK = {"turns": [{"calls": [{"do": "run", "command": "echo hi"}]}, {"text": "Real work."}]}
# Acts as its prompt says: "do KIND NUMBER". Whatever asks for real work gets the real program.
SCRIPT = """\
REAL = {real!r}
prompt = sys.stdin.read()
words = prompt.split()
kind, number = words[1:3] if words[:1] == ["do"] else ("real", "0")
if kind == "real" and REAL:
    reading, writing = os.pipe()
    os.write(writing, prompt.encode())
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    os.execv(REAL, [REAL, *sys.argv[1:]])
begin()
item("command_execution", "started", id="c", command="make " + number)
item("command_execution", id="c", command="make " + number, aggregated_output="made", exit_code=0)
if kind == "hang":
    record("started-" + number, os.getpid())
    time.sleep(600)
if kind == "fail":
    sys.stderr.write("no luck with " + number)
    sys.exit(3)
if kind == "children":
    for session in (False, True):
        background("import time; time.sleep(600)", start_new_session=session)
if kind == "flood":
    for part in range(10):
        item("command_execution", id=str(part), command="cat", aggregated_output="x" * {part}, exit_code=0)
end("Done with " + number + ".")
"""


class Runs:
    """The client's side: starts runs by number and follows each to its end."""

    def __init__(self, server: McpServer, box: Box) -> None:
        self.pump = Pump(server)
        self.ended: Counter = Counter()
        self._box = box
        self._number = 0
        self._turn = 1  # in KINDS: the first warm-up goes without the slowest
        # What is to be done with the answer to a request: see _follow().
        self._steps = {"run": self._check, "start": self._started, "result": self._fetched, "cancelled": self._dropped}

    def warm_up(self, rounds: int) -> None:
        """So many rounds of all kinds, after one run alone, and then very many calls at once."""
        self._start("done", ("run", "done"))
        self.drain()
        self.run(rounds * len(KINDS) - 1)
        self._start("hang", ("start", "crowd"), background=True)
        self.drain()

    def run(self, runs: int) -> None:
        """So many runs, and all their answers."""
        for _ in range(runs):
            while len(self.pump.waiting) >= IN_FLIGHT:
                self._follow()
            kind = KINDS[self._turn % len(KINDS)]
            self._turn += 1
            how, _, rest = kind.partition("-")
            if how == "background":
                self._start(rest, ("start", rest), background=True)
            elif rest == "cancel":
                self._cancel_one()
            else:
                self._start(how, ("run", how))
        self.drain()

    def drain(self) -> None:
        """Read until all runs are over, and nothing of them is left."""
        while self.pump.waiting:
            self._follow()
        until(lambda: not self._box.family(), "the end of all that the runs started")

    def _start(self, kind: str, step: tuple, **options) -> int:
        self._number += 1
        arguments = {"prompt": f"do {kind} {self._number}", **options}
        return self.pump.call("run", arguments, (*step, self._number))

    def _cancel_one(self) -> None:
        call = self._start("hang", ("run", "cancelled"))
        until(
            lambda: (self._box.home / f"started-{self._number}").exists() or len(self.pump.waiting) >= IN_FLIGHT,
            "a run",
        )
        self.pump.server.cancel(call)
        self.pump.send(("ping", None, ("pong", call)))

    def _follow(self) -> None:
        (step, *rest), message = self.pump.next()
        if step == "pong":
            self.pump.expect(self.pump.settle(rest[0]), "a cancelled run was answered")
            self.ended["cancelled"] += 1
            return
        if "result" not in message:
            self.pump.expect(False, f"{step} {rest}: {message}")
            return
        self._steps[step](message["result"], *rest)

    def _check(self, result: dict, kind: str, number: int) -> None:
        """The result of a run that is over."""
        told = result.get("structuredContent", {})
        status = told.get("status", "cancelled early")
        self.ended[f"{kind} {status}" if kind == "real" else status] += 1
        if kind == "hang":
            early = result["content"][0]["text"] == "cancelled before it started."
            right = early or status in ("timed_out", "cancelled")
        elif kind == "fail":
            right = status == "failed" and told["exitCode"] == 3 and f"no luck with {number}" in str(told["error"])
        elif kind == "real" and self._box.real:
            right = status == "completed" and told["answer"] == "Real work."
        else:
            right = status == "completed" and told["answer"] == f"Done with {number}."
        right = right and result["isError"] == (status != "completed")
        self.pump.expect(right, f"{kind} {number}: {str(result)[:500]}")

    def _started(self, result: dict, kind: str, number: int) -> None:
        run_id = result["structuredContent"]["runId"]
        if kind == "crowd":
            wait = {"runId": run_id, "waitMs": 500}
            for _ in range(CROWD):
                self.pump.call("run_result", wait, ("result", "crowd", number))
            self.pump.call("run_cancel", {"runId": run_id}, ("cancelled", run_id, number))
        elif kind == "hang":
            self.pump.call("run_cancel", {"runId": run_id}, ("cancelled", run_id, number))
        else:
            self.pump.call("run_result", {"runId": run_id, "waitMs": 50_000}, ("result", kind, number))

    def _fetched(self, result: dict, kind: str, number: int) -> None:
        if kind != "crowd":
            self._check(result, kind, number)

    def _dropped(self, result: dict, run_id: str, number: int) -> None:
        (row,) = result["structuredContent"]["runs"]
        self.pump.expect(row["status"] == "cancelled", f"run_cancel: {row}")
        self.pump.call("run_result", {"runId": run_id}, ("result", "hang", number))


@contextlib.contextmanager
def scripted(program: str, root: Path):
    """(a box whose codex is the script, words for the server); the script has the real codex where there is one."""
    env = {"PATH": os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ.get("PATH", os.defpath)])}
    with FakeProvider(REAL_WORK) as provider:
        try:
            (root / "real").mkdir()
            box = RealBox(program, root / "real", env, "codex", provider.url)
            real, words = os.path.realpath(box.bin / "codex"), FLAGS["codex"]
            (box.bin / "codex").unlink()
        except pytest.skip.Exception:
            (root / "box").mkdir()
            box, real, words = Box(program, root / "box", env), "", []
        box.real = real
        box.script(SCRIPT.replace("{real!r}", repr(real)).replace("{part}", str(FLOOD_BYTES // 10)))
        yield box, words


def soak(program: str, runs: int, *, short: bool = False, tell=lambda share: None) -> dict:
    """One server through so many runs; a part of the report. tell(share done) follows it."""
    begun_s = time.monotonic()
    samples = max(4, runs // RUNS_PER_SAMPLE)
    with tempfile.TemporaryDirectory(prefix="s") as folder, scripted(program, Path(folder)) as (box, words):
        env = {**box.env, "AGENT_CLI_MCP_TIMEOUT_MS": str(SHORT_TIMEOUT_MS if short else TIMEOUT_MS)}
        with McpServer(box.argv(*words), env) as server:
            server.initialize()
            client = Runs(server, box)
            client.warm_up(1 if short else WARM_UP_ROUNDS)
            pid = server.process.pid
            taken = [sample(pid, 0.0, box.temporary)]
            for turn in range(samples):
                client.run(runs * (turn + 1) // samples - runs * turn // samples)
                taken.append(sample(pid, (turn + 1) / samples, box.temporary, taken[0]))
                tell(taken[-1].done)
            client.pump.close_ledger()
            server.close()
            client.pump.expect(server.exit_status() == 0, f"exit status {server.process.returncode}")
            left = box.processes()
            client.pump.expect(not left, f"{len(left)} processes outlive the server")
    real = "the real codex for a share" if box.real else "no real codex: tests/counterparts/install.sh installs it"
    return {
        "what": f"mcp agent: {runs} runs, {real}",
        "seconds": time.monotonic() - begun_s,
        "counts": {**client.pump.counts, **client.ended},
        "faults": client.pump.faults,
        "processes": {"mcp agent": taken},
        "memory_share": MEMORY_SHARE,
    }
