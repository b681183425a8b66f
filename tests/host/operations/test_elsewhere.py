"""A host in a folder that the app uses, and windows on the host's own terminals."""

from __future__ import annotations

import json
import sys
import threading

import pytest
from support.running_host import RunningHost
from support.waiting import until

ARGUMENTS: dict[str, dict] = {
    "terminal_read": {},
    "terminal_submit": {"command": "x"},
    "terminal_input": {"text": "x"},
    "terminal_interrupt": {},
    "terminal_external": {},
    "terminal_close": {},
    "terminal_run": {"command": "x"},
    "terminal_wait": {"exit": True},
    "terminal_since": {},
    "terminal_send": {"keys": ["Enter"], "expectRevision": "", "requestId": "r"},
}


def test_nothing_of_the_apps_is_called_ended_closed_or_removed(host):
    folder = host.project / ".termsprawl"
    folder.mkdir()
    theirs = [
        {
            "id": "t-1",
            "type": "terminal",
            "position": {"x": 0, "y": 0},
            "data": {"title": "its shell", "linkedIds": []},
        },
        {"id": "t-2", "type": "terminal", "position": {"x": 9, "y": 0}, "data": {"agentId": "claude", "linkedIds": []}},
        {"id": "b-1", "type": "browser", "position": {"x": 0, "y": 9}, "data": {"url": "http://127.0.0.1/"}},
    ]
    (folder / "project.json").write_text(json.dumps({"version": 1, "rev": 7, "nodes": theirs}))
    before = (folder / "project.json").read_bytes()
    for node in ("t-1", "t-2"):
        for operation, args in ARGUMENTS.items():
            error = host.call(operation, nodeId=node, **args)["error"]
            assert "run by another program (the app, for example)" in error, operation
            assert "ended" not in error
    assert [one.get("elsewhere") for one in host.value("canvas_list")] == [True, True, None]
    assert (folder / "project.json").read_bytes() == before
    mine = host.value("terminal_open")["nodeId"]
    # After a restart as well, with which a host tidies up.
    assert host.stop().returncode == 0
    host.start()
    nodes = {one["id"]: one for one in json.loads((folder / "project.json").read_text())["nodes"]}
    assert [nodes[one["id"]] for one in theirs] == theirs
    status = host.run("host", "status", "--data", str(host.data)).stdout.decode()
    shown = host.run("map", "--session", host.session_file).stdout.decode()
    for node in ("t-1", "t-2"):
        assert f"terminal  {node}  elsewhere: another program runs it" in status
    assert "elsewhere" in shown
    assert "ended" not in status + shown
    host.value("terminal_close", nodeId=mine)
    nodes = json.loads((folder / "project.json").read_text())["nodes"]
    assert nodes == theirs


class Emulator:
    """A terminal emulator of the preferences, which has a window as soon as it runs, or never; it ends with end()."""

    def __init__(self, host: RunningHost, body: str) -> None:
        self.program = host.data.parent / "emulator"
        self.started = host.data.parent / "started"
        lines = (
            f"#!{sys.executable} -S",
            "import os, pty, sys, time",
            f"open({str(self.started)!r}, 'w').close()",
            body,
        )
        self.program.write_text("\n".join(lines) + "\n")
        self.program.chmod(0o700)
        preferences = {"externalTerminal": {"executable": str(self.program), "args": ["{command}"]}}
        (host.data / "agent-tools" / "preferences.json").write_text(json.dumps(preferences))

    def end(self) -> None:
        self.program.unlink()


SHOWS = "os.environ['TERM'] = 'xterm'; pty.spawn(sys.argv[1:])"
SHOWS_NOTHING = "while os.path.exists(__file__): time.sleep(0.05)"


@pytest.mark.parametrize(("body", "confirmed"), [(SHOWS, True), (SHOWS_NOTHING, False)])
def test_a_window_is_confirmed_once_a_client_shows_the_terminal(host, body, confirmed):
    emulator = Emulator(host, body)
    try:
        node = host.value("terminal_open")["nodeId"]
        opened = host.value("terminal_external", nodeId=node)
        assert opened == {"nodeId": node, "attached": True, "confirmed": confirmed}
        assert bool(host.tmux("list-clients", "-t", f"=ts-{node}").stdout.strip()) == confirmed
    finally:
        emulator.end()


def test_calls_go_on_while_a_window_comes_up(host):
    emulator, answers = Emulator(host, SHOWS_NOTHING), []
    try:
        node = host.value("terminal_open")["nodeId"]
        thread = threading.Thread(target=lambda: answers.append(host.value("terminal_external", nodeId=node)))
        thread.start()
        until(emulator.started.exists, "the emulator to start")
        host.value("terminal_submit", nodeId=node, command="true")
        host.value("canvas_move", nodeId=node, x=1, y=1)
        assert answers == []
        thread.join()
        assert answers == [{"nodeId": node, "attached": True, "confirmed": False}]
    finally:
        emulator.end()
