"""One host per directory, and what a host may conclude from files and processes that it finds."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from support.processes import is_alive
from support.running_host import RunningHost
from support.waiting import until

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.daemon import lock
from termsprawlctl.host.registry import sessions, status


@pytest.fixture
def stranger():
    """A process that has nothing to do with us."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def stopped(host):
    assert host.stop().returncode == 0
    return host


def write_lock(host, pid: int, *, age_s: float = 0.0) -> None:
    path = host.data / "agent-tools" / "server.lock"
    path.write_text(json.dumps({"pid": pid, "instanceId": "other"}))
    os.utime(path, (time.time() - age_s,) * 2)


def write_endpoint(host, port: int) -> None:
    content = {"url": f"http://127.0.0.1:{port}/call", "instanceId": "other"}
    (host.data / "agent-tools" / "endpoint.json").write_text(json.dumps(content))


def test_stop_ends_the_host_and_nobody_else_whatever_server_lock_says(host, stranger):
    write_lock(host, stranger.pid)
    # On a slow machine the host sees first, by itself, that its lock is another's.
    assert host.stop().returncode == 0
    assert stranger.poll() is None
    assert not host.call("session_info")["ok"]


def test_stop_tells_the_truth_when_server_lock_is_gone(host):
    (host.data / "agent-tools" / "server.lock").unlink()
    assert host.stop().returncode == 0
    assert not host.call("session_info")["ok"]
    assert not lock.is_held(DataPaths(str(host.data)))


def test_a_host_that_is_stopped_in_its_tracks_is_not_claimed_to_have_ended(host, monkeypatch):
    from termsprawlctl.host.daemon import control

    pid = host.pid()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(control, "STOP_TIMEOUT_S", 0.3)
    try:
        with pytest.raises(CtlError, match=f"the host \\(pid {pid}\\) does not end. Try: kill -9 {pid}"):
            control.stop(DataPaths(str(host.data)), kill_sessions=False)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_live_pid_without_an_endpoint_is_a_server_that_starts_or_one_long_gone(stopped, stranger):
    write_lock(stopped, stranger.pid)
    done = stopped.run("host", "start", "--data", str(stopped.data))
    assert done.returncode == 1
    assert f"remove {stopped.data / 'agent-tools' / 'server.lock'}" in done.stderr.decode()
    write_lock(stopped, stranger.pid, age_s=600)
    stopped.start()
    assert stopped.value("session_info")


def test_a_port_that_another_program_has_now_proves_the_lock_stale(stopped, stranger, tmp_path):
    write_lock(stopped, stranger.pid)
    argv = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        try:
            write_endpoint(stopped, int(other.stdout.readline().split()[5]))
            stopped.start()
            assert stopped.value("session_info")
        finally:
            other.kill()


def test_a_server_of_our_kind_keeps_its_directory_and_no_token_is_shown_to_it(stopped, stranger):
    tokens = [json.loads(path.read_text())["token"] for path in (stopped.data / "agent-tools" / "sessions").iterdir()]
    seen: list[bytes] = []
    answer = b'{"ok":false,"error":"Unknown or revoked session"}'

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            seen.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 401 X\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        write_lock(stopped, stranger.pid)
        write_endpoint(stopped, listening.getsockname()[1])
        done = stopped.run("host", "start", "--data", str(stopped.data))
        thread.join()
    assert done.returncode == 1
    assert f"already (pid {stranger.pid})" in done.stderr.decode()
    assert b"authorization" in seen[0].lower()
    assert not [token for token in tokens if token.encode() in seen[0]]


def test_a_host_without_free_descriptors_does_not_take_itself_for_replaced(tmp_path, monkeypatch):
    paths = DataPaths(str(tmp_path))
    held = lock.ServerLock(paths, "mine")
    held.acquire()
    held.publish("http://127.0.0.1:1/call")
    assert held.is_ours()

    def no_descriptor(path: str, *_):
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(lock, "read_object", no_descriptor)
    assert held.is_ours()
    monkeypatch.undo()
    os.unlink(paths.endpoint)
    assert not held.is_ours()
    held.release()


def test_sessions_that_cannot_be_read_for_the_moment_are_kept(tmp_path, monkeypatch):
    paths = DataPaths(str(tmp_path))
    store = sessions.SessionStore(paths)
    one = store.provision("n-1", "p-1", status.SHELL_STATUS)
    store.provision("n-2", "p-1", status.SHELL_STATUS)

    def no_descriptor(path: str, *_, **__):
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(sessions, "read_object", no_descriptor)
    assert store.find(one.token) == one
    monkeypatch.undo()
    assert store.find(one.token) == one
    assert store.revoke("n-1", "p-1")
    assert store.find(one.token) is None
    assert not os.path.exists(paths.session("n-1"))


def test_a_directory_that_is_deleted_and_made_anew_at_once_leaves_no_terminals_behind(host):
    host.value("terminal_open")
    tmux_pid = int(host.tmux("display-message", "-p", "#{pid}").stdout)
    shutil.rmtree(host.data)
    host.start()
    until(lambda: not is_alive(tmux_pid), "the end of tmux")
    assert host.value("session_info")


def test_a_bad_project_starts_no_host(stopped):
    for words in (["start"], ["run"]):
        done = stopped.run("host", *words, "--data", str(stopped.data), "--project", "/no/such")
        assert done.returncode == 1
        assert "/no/such is not a directory" in done.stderr.decode()
    assert not lock.is_held(DataPaths(str(stopped.data)))


