"""The monitor while tmux does not answer: it goes on, and does not fill the log."""

from __future__ import annotations

import shutil
import subprocess
from types import SimpleNamespace

import pytest
from support.waiting import until

from termsprawlctl.host.daemon import monitor
from termsprawlctl.host.terminals.nodes import Terminals
from termsprawlctl.host.terminals.panes import Panes
from termsprawlctl.host.terminals.server import Server

pytestmark = pytest.mark.process


class Host(SimpleNamespace):
    """What the monitor uses of a host; `looks` counts how often it looked."""

    def __init__(self, tmux: Server) -> None:
        super().__init__(terminals=self, panes=Panes(tmux), commands=self, sessions=self, audit=self, streams=self)
        self.real, self.looks, self.told, self.faults, self.exits = Terminals(tmux), 0, [], 0, []
        self.fault: Exception | None = None

    def alive(self) -> dict:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return self.real.alive()

    def project_of(self, node_id: str) -> str | None:
        self.looks += 1
        return self.real.project_of(node_id)

    def note_end(self, node_id: str) -> None:
        pass

    def all(self) -> list:
        return []

    def event(self, kind: str, *, node: str, **_fields) -> None:
        self.exits.append((kind, node))

    def log(self, text: str) -> None:
        self.told.append(text)

    def log_fault(self) -> None:
        self.faults += 1

    def wait_for_looks(self, count: int) -> None:
        goal = self.looks + count
        until(lambda: self.looks >= goal, "another look")


@pytest.fixture
def watched(monkeypatch, tmp_path_factory):
    """(host, its tmux, its monitor), which looks all the time."""
    monkeypatch.setattr(monitor, "LOOK_INTERVAL_S", 0.01)
    monkeypatch.setattr(monitor, "MIN_PAUSE_S", 0.001)
    socket = tmp_path_factory.mktemp("m") / "s"
    tmux = Server(shutil.which("tmux"), "-S", str(socket), "-f", "/dev/null")
    host = Host(tmux)
    watching = monitor.Monitor(host)
    watching.start()
    yield host, tmux, watching
    watching.stop()
    subprocess.run([shutil.which("tmux"), "-S", socket, "kill-server"], capture_output=True, check=False)


def test_a_tmux_that_cannot_be_asked_costs_one_line_until_it_answers_again(watched):
    host, tmux, watching = watched
    tmux.run("new-session", "-d", "-s", "other")  # only a socket that is there is asked
    binary, tmux.base[0] = tmux.base[0], "/no/tmux"
    until(lambda: host.told, "the line")
    watching.note_end("n-1")
    host.wait_for_looks(5)
    reason = "cannot run /no/tmux: No such file or directory. Check the program and the limits (ulimit -a)."
    assert host.told == [f"terminals cannot be watched: {reason}"]
    assert host.exits == []  # nothing shows that it has ended
    tmux.base[0] = binary
    until(lambda: host.exits, "the end")
    until(lambda: len(host.told) > 1, "the second line")
    host.wait_for_looks(5)
    assert host.told[1:] == ["terminals are watched again"]
    assert host.exits == [("exit", "n-1")]
    assert host.faults == 0


def test_a_fault_that_lasts_is_logged_once(watched):
    host, _, _ = watched
    host.fault = KeyError("x")
    until(lambda: host.faults, "the fault")
    host.wait_for_looks(10)
    assert host.faults == 1
