"""Two shortages at once: strangers who hold what they can, and a host that may have little more of something."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from support.faults import until
from support.running_host import RunningHost

STRANGERS = 60
ROUNDS = 5  # of four calls
HALF_A_HEAD = b"POST /call HTTP/1.1\r\nhost: 127.0.0.1\r\n"
FEW = 32  # descriptors
# A host with a terminal has some eight; a call needs one, a tmux and a command.
FEW_THREADS = 18


@contextlib.contextmanager
def strangers(port: int, data: bytes = HALF_A_HEAD):
    """Connections of somebody who has no token, says so much and then nothing more; new ones for those that end."""
    with contextlib.ExitStack() as opened:
        for _ in range(STRANGERS):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            one.sendall(data)
        yield


def assert_answers(host: RunningHost, node: str, rounds: int = ROUNDS) -> None:
    """Whatever an owner does is done: what is answered from memory, by tmux, by a shell, by a write."""
    for number in range(rounds):
        assert host.call("canvas_list")["ok"]
        assert host.value("terminal_read", nodeId=node)["nodeId"] == node
        assert host.value("terminal_run", nodeId=node, command="true", timeoutMs=20_000)["exitStatus"] == 0
        assert host.value("sticky_open", text=f"note {number}")["nodeId"]


@pytest.mark.parametrize("data", [HALF_A_HEAD, HALF_A_HEAD + b"x: %s\r\n" % (b"y" * 1000) * 55], ids=["short", "long"])
def test_silent_strangers_lock_nobody_out_of_a_host_that_has_little_memory_left(host, data):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_run", nodeId=node, command="true")
    pid = host.pid()
    (size,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmSize"))
    # Some threads more would fit, a thread for each stranger would not.
    limit = (int(size.split()[1]) << 10) + (64 << 20)
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
    with strangers(host.port(), data):
        assert_answers(host, node)


def test_silent_strangers_lock_nobody_out_of_a_host_that_has_few_threads_left(ctl, hermetic_env):
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("only root can become a user who has no other process, with setpriv")
    root = Path(tempfile.mkdtemp(prefix="few-", dir="/tmp"))
    user = 1_000_000 + os.getpid()
    try:
        shutil.copy(ctl, root / "ctl")
        become = f"{setpriv} --reuid={user} --regid={user} --clear-groups"
        for name, words in (("start", f"prlimit --nproc={FEW_THREADS} {become}"), ("run", become)):
            (root / name).write_text(f'#!/bin/sh\nexec {words} {root}/ctl "$@"\n')
            (root / name).chmod(0o755)
        host = RunningHost(str(root / "start"), root, {**hermetic_env, "HOME": str(root), "SHELL": "/bin/sh"})
        for path in (root, host.project):
            os.chown(path, user, user)
        host.start()
        host.ctl = str(root / "run")
        try:
            node = host.value("terminal_open")["nodeId"]
            with strangers(host.port()):
                assert_answers(host, node)
        finally:
            assert host.stop("--kill-sessions").returncode == 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def narrow(ctl, tmp_path, hermetic_env):
    """A host, and a tmux, that may open only a few files."""
    start = tmp_path / "start"
    start.write_text(f'#!/bin/sh\nulimit -n {FEW}\nexec {ctl} "$@"\n')
    start.chmod(0o755)
    running = RunningHost(str(start), tmp_path, {**hermetic_env, "HOME": str(tmp_path), "SHELL": "/bin/sh"})
    running.start()
    running.ctl = ctl
    yield running
    running.stop("--kill-sessions")


@pytest.mark.parametrize("besieged", [False, True], ids=["alone", "with strangers"])
def test_a_terminal_too_many_is_refused_while_all_the_others_can_be_used_and_ended(narrow, besieged):
    with strangers(narrow.port()) if besieged else contextlib.nullcontext():
        opened = []
        while (answer := narrow.call("terminal_open"))["ok"]:
            opened.append(answer["value"]["nodeId"])
            assert len(opened) < FEW
        assert "There is no room for another terminal" in answer["error"]
        assert "No terminal was started" in answer["error"]
        assert len(opened) >= 2
        assert {node["id"] for node in narrow.value("canvas_list")} == set(opened)
        for node in opened:
            assert_answers(narrow, node, rounds=1)
        assert narrow.value("terminal_close", nodeId=opened[0])["closed"]
        # Its descriptors are free once tmux and the reading thread have heard of the end.
        until(lambda: narrow.call("terminal_open")["ok"], "there is no room after one was closed")
    tmux = int((narrow.data / "tmux-sockets" / "termsprawl.pid").read_text())
    assert narrow.stop("--kill-sessions").returncode == 0
    assert not Path(f"/proc/{tmux}/exe").exists()


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
def test_a_tmux_that_does_not_answer_is_ended_by_its_process_id(host, is_noted):
    node = host.value("terminal_open")["nodeId"]
    shell = int(host.tmux("display-message", "-p", "-t", f"ts-{node}", "#{pane_pid}").stdout)
    record = host.data / "tmux-sockets" / "termsprawl.pid"
    tmux = int(record.read_text())
    os.kill(tmux, signal.SIGSTOP)
    try:
        if not is_noted:
            record.unlink()
        stopped = host.stop("--kill-sessions")
        assert stopped.returncode == 0, stopped.stderr
        until(lambda: not Path(f"/proc/{tmux}/exe").exists(), "the tmux server goes on")
        until(lambda: not Path(f"/proc/{shell}/exe").exists(), "the shell goes on")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(tmux, signal.SIGKILL)
