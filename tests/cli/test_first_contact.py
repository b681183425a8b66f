"""Without the app and without a variable: the running host's session is found, or the way to one is shown."""

from __future__ import annotations

import json
import os
import plistlib
import shlex
import subprocess
from pathlib import Path

import pytest
from support.command import NO_SESSION, run
from support.mcp_client import McpServer

from termsprawlctl.cli import session as sessions
from termsprawlctl.cli.unit import launchd_agent, systemd_unit


@pytest.fixture
def home(ctl, tmp_path_factory, hermetic_env):
    """A home directory whose default data directory has no host yet; what starts there ends with the test."""
    root = tmp_path_factory.mktemp("h")
    env = {**hermetic_env, "HOME": str(root), "SHELL": "/bin/bash"}
    yield Home(ctl, root, env)
    run([ctl, "host", "stop", "--kill-sessions"], env)


class Home:
    def __init__(self, ctl: str, root: Path, env: dict[str, str]) -> None:
        self.ctl = ctl
        self.root = root
        self.env = env

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def run(self, folder: Path, *words: str, status: int = 0, **options):
        done = run([self.ctl, *words], self.env, cwd=folder, **options)
        assert done.status == status, done.out + done.err
        return done

    def start(self, folder: Path, *words: str) -> dict:
        return json.loads(self.run(folder, "host", "start", "--json", *words).out)


def project_of(done) -> str:
    return json.loads(done.out)["value"]["projectId"]


def test_a_second_tab_needs_no_variable(home):
    one, other = home.folder("one"), home.folder("other")
    first, second = home.start(one), home.start(other)
    for folder, facts in ((one, first), (one / "deep" / "er", first), (other, second)):
        folder.mkdir(parents=True, exist_ok=True)
        for words in (["doctor"], ["call", "session_info"]):
            done = home.run(folder, *words)
            node = json.loads(Path(facts["sessionFile"]).read_text())["nodeId"]
            assert json.loads(done.out)["value"]["nodeId"] == node
            assert done.err.decode() == f"termsprawlctl: using the running host's session for {facts['project']}.\n"
    assert home.run(other, "map").err.count(b"using the running host's session") == 1
    assert b"the running host" in home.run(one, "doctor", "--explain").err


def test_outside_of_all_projects_the_only_one_is_meant_and_of_several_none(home):
    elsewhere = home.folder("elsewhere")
    home.start(home.folder("one"))
    assert b"/one." in home.run(elsewhere, "doctor").err
    home.start(home.folder("other"))
    err = home.run(elsewhere, "doctor", status=2).err.decode()
    assert err.startswith(NO_SESSION.decode().splitlines()[0] + "\n")
    assert f"{home.root}/one" in err
    assert f"{home.root}/other" in err


def test_without_a_host_the_way_to_one_is_shown(home):
    assert home.run(home.folder("one"), "doctor", status=2).err == NO_SESSION
    home.start(home.folder("one"))
    home.run(home.root, "host", "stop")
    assert home.run(home.folder("one"), "doctor", status=2).err == NO_SESSION


def test_what_is_named_wins_over_the_running_host(home, tmp_path):
    one = home.folder("one")
    home.start(one)
    for words in (["--session", str(tmp_path / "none.json")], ["--session="]):
        done = run([home.ctl, "doctor", *words], home.env, cwd=one)
        assert b"using the running" not in done.err
        assert done.status in (1, 2)
    done = run([home.ctl, "doctor"], {**home.env, "TERMSPRAWL_SESSION_FILE": str(tmp_path / "none.json")}, cwd=one)
    assert (done.status, done.err) == (1, b"")


@pytest.mark.parametrize("marker", [".termsprawl", ".git"])
def test_a_host_that_starts_in_a_subfolder_serves_the_project(home, marker):
    project = home.folder("project")
    home.folder(f"project/{marker}")
    below = home.folder("project/src/deep")
    done = home.run(below, "host", "start", "--json")
    assert json.loads(done.out)["project"] == str(project)
    note = f"termsprawlctl: the project is {project}, around this folder; --new makes one of this folder."
    assert note in done.err.decode().splitlines()
    assert home.start(below, "--new")["project"] == str(below)
    assert home.start(below, "--project", ".")["project"] == str(below)


def test_a_marker_in_the_home_directory_or_of_another_user_decides_nothing(home):
    below = home.folder("plain/folder")
    home.folder(".git")
    assert sessions.project_root(str(below), str(home.root)) == str(below)
    assert sessions.project_root(str(home.root), str(home.root)) == str(home.root)
    if os.geteuid() == 0:
        marked = home.folder("marked/below")
        home.folder("marked/.git")
        assert sessions.project_root(str(marked), "/nowhere") == str(marked.parent)
        os.chown(marked.parent, 12345, 12345)
        assert sessions.project_root(str(marked), "/nowhere") == str(marked)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "session_info", "arguments": {}}}


def served_node(argv: list[str], env: dict[str, str], folder: Path) -> str:
    """The node of the session that an MCP server uses."""
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, CALL))
    done = run(argv, env, cwd=folder, stdin=lines)
    answers = {answer["id"]: answer for answer in map(json.loads, done.out.splitlines()) if "id" in answer}
    return json.loads(answers[2]["result"]["content"][0]["text"])["value"]["nodeId"]


