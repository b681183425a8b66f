"""Starting, restarting, stopping and losing a host."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from support.processes import is_alive
from support.running_host import RunningHost
from support.waiting import until


@pytest.fixture
def stopped(host):
    """A host that was started and stopped again, with its files in place."""
    assert host.stop().returncode == 0
    return host


def test_start_prints_one_line_for_eval_and_a_second_start_the_same(host):
    again = host.run("host", "start", "--data", str(host.data), "--project", str(host.project))
    assert again.stdout.decode() == f"export TERMSPRAWL_SESSION_FILE={host.session_file}\n"
    assert again.stderr == b""


def test_a_path_with_spaces_and_quotes_survives_eval(ctl, tmp_path, hermetic_env):
    root = tmp_path / "it's a $(dir) ü"
    root.mkdir()
    running = RunningHost(ctl, root, {**hermetic_env, "HOME": str(root)})
    try:
        session = running.start()
        assert Path(session).is_file()
        shell = 'eval "$($CTL host start --data "$DATA" --project .)" && exec "$CTL" call session_info --field ok'
        done = subprocess.run(
            ["/bin/sh", "-c", shell],
            env={**running.env, "CTL": ctl, "DATA": str(running.data)},
            cwd=running.project,
            capture_output=True,
            check=False,
        )
        assert done.stdout == b"true\n", done.stderr
        node = running.value("terminal_open")["nodeId"]
        running.value("terminal_submit", nodeId=node, command="pwd; echo here-$((1+1))")
        assert str(running.project) in running.wait_for_text(node, "here-2").replace("\n", "")
    finally:
        running.stop("--kill-sessions")


def test_everything_that_it_writes_is_private(host):
    host.value("terminal_open")
    for directory, _, files in os.walk(host.data):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700, directory
        for name in files:
            status = os.stat(os.path.join(directory, name))
            if stat.S_ISREG(status.st_mode):
                assert stat.S_IMODE(status.st_mode) == 0o600, name


def test_a_data_directory_that_others_may_write_to_is_refused(ctl, tmp_path, hermetic_env):
    data = tmp_path / "open"
    data.mkdir()
    data.chmod(0o777)
    done = subprocess.run([ctl, "host", "start", "--data", data], env=hermetic_env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"other users may write to it" in done.stderr
    assert stat.S_IMODE(data.stat().st_mode) == 0o777
    assert list(data.iterdir()) == []


def test_an_existing_directory_keeps_its_mode(ctl, tmp_path, hermetic_env):
    data = tmp_path / "mine"
    data.mkdir()
    data.chmod(0o755)
    running = RunningHost(ctl, tmp_path, hermetic_env)
    running.data = data
    running.start()
    running.stop("--kill-sessions")
    assert stat.S_IMODE(data.stat().st_mode) == 0o755


def test_a_restart_keeps_terminals_and_tokens(host):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="MARK=kept-over-restart")
    token, instance = host.token(), host.endpoint()["instanceId"]
    host.stop()
    assert not (host.data / "agent-tools" / "endpoint.json").exists()
    assert not (host.data / "agent-tools" / "server.lock").exists()
    refused = host.call("session_info")
    assert refused["error"].startswith("Tool connection unavailable: cannot read the endpoint file")
    host.start()
    assert host.token() == token
    assert host.endpoint()["instanceId"] != instance
    host.value("terminal_submit", nodeId=node, command="echo [$MARK]")
    host.wait_for_text(node, "[kept-over-restart]")


def test_a_killed_host_is_replaced_and_its_terminals_are_found_again(host):
    node = host.value("terminal_open")["nodeId"]
    os.kill(host.pid(), signal.SIGKILL)
    until(lambda: not host.call("session_info")["ok"])
    host.start()
    assert host.value("terminal_read", nodeId=node)["nodeId"] == node


def test_a_second_host_on_the_same_directory_is_refused(host):
    second = host.run("host", "run", "--data", str(host.data))
    assert second.returncode == 1
    assert second.stdout == b""
    assert f"a server runs on {host.data} already (pid {host.pid()})" in second.stderr.decode()
    assert host.value("session_info")


def test_many_starts_at_once_make_one_host(stopped):
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(stopped.start())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [stopped.session_file] * 4
    # Once when the fixture started it, once now.
    assert (stopped.data / "host.log").read_text().count(f" serving {stopped.data}") == 2
    assert stopped.value("session_info")


def test_a_start_beside_a_host_that_ends_starts_another_one(host):
    os.kill(host.pid(), signal.SIGSTOP)
    starting = subprocess.Popen(
        [host.ctl, "host", "start", "--data", str(host.data)],
        env=host.env,
        cwd=host.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    descriptors = Path(f"/proc/{starting.pid}/fd")

    def has_connected() -> bool:
        with contextlib.suppress(OSError):
            return any(os.readlink(one).startswith("socket:") for one in descriptors.iterdir())
        return False

    until(has_connected)
    os.kill(host.pid(), signal.SIGKILL)
    out, err = starting.communicate(timeout=60)
    assert (starting.returncode, host.session_file in out.decode()) == (0, True), err.decode()
    assert host.value("session_info")


def write_lock(host, pid: int, instance: str) -> None:
    (host.data / "agent-tools" / "server.lock").write_text(json.dumps({"pid": pid, "instanceId": instance}))


def test_a_lock_with_a_live_pid_refuses_a_second_server(stopped):
    write_lock(stopped, os.getpid(), "somebody")
    done = stopped.run("host", "start", "--data", str(stopped.data))
    assert done.returncode == 1
    assert f"already (pid {os.getpid()})" in done.stderr.decode()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": "1"}', '{"pid": true}', '{"pid": -1}', '{"pid": 99999999999999999999}']
)
def test_a_lock_that_names_no_live_process_is_replaced(stopped, content):
    (stopped.data / "agent-tools" / "server.lock").write_text(content)
    stopped.start()
    assert stopped.value("session_info")["instanceId"] == stopped.endpoint()["instanceId"]


def test_a_reused_pid_is_found_out_by_asking_the_endpoint(stopped):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    write_lock(stopped, os.getpid(), "crashed")
    endpoint = stopped.data / "agent-tools" / "endpoint.json"
    endpoint.write_text(json.dumps({"url": f"http://127.0.0.1:{port}/call", "instanceId": "crashed"}))
    stopped.start()
    assert stopped.pid() != os.getpid()


def test_a_foreign_server_that_still_listens_keeps_its_directory(stopped):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        write_lock(stopped, os.getpid(), "app")
        endpoint = stopped.data / "agent-tools" / "endpoint.json"
        content = json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}/call", "instanceId": "app"})
        endpoint.write_text(content)
        done = stopped.run("host", "start", "--data", str(stopped.data))
        assert done.returncode == 1
        assert endpoint.read_text() == content


def test_the_endpoint_of_another_server_is_left_alone_at_the_end(host):
    endpoint = host.data / "agent-tools" / "endpoint.json"
    content = json.dumps({"url": "http://127.0.0.1:1/call", "instanceId": "other"})
    endpoint.write_text(content)
    host.stop()
    assert endpoint.read_text() == content
    endpoint.unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_host_in_the_foreground_ends_cleanly_on_a_signal(stopped, number):
    argv = [stopped.ctl, "host", "run", "--data", str(stopped.data), "--project", str(stopped.project)]
    with subprocess.Popen(argv, env=stopped.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().decode() == f"export TERMSPRAWL_SESSION_FILE={stopped.session_file}\n"
        assert stopped.value("session_info")
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert not (stopped.data / "agent-tools" / "endpoint.json").exists()


def test_a_call_that_runs_when_the_signal_comes_gets_its_answer(host):
    pid = host.pid()
    results: list[dict] = []
    calls = threading.Thread(target=lambda: results.append(host.call("terminal_open")))
    calls.start()
    until(lambda: b"ts-n-" in host.tmux("list-sessions").stdout)
    os.kill(pid, signal.SIGTERM)
    calls.join()
    assert results[0]["ok"], results
    until(lambda: not is_alive(pid))


def test_a_deleted_data_directory_ends_the_host_and_its_unreachable_terminals(host):
    host.value("terminal_open")
    pid = host.pid()
    tmux_pid = int(host.tmux("display-message", "-p", "#{pid}").stdout)
    subprocess.run(["rm", "-rf", str(host.data)], check=True)
    until(lambda: not is_alive(pid))
    until(lambda: not is_alive(tmux_pid))


def test_status_tells_what_runs_as_text_and_as_json(host):
    node = host.value("terminal_open")["nodeId"]
    text = host.run("host", "status", "--data", str(host.data))
    assert text.returncode == 0
    assert f"running, pid {host.pid()}" in text.stdout.decode()
    assert f"terminal  {node}  running" in text.stdout.decode()
    state = json.loads(host.run("host", "status", "--data", str(host.data), "--json").stdout)
    assert state["projects"][0]["terminals"] == [{"nodeId": node, "running": True}]
    assert host.token() not in text.stdout.decode() + json.dumps(state)
    host.stop("--kill-sessions")
    after = host.run("host", "status", "--data", str(host.data))
    assert after.returncode == 1
    assert "not running" in after.stdout.decode()
    assert f"terminal  {node}  ended" in after.stdout.decode()


def test_stop_without_a_host_says_so_and_succeeds(stopped):
    done = stopped.stop()
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"termsprawlctl: no host runs on {stopped.data}.\n"


def test_a_socket_path_too_long_moves_the_socket_and_says_so_once(ctl, tmp_path, hermetic_env):
    root = tmp_path / ("d" * 100)
    root.mkdir()
    running = RunningHost(ctl, root, {**hermetic_env, "HOME": str(root), "TMPDIR": str(tmp_path)})
    try:
        running.start()
        node = running.value("terminal_open")["nodeId"]
        short = (running.data / "tmux-sockets" / "termsprawl.path").read_text().rstrip("\n")
        assert stat.S_ISSOCK(os.stat(short).st_mode)
        assert stat.S_IMODE(os.stat(os.path.dirname(short)).st_mode) == 0o700
        running.stop()
        running.start()
        assert running.value("terminal_read", nodeId=node)["nodeId"] == node
        assert (running.data / "host.log").read_text().count("too long a path for a socket") == 1
    finally:
        running.stop("--kill-sessions")


def test_a_socket_path_too_long_has_its_place_also_where_the_temporary_directory_is_as_long(
    ctl, tmp_path, hermetic_env
):
    root = tmp_path / ("d" * 100)
    root.mkdir()
    running = RunningHost(ctl, root, {**hermetic_env, "HOME": str(root), "TMPDIR": str(root)})
    try:
        running.start()
        assert running.value("terminal_open")["nodeId"]
        assert sorted(path.name for path in root.glob("termsprawlctl-*")) == []
    finally:
        running.stop("--kill-sessions")


def test_without_tmux_start_says_what_to_install(ctl, tmp_path, hermetic_env):
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    for name in ("python3", "sh"):
        target = (
            subprocess.run(["which", name], env=hermetic_env, capture_output=True, check=True).stdout.decode().strip()
        )
        (bin_directory / name).symlink_to(target)
    env = {"PATH": str(bin_directory)}
    done = subprocess.run([ctl, "host", "start", "--data", tmp_path / "d"], env=env, capture_output=True, check=False)
    assert done.returncode == 1
    # On a slow machine a line of progress comes first.
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("termsprawlctl: tmux is not installed. Install tmux 3.2 or newer")
    (bin_directory / "tmux").write_text("#!/bin/sh\necho tmux 3.1c\n")
    (bin_directory / "tmux").chmod(0o755)
    done = subprocess.run([ctl, "host", "start", "--data", tmp_path / "d"], env=env, capture_output=True, check=False)
    assert done.returncode == 1
    assert "is too old (tmux 3.1c). Install tmux 3.2 or newer" in done.stderr.decode()


@pytest.mark.parametrize("kind", ["file", "missing parent is a file", "unwritable"])
def test_a_data_directory_that_cannot_be_used_is_named(ctl, tmp_path, hermetic_env, kind):
    data = tmp_path / "data"
    if kind == "unwritable":
        data = Path("/proc/data")
    else:
        data.write_text("")
        data = data if kind == "file" else data / "below"
    done = subprocess.run([ctl, "host", "start", "--data", data], env=hermetic_env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"termsprawlctl: cannot use the data directory {data}: ")
    assert len(done.stderr.splitlines()) == 1


def test_without_home_or_data_the_user_is_told_to_name_one(ctl, hermetic_env):
    done = subprocess.run([ctl, "host", "status"], env=hermetic_env, capture_output=True, check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == b"termsprawlctl: HOME is not set, so there is no default data directory. Name one with --data DIR.\n"
    )


def test_a_project_that_is_no_directory_is_named(host):
    done = host.run("host", "start", "--data", str(host.data), "--project", "/no/such")
    assert done.returncode == 1
    assert done.stderr.decode().startswith("termsprawlctl: /no/such is not a directory.")


def test_a_project_folder_that_is_gone_is_named(host, tmp_path):
    folder = tmp_path / "soon-gone"
    folder.mkdir()
    session = host.start(folder)
    folder.rmdir()
    assert f"The project folder {folder} is gone." in host.call("terminal_open", session=session)["error"]


def test_replacing_the_file_under_a_running_host_does_not_hurt_it(ctl, tmp_path, hermetic_env):
    """An upgrade puts another archive in the place of the one that modules are imported from."""
    copy = tmp_path / "termsprawlctl"
    copy.write_bytes(Path(ctl).read_bytes())
    copy.chmod(0o755)
    running = RunningHost(str(copy), tmp_path, {**hermetic_env, "HOME": str(tmp_path), "SHELL": "/bin/bash"})
    try:
        running.start()
        replacement = tmp_path / "new"
        replacement.write_bytes(b"#!/bin/sh\nexit 3\n" + b"x" * 1000)
        os.replace(replacement, copy)
        running.ctl = ctl
        for name in running.value("session_info")["operations"]:
            error = running.call(name).get("error", "")
            assert "Internal error" not in error, (name, error)
        node = running.value("terminal_open")["nodeId"]
        running.value("terminal_submit", nodeId=node, command="echo on-$((1+1))")
        running.wait_for_text(node, "on-2")
        for name, args in (("terminal_read", {}), ("terminal_external", {}), ("terminal_close", {})):
            error = running.call(name, nodeId=node, **args).get("error", "")
            assert "Internal error" not in error, (name, error)
        for agent in ("claude", "codex", "opencode"):
            assert "Internal error" not in running.call("agent_launch", agent=agent).get("error", "")
        assert "internal error" not in (running.data / "host.log").read_text()
    finally:
        running.ctl = ctl
        running.stop("--kill-sessions")
