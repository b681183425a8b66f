"""What Linux alone has is taken away, and what other systems do instead is run for real.

docs/portability.md lists the differences; the names here follow it.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import json
import os
import pty
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from support.command import run
from support.mcp_app import StandInApp
from support.mcp_client import McpServer
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles
from support.waiting import until

from termsprawlctl.app import peer
from termsprawlctl.base import processes, processtable, tmux
from termsprawlctl.host.terminals import foreground
from termsprawlctl.mcp import stdio
from termsprawlctl.windows import displays

LONG_WORD = "x" * 300
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", LONG_WORD]


@pytest.fixture
def no_proc(monkeypatch):
    """A system without /proc; `ps` has to do, which here writes as narrowly as to no terminal on macOS."""
    is_folder, open_file, open_descriptor = os.path.isdir, open, os.open

    def absent(path) -> bool:
        return isinstance(path, str) and (path + "/").startswith("/proc/")

    def refuse(real):
        def opened(path, *args, **options):
            if absent(path):
                raise FileNotFoundError(2, "No such file or directory", path)
            return real(path, *args, **options)

        return opened

    monkeypatch.setattr(os.path, "isdir", lambda path: not absent(path) and is_folder(path))
    monkeypatch.setattr(builtins, "open", refuse(open_file))
    monkeypatch.setattr(os, "open", refuse(open_descriptor))
    monkeypatch.setenv("COLUMNS", "79")
    monkeypatch.delenv("POSIXLY_CORRECT", raising=False)


@pytest.fixture
def child():
    """A running process with a long command line, and the marker in its environment."""
    marker = secrets.token_hex(8)
    process = subprocess.Popen(SLEEP, env={processtable.MARKER: marker}, start_new_session=True)
    yield process, marker
    process.kill()
    process.wait()


# The process table


def test_command_lines_are_whole_without_proc(no_proc, child):
    process, _ = child
    until(lambda: processtable.command_line_of(process.pid)[-1:] == [LONG_WORD], "the whole command line")
    process.kill()
    process.wait()
    assert processtable.command_line_of(process.pid) == []


def test_the_family_of_a_run_is_found_and_ended_without_proc(no_proc, child, monkeypatch):
    # How the BSDs' ps is asked for environments; the one of Linux has another letter for it.
    asked = processtable.ps
    monkeypatch.setattr(processtable, "ps", lambda first, *rest: asked(first.replace("-axE", "axe"), *rest))
    process, marker = child
    # Not a child of the root: it is the marker that tells.
    family = processtable.Family(process.pid + 1_000_000, marker)
    until(lambda: family.look() == [process.pid], "the child is found")
    assert processtable.marked(processtable.table(), marker[:-1]) == set()
    assert family.end(5.0, 10.0, process.poll) == 0
    assert process.returncode == -signal.SIGTERM


def test_no_process_is_adopted_where_the_system_has_no_way_for_it(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert processtable.adopt_orphans() is False


def test_no_process_is_adopted_where_python_cannot_call_the_system(monkeypatch):
    def refuse(_name):
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert processtable.adopt_orphans() is False


@pytest.mark.process
def test_a_group_that_may_not_be_signalled_any_more_counts_as_ended(monkeypatch):
    # macOS says EPERM, not ESRCH, of a group that has only zombies left.
    def refuse(_group, _number):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", refuse)
    processtable.send_to_group(os.getpgrp(), signal.SIGKILL)
    said = processes.output_of(["/bin/sh", "-c", "echo words"], timeout_s=20.0, max_bytes=100)
    assert said == b"words\n"


# What runs in a terminal


def test_a_shell_in_a_terminal_is_told_from_a_program_without_proc(no_proc):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve("/bin/bash", ["-bash", "--norc", "--noprofile"], {"PATH": os.environ["PATH"], "PS1": "ready> "})
    try:
        seen = b""
        while b"ready> " not in seen:
            assert select.select([terminal], [], [], 20)[0], seen
            seen += os.read(terminal, 4096)

        def kind() -> str | None:
            program = foreground.foreground(pid)
            shell = foreground.shell_of(program) if program else None
            return shell.kind if shell else (program and program.name)

        until(lambda: kind() == "bash", "the shell")
        tty = os.ttyname(terminal) if sys.platform != "linux" else os.readlink(f"/proc/{pid}/fd/0")
        program = foreground.foreground(pid)
        assert foreground.at_prompt(foreground.shell_of(program), program, tty)
        os.write(terminal, b"sleep 600\n")
        until(lambda: kind() == "sleep", "the program")
        assert processtable.is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        until(lambda: not processtable.is_running(pid), "a zombie counts as ended")
        os.waitpid(pid, 0)
        os.close(terminal)
    assert not processtable.is_running(pid)


# Pipes and sockets


def test_a_pipe_that_cannot_be_opened_anew_is_written_in_pieces_that_never_block(no_proc):
    reader, writer = os.pipe()
    try:
        assert stdio._never_blocking(writer) == (writer, select.PIPE_BUF)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_system_that_does_not_tell_owners_of_ports_is_not_refused(monkeypatch, ctl, hermetic_env, tmp_path):
    with ScriptedServer(replying(answer({"ok": True, "value": {}}))) as server, socket.socket() as client:
        client.connect(("127.0.0.1", server.port))
        ports = server.port, client.getsockname()[1]
        assert peer.owner_of_listener(*ports) == os.getuid()
        monkeypatch.delattr(peer.socket, "AF_NETLINK")
        assert peer.owner_of_listener(*ports) == os.getuid()
        monkeypatch.setattr(peer, "_TABLES", {"/none": (b"",)})
        assert peer.owner_of_listener(*ports) is None


def test_a_system_that_does_not_tell_owners_of_sockets_is_not_refused(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
        displays._connect(socket.AF_UNIX, str(tmp_path / "s"))


@pytest.mark.parametrize(("system", "limit"), [("Darwin", 103), ("Linux", 107)])
def test_the_length_of_a_sockets_path_is_the_systems(monkeypatch, system, limit):
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((system, *real[1:])))
    # A module of its own: the real one stays as it is.
    spec = importlib.util.find_spec("termsprawlctl.base.tmux")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert limit == module.MAX_SOCKET_PATH_BYTES
    assert tmux.MAX_SOCKET_PATH_BYTES in (103, 107)


# The whole program where nothing is mounted at /proc: root alone can make such a view.

VIEW = 'mount -t tmpfs none /proc && ! [ -e /proc/self ] && exec "$@"'


@pytest.fixture
def without_proc() -> list[str]:
    words = ["unshare", "-m", "sh", "-c", VIEW, "sh"]
    if os.getuid() != 0 or not shutil.which("unshare") or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("a view without /proc needs root and unshare")
    return words


def test_calls_work_without_proc(without_proc, ctl, hermetic_env, tmp_path):
    good = {"ok": True, "value": {"text": "é"}}
    with ScriptedServer(replying(answer(good))) as server:
        session = str(SessionFiles(tmp_path, server.port).session)
        for words in (["doctor"], ["call", "x", "a=1"]):
            done = run([*without_proc, ctl, *words, "--session", session], hermetic_env)
            assert (done.status, done.err, json.loads(done.out)) == (0, b"", good)


def test_the_bridge_serves_without_proc(without_proc, ctl, hermetic_env, tmp_path):
    with (
        StandInApp(tmp_path / "app") as app,
        McpServer([*without_proc, ctl, "mcp", "--session", app.session], hermetic_env) as server,
    ):
        server.initialize()
        # Far more than a pipe holds, before anything is read.
        asked = [server.ask("tools/list") for _ in range(20)]
        assert all("tools" in server.answer_to(one)["result"] for one in asked)
        assert server.answer_to(server.call("session_info"))["result"]["isError"] is False
