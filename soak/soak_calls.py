"""One `mcp` server through very many calls while the app behind it is started anew again and again.

soak() pipelines calls of every kind to the built file and checks each answer; at each sample nothing is in flight.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from support.footprint import sample
from support.mcp_client import McpServer
from support.pump import Pump
from support.restarting_app import RestartingApp, picture_of, text_of

CALLS = 100_000
RESTARTS = 60
SHORT_CALLS, SHORT_RESTARTS = 3_000, 6
SAMPLES = 40
WARM_UP = 0.1  # of the calls, on top of them
IN_FLIGHT = 12
HOWS = ("killed", "stopped", "replaced")
TOO_LONG = b" " * 300_000 + b"\n"
UNAVAILABLE = "Tool connection unavailable: "
REVOKED = "Unknown or revoked session"


class Calls:
    """The client's side: what is sent by number, and what its answer has to be."""

    def __init__(self, server: McpServer, app: RestartingApp) -> None:
        self.pump = Pump(server)
        self.counts = self.pump.counts
        self.counts.update(unavailable=0, cancelled=0, restarts=0, lists=0, bad_lines=0)
        self._app = app
        self._number = 0
        self._carried_out: set[int] = set()  # calls whose answer shows that the app got them
        self._excused: dict[int, int] = {}  # number: the instance before the restart that it was in flight at
        self._bad_lines = 0

    def run(self, calls: int, restarts: int, samples: int, take) -> None:
        """So many calls; take(share done) is called at equal distances, with nothing in flight."""
        begun = self._number
        restarts_due = [begun + calls * (turn + 1) // (restarts + 1) for turn in range(restarts)]
        samples_due = [begun + calls * (turn + 1) // samples for turn in range(samples)]
        while samples_due:
            while len(self.pump.waiting) >= IN_FLIGHT:
                self._receive()
            self._send()
            if restarts_due and self._number >= restarts_due[0]:
                del restarts_due[0]
                self._restart()
            if self._number >= samples_due[0]:
                self.drain()
                del samples_due[0]
                take(1 - len(samples_due) / samples)

    def drain(self) -> None:
        """Read until every call has its answer."""
        while self.pump.waiting:
            self._receive()

    def finish(self) -> None:
        """The last checks, of what arrived at the app."""
        self.pump.close_ledger()
        arrived = self._app.journal()
        self.counts["arrived"] = len(arrived)
        self.counts["repeated"] = len(arrived) - len(set(arrived))
        self.pump.expect(self.counts["repeated"] == 0, "a call reached the app twice")
        self.pump.expect(arrived == sorted(arrived), "calls reached the app in another order than that of their lines")
        self.pump.expect(self._carried_out <= set(arrived), "an answer came to a call that did not reach the app")
        bad = self.pump.unidentified
        self.pump.expect(bad == self._bad_lines, f"{self._bad_lines} bad lines have {bad} answers")

    def _send(self) -> None:
        self._number += 1
        number = self._number
        node = str(number)
        name, arguments = "terminal_submit", {"nodeId": node, "command": f"echo {number}"}
        if number % 50 == 0:
            name, arguments = "terminal_read", {"nodeId": node, "maxChars": 20_000}
        elif number % 7 == 0:
            name, arguments = "terminal_read", {"nodeId": node, "maxChars": 500}
        elif number % 41 == 0:
            name, arguments = "browser_screenshot", {"nodeId": node}
        elif number % 29 == 0:
            name, arguments = "terminal_close", {"nodeId": node}
        if number % 400 == 13:
            self._cancel_one(node)
            return
        if number % 500 == 3:
            self.counts["lists"] += 1
            self.pump.send(("tools/list", None, ("list",)))
        if number % 1000 == 17:
            self.counts["bad_lines"] += 2
            self._bad_lines += 2
            self.pump.server.send_bytes(b'{"jsonrpc": "2.0", "id": 1, \n' + TOO_LONG)
        self.pump.call(name, arguments, ("call", number, name, arguments))

    def _cancel_one(self, node: str) -> None:
        """Cancel a call behind others; after the answer to a ping that follows, none may come for it."""
        arguments = {"nodeId": node}
        call = self.pump.call("terminal_interrupt", arguments, ("call", int(node), "terminal_interrupt", arguments))
        self.pump.server.cancel(call)
        self.pump.send(("ping", None, ("pong", call)))

    def _restart(self) -> None:
        how = HOWS[self.counts["restarts"] % len(HOWS)]
        self.counts["restarts"] += 1
        # Something that takes a moment is among those in flight.
        self._number += 1
        arguments = {"nodeId": str(self._number)}
        self.pump.call("terminal_interrupt", arguments, ("call", self._number, "terminal_interrupt", arguments))
        self._excused = {entry[1]: self._app.number for entry in self.pump.waiting.values() if entry[0] == "call"}
        self._app.restart(how)

    def _receive(self) -> None:
        entry, message = self.pump.next()
        if entry[0] == "list":
            self.pump.expect(len(message["result"]["tools"]) > 30, f"the list: {str(message)[:200]}")
        elif entry[0] == "pong":
            self.pump.expect(message["result"] == {}, f"the ping: {message}")
            self.counts["cancelled"] += self.pump.settle(entry[1])
        else:
            self._check(message, *entry[1:])

    def _check(self, message: dict, number: int, name: str, arguments: dict) -> None:
        result = message.get("result")
        if result is None:
            self.pump.expect(False, f"{name} {number}: {message}")
            return
        (block,) = result["content"]
        told = {} if block["type"] == "image" else json.loads(block["text"])
        error = told.get("error", "")
        if error.startswith(UNAVAILABLE) or error == REVOKED:
            self.counts["unavailable"] += 1
            right = number in self._excused and result["isError"]
            self.pump.expect(right, f"{name} {number} failed with no restart in sight: {error}")
            return
        self._carried_out.add(number)
        instances = {self._app.number, self._excused.get(number, self._app.number)}
        value = told.get("value", {})
        if name == "browser_screenshot":
            right = block == {"type": "image", "data": picture_of(number, 3000), "mimeType": "image/png"}
        elif name == "terminal_close":
            right = result["isError"] and error in {f"Unknown node: {number} ({one})" for one in instances}
        else:
            right = not result["isError"] and value["nodeId"] == str(number) and value["instance"] in instances
            if name == "terminal_read":
                right = right and value["output"] == text_of(number, arguments["maxChars"])
        self.pump.expect(right, f"{name} {number}: {str(message)[:200]}")


def soak(program: str, calls: int, restarts: int, samples: int = SAMPLES, tell=lambda share: None) -> dict:
    """One server through so many calls; a part of the report. tell(share done) follows it."""
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        root = Path(folder)
        temporary = root / "tmp"
        temporary.mkdir()
        app = RestartingApp(root)
        argv = [program, "mcp", "--session", app.session]
        env = {"PATH": os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.defpath]), "HOME": folder}
        try:
            app.start()
            with McpServer(argv, {**env, "TMPDIR": str(temporary)}) as server:
                # A list before the handshake asks the app which operations it has, as one in a minute does later on,
                # on the thread that is for such questions.
                assert "result" in server.request("tools/list")
                server.initialize()
                client = Calls(server, app)
                client.run(max(600, int(calls * WARM_UP)), len(HOWS), 1, lambda share: None)
                pid = server.process.pid
                taken = [sample(pid, 0.0, temporary)]

                def take(share: float) -> None:
                    taken.append(sample(pid, share, temporary, taken[0]))
                    tell(share)

                client.run(calls, restarts, samples, take)
                client.finish()
                server.close()
                client.pump.expect(server.exit_status() == 0, f"exit status {server.process.returncode}")
                client.pump.expect(server.log() == "", f"on stderr: {server.log()[:500]}")
        finally:
            app.stop()
    return {
        "what": f"mcp: {calls:,} calls, {restarts} restarts of the app",
        "seconds": time.monotonic() - begun_s,
        "counts": dict(client.counts),
        "faults": client.pump.faults,
        "processes": {"mcp": taken},
    }
