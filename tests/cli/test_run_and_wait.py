"""`run` and `wait`: a command's output as it comes and its exit status, without a loop around `call`."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from support import chosen
from support.terminal_host import start_host
from support.waiting import until


@pytest.fixture(scope="module")
def bash_host(ctl, tmp_path_factory):
    running = start_host(ctl, tmp_path_factory.mktemp("h"), {"PATH": chosen.plain_path()}, "bash")
    running.env = {**running.env, "TERMSPRAWL_SESSION_FILE": running.session_file}
    yield running
    running.stop("--kill-sessions")


def terminals(host) -> list[str]:
    return [node["id"] for node in host.value("canvas_list")]


def test_it_prints_the_output_and_ends_with_the_commands_status(bash_host):
    before = terminals(bash_host)
    done = bash_host.run("run", "--", "printf 'one\\ntwo\\n'; sleep 0.2; printf three; (exit 7)")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (7, "one\ntwo\nthree", b"")
    # Several words are quoted, and nothing is left open.
    done = bash_host.run("run", "--", "printf", "%s|", "a b", "$HOME", "*")
    assert (done.returncode, done.stdout.decode()) == (0, "a b|$HOME|*|")
    assert terminals(bash_host) == before


def test_a_terminal_keeps_its_state_and_stays_open(bash_host):
    terminal = bash_host.open()
    assert bash_host.run("run", terminal.node_id, "--", "cd /usr; export KEPT=yes").returncode == 0
    done = bash_host.run("run", terminal.node_id, "--", "pwd; echo $KEPT; seq 5000")
    assert done.stdout.decode().split("\n") == ["/usr", "yes", *map(str, range(1, 5001)), ""]
    assert terminal.screen().endswith(("$", "#"))


def test_as_json_it_is_one_object(bash_host):
    done = bash_host.run("run", "--json", "--", "echo out; false")
    value = json.loads(done.stdout)
    assert done.returncode == 1
    assert (value["output"], value["exitStatus"], value["timedOut"]) == ("out\n", 1, False)
    assert value["durationMs"] >= 0


def test_a_command_that_takes_too_long_is_interrupted(bash_host):
    done = bash_host.run("run", "--timeout", "0.3", "--json", "--", "echo begun; sleep 600")
    assert done.returncode == 124
    assert json.loads(done.stdout)["timedOut"]
    assert json.loads(done.stdout)["output"].startswith("begun\n")


def test_ctrl_c_reaches_the_command(bash_host):
    argv = [bash_host.ctl, "run", "--", "echo ready; sleep 600"]
    with subprocess.Popen(argv, env=bash_host.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = b""
        while b"ready" not in seen:
            seen += os.read(process.stdout.fileno(), 4096)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 3", 3), ("sleep 0.5; exit", 0), ("exec false", 1), ("kill -9 $$", 137), ("set -e; (exit 5)", 5)],
)
def test_what_ends_the_shell_has_its_status_too(bash_host, command, status):
    before = terminals(bash_host)
    done = bash_host.run("run", "--", f"echo out; {command}")
    assert (done.returncode, done.stdout.decode().splitlines()[:1], done.stderr) == (status, ["out"], b"")
    assert terminals(bash_host) == before
    terminal = bash_host.open()
    assert bash_host.run("run", "--json", terminal.node_id, "--", command).returncode == status
    told = terminal.value("terminal_wait", exit=True)
    assert (told["reason"], told["exitStatus"], told["ended"]) == ("exit", status, True)
    assert "has ended" in terminal.refusal("terminal_run", command="ls")
    terminal.value("terminal_close")


def test_what_cannot_be_run_is_an_error(bash_host):
    assert b"no command is given" in bash_host.run("run").stderr
    assert bash_host.run("run", "n-none").returncode == 2
    done = bash_host.run("run", "n-none", "--", "ls")
    assert (done.returncode, b"Unknown node: n-none" in done.stderr) == (1, True)


def test_wait_for_text_silence_and_the_end(bash_host):
    terminal = bash_host.open()
    gate = bash_host.project / "wait-gate"
    terminal.value(
        "terminal_run", command=f"while ! test -e {gate}; do sleep 0.05; done; echo over; (exit 3)", timeoutMs=0
    )
    assert bash_host.run("wait", terminal.node_id, "--text", "over", "--timeout", "0.2").returncode == 124
    gate.touch()
    done = bash_host.run("wait", terminal.node_id, "--text", "ove")
    assert (done.returncode, done.stdout) == (0, b"over\n")
    assert bash_host.run("wait", terminal.node_id, "--exit").returncode == 3
    assert bash_host.run("wait", terminal.node_id, "--idle", "0.1").returncode == 0
    value = json.loads(bash_host.run("wait", terminal.node_id, "--exit", "--json").stdout)
    assert (value["reason"], value["exitStatus"]) == ("exit", 3)
    assert b"nothing is given to wait for" in bash_host.run("wait", terminal.node_id).stderr
    gate.unlink()


def test_call_types_its_fields_by_the_table(bash_host):
    terminal = bash_host.open()
    done = bash_host.run("call", "terminal_read", f"nodeId={terminal.node_id}", "maxChars=1")
    assert len(json.loads(done.stdout)["value"]["output"]) == 1
    done = bash_host.run("call", "canvas_select", f"nodeIds={terminal.node_id},{terminal.node_id}")
    assert json.loads(done.stdout)["ok"]
    done = bash_host.run("call", "terminal_wait", f"nodeId={terminal.node_id}", "exit=true", "timeoutMs=1")
    assert json.loads(done.stdout)["value"]["reason"] == "timeout"
    done = bash_host.run("call", "terminal_read", f"nodeId={terminal.node_id}", "maxChars=many")
    assert (done.returncode, b"takes a number" in done.stderr) == (2, True)
    until(lambda: terminal.screen().endswith(("$", "#")), "the prompt")
