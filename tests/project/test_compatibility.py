"""Each system once with every Python and every tmux that can be had here; `make compat` runs the whole suites so.

Where the Pythons and tmuxes come from: tests/counterparts/debian.sh, and support/pythons.py for those that the
machine has anyway.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from support import pythons, tmuxes
from support.chosen import plain_path
from support.command import NO_SESSION, run
from support.mcp_app import StandInApp
from support.mcp_client import McpServer
from support.running_host import RunningHost
from support.scripted_agent import Box, structured, text
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles
from support.tui_share import RunningShare
from support.tui_tmux import Prepared
from support.waiting import until

GOOD = {"ok": True, "value": {"text": "é"}}
PYTHONS = pythons.every_kind()
TMUXES = tmuxes.every_one()


@pytest.fixture(params=PYTHONS)
def env(request, tmp_path) -> dict[str, str]:
    """An environment in which python3 is one Python after the other."""
    folder = pythons.on_path(tmp_path / "python", PYTHONS[request.param])
    return {"PATH": os.pathsep.join([folder, plain_path()]), "LANG": "C.UTF-8"}


@pytest.mark.counterpart
@pytest.mark.parametrize("kind", pythons.WANTED)
def test_there_is_a_python_of_every_kind(kind):
    # So that a run tells which were not tried, and why.
    if kind not in PYTHONS:
        pytest.skip(f"Python {kind} is not on this machine: {pythons.why_missing(kind)}")


@pytest.mark.counterpart
@pytest.mark.parametrize("suite", tmuxes.WANTED)
def test_there_is_a_tmux_of_every_suite(suite):
    if suite not in tmuxes.unpacked():
        pytest.skip(f"the tmux of {suite} is not on this machine: {tmuxes.why_missing(suite)}")


# Every Python


def test_commands_do_the_same_with_every_python(ctl, env, tmp_path):
    with ScriptedServer(replying(answer(GOOD))) as server:
        session = str(SessionFiles(tmp_path / "app", server.port).session)
        for start in ([ctl], ["python3", ctl]):
            done = run([*start, "call", "sticky_open", "text=é", "n:=1", "--session", session], env)
            assert (done.status, done.err, json.loads(done.out)) == (0, b"", GOOD)
    assert run([ctl, "doctor"], env).err == NO_SESSION
    assert run([ctl, "tools", "--json"], env).status == 0
    assert run([ctl, "guide", "canvas"], env).out.startswith(b"# ")
    for shell in ("bash", "zsh", "fish"):
        assert run([ctl, "completion", shell], env).status == 0
    assert run([ctl, "completion", "--candidates", "--", "gui"], env).out.startswith(b"guide\t")


def test_words_behind_a_double_dash_are_handed_on_with_every_python(ctl, env, tmp_path):
    words = ["codex", "--server", "agent:codex", "--print", "--no-verify", "--", "--cwd", str(tmp_path)]
    done = run([ctl, "install", *words], {**env, "HOME": str(tmp_path)})
    assert done.status == 0
    assert f'"--cwd", "{tmp_path}"' in done.out.decode()


# Prints a digest of every help text and of every kind of complaint, out of the built file.
WORDS = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from termsprawlctl.cli import parser as cli
from termsprawlctl.base.errors import CtlError
told = {}

def add(name, parser):
    told[name] = parser.format_help()
    for wrong in (["--nix"], ["junk", "junk", "junk"], []):
        try:
            parser.parse_args(wrong)
        except CtlError as error:
            told[name + " " + " ".join(wrong)] = str(error)
    for action in parser.actions():
        if isinstance(action.choices, dict):
            for word, below in action.choices.items():
                add(name + " " + word, below)

for command in cli.COMMANDS:
    add(command, cli.command_parser(command))
sys.stdout.write(json.dumps(told))
"""