def test_many_starts_at_once_on_a_long_path_agree_on_one_socket(ctl, tmp_path, hermetic_env):
    root = tmp_path / ("d" * 100)
    root.mkdir()
    temporary = tmp_path / "t"
    temporary.mkdir()
    running = RunningHost(ctl, root, {**hermetic_env, "HOME": str(root), "TMPDIR": str(temporary)})
    try:
        threads = [threading.Thread(target=running.start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        node = running.value("terminal_open")["nodeId"]
        shown = running.run("host", "status", "--data", str(running.data)).stdout.decode()
        assert f"terminal  {node}  running" in shown
        # Beside it there may be a directory for what shells read.
        assert len({path.parent for path in temporary.glob("*/*") if path.is_socket()}) == 1
    finally:
        running.stop("--kill-sessions")
    assert list(temporary.iterdir()) == []


def test_something_in_the_way_is_named_with_the_reason(stopped, tmp_path):
    projects = stopped.data / "agent-tools" / "projects"
    shutil.rmtree(projects)
    projects.write_text("in the way")
    done = stopped.run("host", "start", "--data", str(stopped.data))
    assert done.returncode == 1
    # On a busy machine it says before that it is being started.
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"termsprawlctl: cannot use the data directory {stopped.data}: ")
    stopped.stop()
    server_lock = stopped.data / "agent-tools" / "server.lock"
    projects.unlink()
    server_lock.mkdir()
    done = stopped.run("host", "start", "--data", str(stopped.data))
    assert done.returncode == 1
    assert str(server_lock) in done.stderr.decode()
    server_lock.rmdir()


def test_status_works_without_tmux_and_says_what_it_cannot_tell(host, tmp_path):
    node = host.value("terminal_open")["nodeId"]
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", "sh"):
        (folder / name).symlink_to(shutil.which(name, path=host.env["PATH"]))
    done = subprocess.run(
        [host.ctl, "host", "status", "--data", host.data], env={"PATH": str(folder)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"running, pid {host.pid()}" in done.stdout.decode()
    assert f"{node}  unknown: tmux cannot be asked" in done.stdout.decode()


@pytest.mark.skipif(
    os.getuid() != 0 or not os.path.exists("/usr/bin/python3"), reason="only root can act as another user"
)
def test_another_users_host_is_not_reported_as_none(ctl, hermetic_env):
    # Not below pytest's own directory, which is closed to other users.
    with tempfile.TemporaryDirectory(prefix="tc") as folder:
        root = Path(folder)
        root.chmod(0o755)
        shutil.copy(ctl, root / "file")
        running = RunningHost(ctl, root, {**hermetic_env, "HOME": folder})
        running.data.mkdir(mode=0o755)
        running.start()
        try:
            for action in ("status", "stop"):
                words = ["/usr/bin/python3", "-ISB", root / "file", "host", action, "--data", running.data]
                done = subprocess.run(
                    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words],
                    env={"PATH": "/usr/bin:/bin"},
                    capture_output=True,
                    check=False,
                )
                assert done.returncode == 1, done
                assert b"belongs to another user" in done.stderr
            assert running.value("session_info")
        finally:
            running.stop("--kill-sessions")


def test_a_data_directory_whose_name_is_no_utf8_survives_eval(ctl, tmp_path, hermetic_env):
    data = os.fsencode(tmp_path) + b"/b\xff"
    env = {**hermetic_env, "HOME": str(tmp_path)}
    done = subprocess.run(
        [
            "sh",
            "-c",
            b'eval "$("$0" host start --data "$1" --project /tmp)" && "$0" call session_info --field ok',
            ctl,
            data,
        ],
        env=env,
        capture_output=True,
        check=False,
    )
    subprocess.run([ctl, "host", "stop", "--data", data, "--kill-sessions"], env=env, check=False, capture_output=True)
    assert done.stdout == b"true\n", done.stderr


@pytest.mark.parametrize("name", ["C#S", "x#(touch PWNED)y", "#{pane_id}", "a;", "$HOME", "%1", "a#[b", "##[fg=red]"])
def test_a_project_folder_is_a_name_and_no_format(host, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    session = host.start(folder)
    node = host.value("terminal_open", session=session)["nodeId"]
    host.value("terminal_submit", session=session, nodeId=node, command="pwd -P > out; echo ok-$((1+1))")
    until(lambda: (folder / "out").exists() and (folder / "out").read_text(), "the command's output")
    assert (folder / "out").read_text() == f"{folder.resolve()}\n"
    assert not os.path.exists("/PWNED")
    assert not list(tmp_path.rglob("PWNED"))


def test_a_path_that_needs_quotes_leaves_nothing_in_the_temporary_directory(ctl, tmp_path, hermetic_env):
    root, temporary = tmp_path / "it's $(a) dir", tmp_path / "t"
    root.mkdir()
    temporary.mkdir()
    running = RunningHost(
        ctl, root, {**hermetic_env, "HOME": str(root), "TMPDIR": str(temporary), "SHELL": "/bin/bash"}
    )
    try:
        running.start()
        node = running.value("terminal_open")["nodeId"]
        assert running.value("terminal_run", nodeId=node, command="echo $((6 * 7))")["output"].strip() == "42"
    finally:
        running.stop("--kill-sessions")
    assert list(temporary.iterdir()) == []