def test_an_installed_server_works_after_a_reboot(home):
    project = home.folder("project")
    home.folder("project/.git")
    shown = json.loads(home.run(project, "install", "cursor", "--write", "--json").out)
    assert shown["argv"] == [home.ctl, "mcp", "--start-host"]
    assert shown["verified"]["tools"] > 10
    assert home.run(project, "host", "status", status=1).out.startswith(b"host      not running")  # as it was before
    written = json.loads((home.root / ".cursor" / "mcp.json").read_text())["mcpServers"]["termsprawl"]
    argv = [written["command"], *written["args"]]
    nodes = {served_node(argv, home.env, project)}
    home.run(project, "host", "stop", "--kill-sessions")  # as a reboot leaves it
    nodes.add(served_node(argv, home.env, project / ".git"))
    assert len(nodes) == 1
    state = json.loads(home.run(project, "host", "status", "--json").out)
    assert [one["folder"] for one in state["projects"]] == [str(project)]


def test_wait_without_a_session_awaits_a_host(home):
    project = home.folder("project")
    with McpServer([home.ctl, "mcp", "--wait", "60"], home.env, cwd=project) as server:
        handshake = server.ask("initialize", {"protocolVersion": "2025-11-25"})
        home.start(project)
        assert "result" in server.answer_to(handshake)


def test_a_host_is_not_awaited_longer_than_was_said_nor_without_a_client(home):
    folder = home.folder("one")
    assert home.run(folder, "mcp", "--wait", "0.01", status=2).err == NO_SESSION
    assert home.run(folder, "mcp", "--wait", "600", status=2, stdin=b"").err == NO_SESSION


def test_an_entry_names_the_host_and_not_its_session(home, tmp_path_factory):
    data = str(tmp_path_factory.mktemp("d"))
    project = home.folder("project")
    try:
        facts = home.start(project, "--data", data)
        env = {**home.env, "TERMSPRAWL_SESSION_FILE": facts["sessionFile"]}
        done = run([home.ctl, "install", "cursor", "--json"], env, cwd=project)
        assert json.loads(done.out)["argv"] == [home.ctl, "mcp", "--start-host", "--data", data]
    finally:
        home.run(project, "host", "stop", "--data", data, "--kill-sessions")


def test_prune_removes_ended_terminals_and_projects_that_are_gone(home):
    one, other = home.folder("one"), home.folder("other")
    home.start(one)
    gone = home.start(other)
    kept, ended = (
        home.run(one, "call", "terminal_open", "--field", "value.nodeId").out.decode().strip() for _ in range(2)
    )
    base = Path(gone["data"]) / "tmux-sockets" / "termsprawl"
    subprocess.run(["tmux", "-S", base, "kill-session", "-t", f"=ts-{ended}"], env=home.env, check=True)
    other.rename(home.root / "moved")
    done = json.loads(home.run(one, "host", "prune", "--json").out)
    assert done == {"running": True, "terminals": [ended], "projects": [str(other)]}
    assert not Path(gone["sessionFile"]).exists()
    nodes = json.loads(home.run(one, "call", "canvas_list").out)["value"]
    assert [node["id"] for node in nodes] == [kept]
    assert b"nothing to remove" in home.run(one, "host", "prune").err
    home.run(one, "host", "stop")
    assert b"ended terminals were left" in home.run(one, "host", "prune").err


def test_launch_as_json_names_the_node_and_its_session(home):
    programs = home.folder("bin")
    agent = programs / "claude"
    agent.write_text("#!/bin/sh\nexec sleep 1000\n")
    agent.chmod(0o755)
    home.env["PATH"] = f"{programs}:{home.env['PATH']}"
    facts = json.loads(home.run(home.folder("project"), "launch", "claude", "--json").out)
    assert facts["agent"] == "claude"
    listed = json.loads(home.run(home.root, "call", "canvas_list", "--session", facts["sessionFile"]).out)["value"]
    assert facts["nodeId"] in [node["id"] for node in listed]


@pytest.mark.parametrize("words", [["version"], ["-V"], ["--version"]])
def test_the_version_is_told_however_it_is_asked_for(ctl, hermetic_env, words):
    done = run([ctl, *words], hermetic_env)
    assert (done.status, done.err) == (0, b"")
    assert done.out.startswith(b"termsprawlctl ")


def test_help_is_a_command_too(ctl, hermetic_env):
    assert run([ctl, "help"], hermetic_env).out == run([ctl, "--help"], hermetic_env).out
    for words in (["call"], ["host", "start"], ["mcp", "agent"]):
        assert run([ctl, "help", *words], hermetic_env).out == run([ctl, *words, "--help"], hermetic_env).out
    assert run([ctl, "help", "docter"], hermetic_env).status == 2


ODD = ["/opt/a b/100%/$HOME", 'say "x"', "\\n", "<&>"]


def test_a_launchd_agent_holds_the_very_words():
    agent = plistlib.loads(launchd_agent(ODD, "/usr/bin:/a&b", "/log <1>").encode())
    assert agent["ProgramArguments"] == ODD
    assert agent["EnvironmentVariables"] == {"PATH": "/usr/bin:/a&b"}
    assert agent["StandardErrorPath"] == "/log <1>"
    assert agent["RunAtLoad"] is True


def test_a_systemd_unit_holds_the_very_words():
    text = systemd_unit(ODD, "/usr/bin:/100%", "")
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    # systemd's quotes and backslashes are a shell's inside double quotes; % and $ are doubled.
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line.partition("=")[2])]
    assert words == ODD
    assert 'Environment="PATH=/usr/bin:/100%%"' in text


def test_the_unit_runs_this_file_for_the_project(home):
    project = home.folder("project")
    text = home.run(project, "host", "unit", "--systemd").out.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    data = str(home.root / ".local" / "state" / "termsprawlctl")
    assert shlex.split(line.partition("=")[2]) == [home.ctl, "host", "run", "--data", data, "--project", str(project)]