def words_of(python: str, ctl: str, **environment: str) -> dict[str, list[str]]:
    """What the built file says, without what each Python does as it likes: breaks of lines, and quotes at choices."""
    done = subprocess.run([python, "-ISBXutf8", "-c", WORDS, ctl], env=environment, capture_output=True, check=True)
    return {name: said.replace("'", "").split() for name, said in json.loads(done.stdout).items()}


@pytest.mark.parametrize("kind", PYTHONS)
def test_help_and_complaints_have_the_same_words_with_every_python(kind, ctl):
    here = words_of(os.path.join(sys.base_prefix, "bin", "python3"), ctl)
    # Newer Pythons would colour them, which the usage in an error text is not made for.
    assert words_of(PYTHONS[kind], ctl, FORCE_COLOR="1", PYTHON_COLORS="1") == here


def test_the_bridge_serves_with_every_python(ctl, env, tmp_path):
    with StandInApp(tmp_path / "app") as app, McpServer([ctl, "mcp", "--session", app.session], env) as server:
        assert server.initialize()["result"]["serverInfo"]["name"]
        assert "session_info" in [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert server.modern("tools/list")["result"]["tools"]
        assert server.answer_to(server.call("session_info"))["result"]["isError"] is False


def test_an_agent_runs_with_every_python(ctl, env, tmp_path):
    box = Box(ctl, tmp_path, env)
    box.script("begin(); background('import time; time.sleep(60)', start_new_session=True); end('done: é')")
    with box.server() as server:
        response = server.answer_to(server.call("run", prompt="x"))
        assert text(response).startswith("done: é")
        assert structured(response)["status"] == "completed"
    until(lambda: not box.processes(), "the end of what the agent left running")


class BuiltHost(RunningHost):
    """Called through the built file, whose Python and tmux these tests are about."""

    call = RunningHost.call_built


@contextlib.contextmanager
def running_host(ctl, root, env):
    host = BuiltHost(ctl, root, {**env, "HOME": str(root), "SHELL": "/bin/bash"})
    try:
        host.start()
        yield host
    finally:
        host.stop("--kill-sessions")


def round_trip(host) -> None:
    """A terminal that is typed into, read, found running, listed, drawn and ended."""
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="echo $((6*7))-é; exec 3</dev/null")
    host.wait_for_text(node, "42-é")
    host.value(
        "terminal_submit", nodeId=node, command="stty raw -echo; echo RAW-$((1+1)); head -c 4 | od -An -tx1; stty sane"
    )
    host.wait_for_text(node, "RAW-2")
    host.value("terminal_input", nodeId=node, text="\x01\x02\x1b;")
    host.wait_for_text(node, "01 02 1b 3b")
    assert node in json.dumps(host.value("canvas_list"), ensure_ascii=False)
    assert run([host.ctl, "map", "--session", host.session_file], host.env).status == 0
    assert run([host.ctl, "host", "status", "--data", str(host.data)], host.env).status == 0


def test_a_host_has_terminals_with_every_python(ctl, env, tmp_path_factory):
    with running_host(ctl, tmp_path_factory.mktemp("h"), env) as host:
        round_trip(host)
        assert host.stop().returncode == 0
        host.start()
        assert host.value("canvas_list")


def test_a_view_is_shared_with_every_python(ctl, env, tmp_path_factory):
    share_a_view(ctl, tmp_path_factory, env["PATH"])


def share_a_view(ctl, tmp_path_factory, path: str) -> None:
    """A client of a user's tmux, shown another session by an agent."""
    prepared = Prepared(tmp_path_factory.mktemp, path, ahead=1)
    share = None
    try:
        server = prepared.take()
        share = RunningShare([ctl, "tui", "share", "--socket-path", server.socket], server.env)
        listed = json.loads(run([ctl, "tui", "sessions", "--json", "--socket-path", server.socket], server.env).out)
        two = next(row["sessionId"] for row in listed if row["name"] == "two")
        context = run([ctl, "tui", "context", "--endpoint", share.path], server.env)
        assert (context.status, context.err) == (0, b"")
        assert share.select(two, context=share.quiet_context())["status"] == "applied"
        assert server.session_of(server.first) == "two"
        assert run([ctl, "tui", "revoke", share.path], server.env).status == 0
        assert share.ended() == 0
    finally:
        if share is not None:
            share.stop(signal.SIGKILL)
        prepared.close()


