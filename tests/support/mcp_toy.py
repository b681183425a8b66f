"""A provider with tools for every way in which a tool can behave, on the built file's own MCP core.

usage: mcp_toy.py BUILT_FILE [OPTION=JSON ...]   (of Options)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

from termsprawlctl.base.log import log
from termsprawlctl.mcp.options import Options
from termsprawlctl.mcp.provider import CallFault, Provider, ProviderFault
from termsprawlctl.mcp.server import serve

HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


def tool(name: str, **properties: str) -> dict:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind, "description": key} for key, kind in properties.items()},
        "additionalProperties": False,
    }
    return {"name": name, "title": name, "description": name, "inputSchema": schema, "annotations": HINTS}


def text(value: object) -> dict:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"content": [{"type": "text", "text": shown}], "isError": False}


class Toy(Provider):
    """Each tool is a method `do_<name>(context, **arguments)`."""

    name = "toy"

    def __init__(self) -> None:
        self.gates: dict[str, threading.Event] = {}
        self.blocked: dict[str, list[threading.Event]] = {}
        self.started: list[str] = []

    def tools(self) -> list[dict]:
        return [
            tool("echo", value="string"),
            tool("waits", wait_for_previous="boolean"),
            tool("block", gate="string"),
            tool("open", gate="string"),
            tool("steps", count="integer", total="integer"),
            tool("big", bytes="integer"),
        ]

    def find_tool(self, name: str) -> dict | None:
        known = super().find_tool(name)
        return known or ({"inputSchema": {}} if hasattr(self, f"do_{name}") else None)

    def call(self, name: str, arguments: dict, context) -> dict:
        return getattr(self, f"do_{name}")(context, **arguments)

    def close(self) -> None:
        if os.environ.get("TOY_CLOSED"):
            with open(os.environ["TOY_CLOSED"], "a") as file:
                file.write("closed\n")

    def gate(self, name: str) -> threading.Event:
        return self.gates.setdefault(name, threading.Event())

    def do_echo(self, context, **arguments):
        return text(arguments)

    do_waits = do_echo

    def do_ask(self, context, gate=""):
        """Ask to allow something; what was chosen, or that nobody could be asked."""
        if gate:
            self.blocked.setdefault(gate, [])
        question = context.ask("May I?", [("allow_once", "Yes, once"), ("reject_once", "No")])
        if question is None:
            return text("nobody to ask")
        while question.look() is None:
            if gate and gate not in self.blocked:
                question.withdraw()
                self.started.append("withdrawn")
            if context.cancelled.wait(0.02):
                self.started.append("cancelled")
                break
        return text({"answer": question.answer, "alone": question.alone})

    def do_block(self, context, gate="g"):
        """Say that it blocks, and wait until the gate is opened or the call is cancelled."""
        self.started.append(gate)
        context.progress(f"{gate} blocks")
        wake = threading.Event()
        self.blocked.setdefault(gate, []).append(wake)
        context.on_cancel(wake.set)
        wake.wait()
        return text(f"{gate} is open")

    def do_open(self, context, gate="g"):
        for wake in self.blocked.pop(gate, []):
            wake.set()
        return text("opened")

    def do_started(self, context):
        return text(self.started)

    def do_steps(self, context, count=3, total=None, pause_s=0.0):
        for step in range(count):
            context.progress(f"step {step}", total=total)
            time.sleep(pause_s)
        return text("done")

    def do_then_block(self, context, count=1):
        """Report that many steps at once, then say nothing more until the end."""
        self.do_steps(context, count)
        context.cancelled.wait()

    def do_nap(self, context, number=0, nap_us=0):
        """Say its number, after a moment in which it reports progress."""
        context.progress("before")
        time.sleep(nap_us / 1e6)
        context.progress("after")
        return text(number)

    def do_values(self, context, values=(), total=None):
        for value in values:
            context.progress(f"at {value}", value, total)
        return text("done")

    def do_late(self, context):
        """Report progress long after the response."""

        def report():
            self.gate("late").wait()
            context.progress("too late")
            self.gate("reported").set()

        threading.Thread(target=report, daemon=True).start()
        context.progress("in time")
        return text("done")

    def do_let_late_report(self, context):
        self.gate("late").set()
        self.gate("reported").wait()
        return text("reported")

    def do_big(self, context, bytes=0, letter="x"):  # noqa: A002 - the tool's own word
        return text(letter * bytes)

    def do_raw(self, context, value=None):
        """Return exactly this as the result."""
        return value

    def do_broken(self, context, how="exception"):
        if how == "exception":
            raise RuntimeError("secret 1234")
        if how == "exit":
            sys.exit(3)
        if how == "fault":
            raise ProviderFault("out of order")
        if how == "call fault":
            raise CallFault(-32021, "needs sampling", {"requiredCapabilities": {"sampling": {}}})
        return {"content": [{"type": "text", "text": "x"}], "value": float("nan")} if how == "nan" else {1, 2}

    def do_stray(self, context, bytes=0):  # noqa: A002 - the tool's own word
        """Write to descriptor 1 in every way that there is."""
        print("stray print " + "x" * bytes)
        sys.stdout.write("stray write\n")
        sys.__stdout__.write("stray original\n")
        sys.__stdout__.flush()
        os.write(1, b"stray descriptor\n")
        subprocess.run(["/bin/sh", "-c", "echo stray child"], check=True)
        return text(subprocess.run(["/bin/cat"], capture_output=True, check=True).stdout.decode())

    def do_flood(self, context, bytes=0):  # noqa: A002 - the tool's own word
        """Write that much to stderr, through the log and through sys.stderr."""
        for _ in range(bytes // 2000):
            log("l" * 999)
            print("p" * 999, file=sys.stderr)
        return text("flooded")


def main() -> None:
    options = {}
    for word in sys.argv[2:]:
        name, _, value = word.partition("=")
        options[name] = json.loads(value)
    os._exit(serve(Toy(), Options(**options)))


main()
