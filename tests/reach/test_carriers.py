"""This file and its MCP server through any command that passes standard input and output on."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.pseudoterminal import run_in_terminal
from support.ssh_server import is_running, until


@pytest.fixture
def namespace(box) -> str:
    """A carrier that leads into namespaces of its own, where the account's home is in another place."""
    inside = box.root / "inside"
    inside.mkdir()
    script = box.root / "bin" / "into"
    script.write_text(
        f'#!/bin/sh\nexec unshare -m -- sh -c \'mount --bind {box.home} {inside} && HOME={inside} exec "$@"\' sh "$@"\n'
    )
    script.chmod(0o755)
    if not shutil.which("unshare") or subprocess.run([script, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no mount namespace")
    return "into"


@pytest.fixture(params=["ssh box", "namespace"])
def via(request) -> str:
    """What leads there."""
    request.getfixturevalue("box")
    return request.param if request.param != "namespace" else request.getfixturevalue("namespace")


def test_the_file_is_sent_once_and_whole(via, box):
    done = box.run("send", "--via", via)
    assert done.returncode == 0, done.stderr
    (copy,) = box.copies()
    assert copy.read_bytes() == Path(box.ctl).read_bytes()
    before = copy.stat()
    assert box.run("send", "--via", via).stdout == done.stdout
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_mcp_client_makes_a_real_call_through_it(via, box):
    done = box.run("install", "claude", "--via", via, "--json", "--write")
    assert done.returncode == 0, done.stderr
    entry = json.loads((box.here / ".claude.json").read_text())["mcpServers"]["termsprawl"]
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "session_info", "arguments": {}}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=box.env, text=True
    ) as client:
        client.stdin.write(text)
        client.stdin.flush()
        answers = {}
        while 2 not in answers:
            line = json.loads(client.stdout.readline())
            answers[line.get("id")] = line
        client.stdin.close()
    assert not answers[2]["result"].get("isError")
    assert "projectId" in json.dumps(answers[2]["result"])


def test_doctor_speaks_for_the_other_side(via, box):
    done = box.run("doctor", "--via", via)
    assert done.returncode == 2
    assert "--session" in done.stderr


@pytest.mark.parametrize("via", ["", "no-such-program", "'"])
def test_a_command_that_leads_nowhere_is_refused(via, box):
    done = box.run("send", "--via", via)
    assert done.returncode == 2
    assert "--via" in done.stderr


def test_a_command_that_fails_is_reported_with_its_words(box):
    done = box.run("send", "--via", "sh -c 'echo no such container >&2; exit 4'")
    assert done.returncode == 1
    assert "no such container" in done.stderr
    assert "exit status 4" in done.stderr


def test_attach_shows_the_terminal_over_there(box):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    # What is typed into the terminal ends the client that is looking.
    typed = f"until tmux -S {box.home}/.local/state/termsprawlctl/tmux-sockets/termsprawl detach-client -s ts-{node}"
    box.call(session, "terminal_submit", nodeId=node, command=f"{typed} 2>/dev/null; do sleep 0.2; done")
    env = {**box.env, "TERM": "xterm"}
    status, shown = run_in_terminal([box.ctl, "attach", node, "--session", session], env, timeout_s=120)
    assert status == 0
    assert "detached (from session ts-" in shown
    status, shown = run_in_terminal([box.ctl, "attach", "n-none", "--session", session], env, timeout_s=120)
    assert status == 1
    assert "has no terminal" in shown


def test_attach_needs_a_connection_and_a_terminal(box):
    session = box.reach()
    done = box.run("attach", "n-1", "--session", session)
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr
    keeper, master = box.keeper(), box.record()["ssh"]
    os.kill(keeper, 9)
    os.kill(master, 9)
    until(lambda: not is_running(master))
    status, shown = run_in_terminal([box.ctl, "attach", "n-1", "--session", session], box.env)
    assert status == 1
    assert "box is not connected" in shown


# Waits for a window of its own, as an emulator does: the command after `--` in a terminal.
EMULATOR = "#!{python}\nimport os, pty, sys\nos.environ['TERM'] = 'xterm'\npty.spawn(sys.argv[2:])\n"


@pytest.fixture
def display(box):
    """The box' environment with an emulator and a display that accepts."""
    kitty = box.root / "bin" / "kitty"
    kitty.write_text(EMULATOR.format(python=os.path.join(sys.base_prefix, "bin", "python3")))
    kitty.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as accepting:
        accepting.bind(str(box.root / "wl"))
        accepting.listen()
        yield {**box.env, "WAYLAND_DISPLAY": str(box.root / "wl")}


def test_a_window_shows_the_terminal_over_there_and_is_proved_by_its_client_there(box, display):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    words = ["external", node, "--session", session, "--terminal", "kitty"]
    dry = box.run(*words, "--dry-run", "--json", env=display)
    assert dry.returncode == 0, dry.stderr
    planned = json.loads(dry.stdout)
    assert planned["argv"][-5:] == [box.ctl, "attach", node, "--data", str(box.place())]
    assert (planned["started"], planned["notes"]) == (False, [])
    done = box.run(*words, "--json", env=display)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["argv"], report["attached"], report["client"]["term"]) == (planned["argv"], True, "xterm")
    again = box.run(*words, env=display)  # a second client is another one
    assert f"opened {node} in kitty: " in again.stdout
    assert report["client"]["tty"] not in again.stdout


def test_a_window_on_what_is_not_there_is_refused_before_it_opens(box, display):
    session = box.reach()
    done = box.run("external", "n-none", "--session", session, env=display)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no tmux server" in done.stderr or "has no terminal" in done.stderr
    dry = json.loads(box.run("external", "n-none", "--session", session, "--dry-run", "--json", env=display).stdout)
    assert len(dry["notes"]) == 1
    keeper, master = box.keeper(), box.record()["ssh"]
    os.kill(keeper, 9)
    os.kill(master, 9)
    until(lambda: not is_running(master))
    done = box.run("external", "n-none", "--session", session, env=display)
    assert done.returncode == 1
    assert "box is not connected. Run: termsprawlctl reach box" in done.stderr
