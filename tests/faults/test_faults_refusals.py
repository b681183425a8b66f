"""Whatever operation answers that nothing was done has done nothing, whichever of its steps failed.

All operations of the table, each with a fault at its steps: the disk, descriptors, memory, threads, devices
that are gone. An answer that promises nothing is free to have done a part; what it promises is compared with the world.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from support.host_faults import LONG, FaultyHost, chosen

from termsprawlctl.app import transport
from termsprawlctl.host.operations import HANDLERS
from termsprawlctl.operations.table import OPERATIONS

PROMISE = re.compile(r"(?i)nothing (was|is|has been|ran)|no terminal was|no change|was not (run|sent|started|typed)")
FAULTS = {
    "ENOSPC": ["mkdir", "mkfifo", "open-write", "write", "truncate", "fsync", "rename"],
    "EMFILE": ["open-read", "open-write", "list", "pipe", "popen"],
    "ENOMEM": ["popen"],
    "ENXIO": ["mkfifo", "open-write", "print"],
    "thread": ["thread"],
}
STEPS = 10_000 if LONG else 3  # of each operation for each fault
_numbers = itertools.count(1)


def arguments(host: FaultyHost, name: str) -> dict:
    """What an operation is called with, never twice the same, so that whatever it has done shows."""
    number = next(_numbers)
    word, node = f"word{number}", host.kept
    line = f"echo {word} >> ran"
    if name == "terminal_send":
        seen = host.call("terminal_wait", nodeId=node, idleMs=200, timeoutMs=20_000)["value"]["cursor"]
        return {"nodeId": node, "text": line, "keys": ["enter"], "requestId": word, "expectRevision": seen}
    given = {
        "guide_read": {"topic": "terminal"},
        "canvas_select": {"nodeIds": [node]},
        "canvas_move": {"nodeId": node, "x": number, "y": 7},
        "canvas_resize": {"nodeId": node, "width": 500 + number, "height": 400},
        "canvas_group": {"nodeIds": [host.spare], "title": word},
        "sticky_open": {"text": word},
        "terminal_open": {"title": word},
        "terminal_close": {"nodeId": host.spare},
        "terminal_read": {"nodeId": node},
        "terminal_submit": {"nodeId": node, "command": line},
        "terminal_input": {"nodeId": node, "text": f"{line}\r"},
        "terminal_interrupt": {"nodeId": node},
        "terminal_external": {"nodeId": node},
        "terminal_run": {"nodeId": node, "command": line, "timeoutMs": 20_000},
        "terminal_wait": {"nodeId": node, "idleMs": 1, "timeoutMs": 20_000},
        "terminal_since": {"nodeId": node},
        "agent_launch": {"agent": "custom"},
        "agent_send": {"nodeId": node, "messageId": word, "text": f"# {word}"},
        "agent_task": {"taskId": host.task},
        "agent_reply": {"taskId": host.task, "text": word},
        "artifact_open": {"path": str(host.project / "artifact.txt")},
    }
    return given.get(name, {})


def perform(host: FaultyHost, name: str, args: dict) -> dict:
    """Call an operation, as whoever may: a task is answered by its recipient alone."""
    recipient = host.data / "agent-tools" / "sessions" / f"{host.kept}.json"
    return transport.call(str(recipient) if name == "agent_reply" else host.session, name, args)


def prepare(host: FaultyHost, name: str) -> None:
    """Have what an operation is about."""
    host.plan()
    if name in ("canvas_group", "terminal_close"):
        host.spare = host.call("terminal_open")["value"]["nodeId"]
    if name.startswith("agent_") and host.task:  # a recipient takes one task at a time
        perform(host, "agent_reply", {"taskId": host.task, "text": "done"})
        host.task = ""
    if name in ("agent_task", "agent_reply"):
        sent = host.call("agent_send", **arguments(host, "agent_send"))
        host.task = sent["value"]["id"]


def world(host: FaultyHost) -> dict[str, object]:
    """What operations change, once all that was typed has been done."""
    host.plan()
    # What failed in the middle of typing may have left a part of a line.
    for _ in "abc":
        settled = host.call("terminal_run", nodeId=host.kept, command="true", timeoutMs=20_000)
        if settled["ok"]:
            break
        host.call("terminal_interrupt", nodeId=host.kept)
    assert settled["ok"], settled
    tools = host.data / "agent-tools"
    return {
        "canvas": json.loads((host.project / ".termsprawl" / "project.json").read_text()),
        "terminals": host.sessions(),
        "sessions": {path.name for path in (tools / "sessions").iterdir()},
        "launched": {path.name for path in (tools / "launch").iterdir()},
        "tasks": {path.name: path.read_text() for path in (tools / "tasks").iterdir()},
        "ran": (host.project / "ran").read_text(),
    }


def faulted(host: FaultyHost, fault: str, lasting: bool, name: str) -> Iterator[tuple[str, dict, dict]]:
    """Call an operation again and again, each time with a fault at another of its steps: (step, answer, before)."""
    plan = {"threads": "all" if fault == "thread" else "requests", "kinds": FAULTS[fault]}
    prepare(host, name)
    args = arguments(host, name)
    host.plan(**plan)
    answer = perform(host, name, args)
    # No window can be opened without a display.
    assert answer["ok"] or name == "terminal_external", (name, answer)
    steps = host.steps()
    for number in spread(chosen(steps)):
        note(host, name, answer)
        prepare(host, name)
        before = world(host)
        args = arguments(host, name)
        host.plan(fault, number, lasting=lasting, **plan)
        answer = perform(host, name, args)
        yield steps[number - 1], answer, before
    note(host, name, answer)


def note(host: FaultyHost, name: str, answer: dict) -> None:
    if name == "agent_send" and answer["ok"]:
        host.task = answer["value"]["id"]


def spread(numbers: list[int]) -> list[int]:
    """As many as are tried, from the first to the last."""
    count = min(STEPS, len(numbers))
    return [numbers[index * (len(numbers) - 1) // max(1, count - 1)] for index in range(count)]


@pytest.fixture
def serving(ctl, tmp_path_factory, hermetic_env):
    one = FaultyHost(ctl, tmp_path_factory.mktemp("f"), hermetic_env)
    one.plan()
    assert one.run()
    (one.project / "ran").write_text("")
    (one.project / "artifact.txt").write_text("artifact")
    (one.data / "agent-tools" / "preferences.json").write_text('{"custom": {"executable": "cat"}}')
    one.kept = one.spare = one.call("terminal_open")["value"]["nodeId"]
    one.task = ""
    person = one.session.rpartition("/")[2].removesuffix(".json")
    assert one.ctl_run("host", "link", person, one.kept, "--data", str(one.data)).returncode == 0
    yield one
    one.end()
    one.close()


@pytest.mark.parametrize(
    ("fault", "lasting"),
    [*((fault, False) for fault in FAULTS), ("ENOSPC", True), ("EMFILE", True)],
)
def test_an_operation_that_says_that_nothing_was_done_has_done_nothing(serving, fault, lasting):
    for name in OPERATIONS:
        if name not in HANDLERS:
            continue
        for step, answer, before in faulted(serving, fault, lasting, name):
            if not answer["ok"]:
                assert "Internal error" not in answer["error"], (name, step, answer)
                if PROMISE.search(answer["error"]):
                    assert world(serving) == before, (name, step, answer)