def test_a_configuration_is_written_with_every_python(ctl, env, tmp_path):
    config = tmp_path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "x"  # é\n')
    home = {**env, "HOME": str(tmp_path)}
    # The server that was written is started and asked for its tools, with the same Python.
    with StandInApp(tmp_path / "app") as app:
        done = run([ctl, "install", "codex", "--write", "--session", app.session], home)
    assert done.status == 0, done.err
    assert "mcp_servers.termsprawl" in config.read_text()
    assert run([ctl, "uninstall", "codex", "--write"], home).status == 0
    assert config.read_text() == 'model = "x"  # é\n'


# Every tmux


@pytest.fixture(params=tmuxes.new_enough())
def tmux_env(request, tmp_path) -> dict[str, str]:
    """An environment in which tmux is one that is new enough after the other."""
    (tmp_path / "tmux").symlink_to(tmuxes.every_one()[request.param])
    return {"PATH": os.pathsep.join([str(tmp_path), plain_path()]), "LANG": "C.UTF-8"}


def test_a_host_has_terminals_with_every_tmux(ctl, tmux_env, tmp_path_factory):
    with running_host(ctl, tmp_path_factory.mktemp("h"), tmux_env) as host:
        round_trip(host)


def test_a_view_is_shared_with_every_tmux(ctl, tmux_env, tmp_path_factory):
    share_a_view(ctl, tmp_path_factory, tmux_env["PATH"])


def stand_in(folder, answer: str) -> str:
    """A program that says it is such a tmux."""
    path = folder / "tmux"
    path.write_text(f"#!/bin/sh\necho {answer}\n")
    path.chmod(0o755)
    return str(path)


def commands_that_need_tmux(ctl, tmp_path) -> list[list[str]]:
    return [
        [ctl, "host", "start", "--data", str(tmp_path / "data"), "--project", str(tmp_path)],
        [ctl, "host", "run", "--data", str(tmp_path / "data"), "--project", str(tmp_path)],
        [ctl, "tui", "share", "--socket-path", str(tmp_path / "none")],
        [ctl, "tui", "sessions", "--socket-path", str(tmp_path / "none")],
    ]


def path_with(folder, tmux: str | None) -> str:
    """A PATH with Python, a few of the system's programs and that tmux alone."""
    for name, path in (("python3", os.path.join(sys.base_prefix, "bin", "python3")), ("tmux", tmux)):
        if path and not (folder / name).exists():
            (folder / name).symlink_to(path)
    return str(folder)


@pytest.mark.parametrize("version", ["3.1", "3.1c", "2.9a", "1.8", *tmuxes.too_old()])
def test_a_tmux_that_is_too_old_is_named_with_what_to_do(version, ctl, tmp_path):
    real = tmuxes.too_old().get(version)
    folder = tmp_path / "bin"
    folder.mkdir()
    env = {"PATH": path_with(folder, real or stand_in(folder, f"tmux {version}")), "HOME": str(tmp_path)}
    for words in commands_that_need_tmux(ctl, tmp_path):
        done = run(words, env)
        assert (done.status != 0, done.out) == (True, b""), words
        assert f"{folder}/tmux is too old (tmux {version})." in done.err.decode()
        assert "Install tmux 3.2 or newer" in done.err.decode()


def test_a_tmux_that_is_missing_is_named_with_what_to_do(ctl, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    env = {"PATH": path_with(folder, None), "HOME": str(tmp_path)}
    for words in commands_that_need_tmux(ctl, tmp_path):
        done = run(words, env)
        assert (done.status != 0, done.out) == (True, b""), words
        assert b"tmux is not installed." in done.err
        assert b"Install tmux 3.2 or newer" in done.err
