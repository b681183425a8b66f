"""What a host that was killed left half-done is made whole, or undone, by the next one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.canvas import project_file
from termsprawlctl.host.daemon.recovery import recover
from termsprawlctl.host.registry.projects import ProjectStore, operator_session
from termsprawlctl.host.registry.sessions import SessionStore
from termsprawlctl.host.registry.status import SHELL_STATUS, Adapter, Status
from termsprawlctl.host.terminals.nodes import PROJECT_OPTION, Terminals
from termsprawlctl.host.terminals.server import Server

CODEX = Status("connected", Adapter("codex", "mcp"))

pytestmark = pytest.mark.process


class Leftovers(SimpleNamespace):
    """The parts of a host that recovery needs, with everything below one data directory."""

    def session(self, node_id: str, status: Status = SHELL_STATUS) -> None:
        self.sessions.provision(node_id, self.project, status)

    def terminal(self, node_id: str, project: str | None) -> None:
        self.tmux.run("new-session", "-d", "-s", f"ts-{node_id}", "cat")
        if project:
            self.tmux.run("set-option", "-t", f"=ts-{node_id}:", PROJECT_OPTION, project)

    def node(self, *node_ids: str) -> None:
        def edit(document: dict) -> None:
            document["nodes"] += [{"id": node_id, "type": "terminal"} for node_id in node_ids]

        project_file.change(self.folder, edit)

    def nodes(self) -> dict:
        return {node["id"]: node for node in project_file.load(self.folder)["nodes"]}

    def session_ids(self) -> set[str]:
        return {one.node_id for one in self.sessions.all()} - {self.person}

    def forget_node(self, node_id: str, project: str) -> None:
        self.sessions.revoke(node_id, project)

    def log(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture
def left(tmp_path_factory):
    root = tmp_path_factory.mktemp("r")
    paths = DataPaths(str(root / "data"))
    folder = root / "project"
    for directory in (folder, paths.tmux_sockets):
        os.makedirs(directory)
    person, ended = operator_session(paths, str(folder)), set()
    tmux = Server(shutil.which("tmux"), "-S", paths.tmux_socket(), "-f", "/dev/null")
    left = Leftovers(
        paths=paths,
        folder=str(folder),
        project=person.project_id,
        person=person.node_id,
        sessions=SessionStore(paths),
        projects=ProjectStore(paths),
        tmux=tmux,
        terminals=Terminals(tmux),
        told=[],
        ended=ended,
        monitor=SimpleNamespace(note_ended=ended.update),
    )
    yield left
    Terminals(tmux).kill_all()


def test_a_terminal_that_does_not_know_its_project_learns_it_from_its_session_file(left):
    left.session("n-1")
    left.terminal("n-1", project=None)
    recover(left)
    assert left.terminals.alive() == {"n-1": left.project}
    assert left.nodes()["n-1"]["type"] == "terminal"


def test_a_terminal_of_nobody_is_ended_and_others_stay(left):
    left.session("n-1")
    left.node("n-1")
    left.terminal("n-1", left.project)
    left.terminal("n-2", project=None)
    left.terminal("n-3", "p-of-a-folder-that-is-gone")
    left.tmux.run("new-session", "-d", "-s", "somebody-elses", "cat")
    recover(left)
    assert left.terminals.sessions() == {"n-1": left.project, "n-3": "p-of-a-folder-that-is-gone"}
    assert left.tmux.has_session("somebody-elses")


def test_a_session_file_that_cannot_be_read_is_no_reason_to_end_its_terminal(left):
    left.terminal("n-1", project=None)
    with open(left.paths.session("n-1"), "w") as file:
        file.write("{")
    recover(left)
    assert left.terminals.sessions() == {"n-1": ""}


def test_a_running_terminal_without_a_node_gets_one_that_says_what_it_is(left):
    left.session("n-1")
    left.session("n-2", CODEX)
    for node_id in ("n-1", "n-2", "n-3"):
        left.terminal(node_id, left.project)
    recover(left)
    nodes = left.nodes()
    assert [nodes[node_id]["data"]["title"] for node_id in ("n-1", "n-2", "n-3")] == ["Terminal", "codex", "Terminal"]
    assert nodes["n-2"]["data"]["command"] == "codex"
    rev = project_file.load(left.folder)["rev"]
    recover(left)
    assert project_file.load(left.folder)["rev"] == rev


def test_a_session_with_neither_terminal_nor_node_is_revoked_and_one_with_a_node_is_kept(left):
    for node_id in ("n-never-started", "n-ended"):
        left.session(node_id)
    left.node("n-ended")
    recover(left)
    assert left.session_ids() == {"n-ended"}
    assert any(one.node_id == left.person for one in left.sessions.all())


def test_launch_folders_stay_with_what_runs_or_has_a_session(left):
    for node_id in ("n-runs", "n-ended", "n-never-started"):
        os.makedirs(os.path.join(left.paths.launch, node_id, "skills"))
    left.session("n-ended")
    left.node("n-ended")
    left.terminal("n-runs", left.project)
    recover(left)
    assert sorted(os.listdir(left.paths.launch)) == ["n-ended", "n-runs"]


def test_nothing_is_written_into_a_project_that_lacks_nothing(left):
    recover(left)
    assert os.listdir(left.folder) == []


@pytest.mark.parametrize("content", ["{", '{"version": 2, "nodes": []}'])
def test_a_project_file_that_cannot_be_changed_costs_nothing_and_is_told(left, content):
    left.session("n-1")
    left.session("n-2")
    left.terminal("n-1", left.project)
    os.makedirs(os.path.join(left.folder, ".termsprawl"))
    with open(project_file.path_of(left.folder), "w") as file:
        file.write(content)
    recover(left)
    assert left.session_ids() == {"n-1", "n-2"}
    assert left.terminals.alive() == {"n-1": left.project}
    assert left.folder in "".join(left.told)


def test_a_tmux_server_that_cannot_be_asked_is_no_proof_that_terminals_have_ended(left, tmp_path):
    refusing = tmp_path / "tmux"
    refusing.write_text("#!/bin/sh\necho 'protocol version mismatch (client 8, server 7)' >&2; exit 1\n")
    refusing.chmod(0o755)
    left.session("n-1")
    os.makedirs(os.path.join(left.paths.launch, "n-1"))
    left.terminals = Terminals(Server(str(refusing)))
    recover(left)
    assert left.session_ids() == {"n-1"}
    assert os.listdir(left.paths.launch) == ["n-1"]
    assert "protocol version mismatch" in "".join(left.told)


def test_a_host_that_is_killed_while_it_opens_terminals_leaves_nothing_that_nobody_can_close(host):
    for delay_s in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2):
        argv = [host.ctl, "call", "terminal_open", "--session", host.session_file]
        calls = [subprocess.Popen(argv, env=host.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "ab"]
        pid = host.pid()
        time.sleep(delay_s)  # where it is cut off differs from round to round; each place has to do
        os.kill(pid, signal.SIGKILL)
        for call in calls:
            call.communicate(timeout=60)
        host.start()
    host.stop()  # a tmux client that outlived its host may have been late
    host.start()
    nodes = {node["id"] for node in host.value("canvas_list")}
    agents = {one["nodeId"] for one in host.value("agent_status")}
    listing = host.tmux("list-sessions", "-F", f"#{{session_name}} #{{{PROJECT_OPTION}}}").stdout.decode()
    running = {name[len("ts-") :]: project for name, _, project in (row.partition(" ") for row in listing.splitlines())}
    assert all(running.values()), listing
    assert agents == nodes
    assert set(running) <= nodes
    launch = host.data / "agent-tools" / "launch"  # missing where each was cut off before it was made
    assert set(os.listdir(launch) if launch.exists() else []) <= nodes
    for node_id in nodes:
        assert host.value("terminal_close", nodeId=node_id)["closed"]
    assert host.value("agent_status") == []


def test_what_has_ended_meanwhile_is_known_and_what_runs_is_not_among_it(left):
    for node_id in ("n-1", "n-2"):
        left.session(node_id)
        left.node(node_id)
    left.terminal("n-1", left.project)
    recover(left)
    assert left.ended - {left.person} == {"n-2"}
