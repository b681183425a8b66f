"""The embedded host and its commands where the system is short of something, or stands still, or goes away."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.faults import fill, need_nobody, small_disk
from support.host_faults import FaultyHost
from support.waiting import until

from termsprawlctl.app import transport
from termsprawlctl.base import threads
from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.base.tmux import Tmux
from termsprawlctl.host.daemon import control, lock
from termsprawlctl.host.daemon.audit import Audit, past
from termsprawlctl.host.http.server import (
    MAX_CONNECTIONS,
    MIN_CONNECTIONS,
    REQUEST_DEADLINE_S,
    SHORTAGE_PAUSE_S,
    Server,
    connections_within,
)
from termsprawlctl.host.terminals import panes
from termsprawlctl.host.terminals.directory import PlainDirectory
from termsprawlctl.host.terminals.streams import Streams

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def desk(ctl, tmp_path_factory, hermetic_env):
    """A place for a host; nothing runs yet."""
    one = FaultyHost(ctl, tmp_path_factory.mktemp("s"), hermetic_env)
    one.marked.env["TERMSPRAWL_DATA"] = str(one.data)
    one.plan()
    yield one
    one.close()


@pytest.fixture
def serving(desk):
    assert desk.run()
    return desk


def limited(argv: list, desk, *, env: dict | None = None, **limits) -> subprocess.CompletedProcess:
    """Run argv to its end with limits of its own, by their names in the module resource: `NOFILE=16`."""

    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    return subprocess.run(
        [str(word) for word in argv],
        env=env or desk.marked.env,
        cwd=desk.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=limit,
    )


def assert_told(done: subprocess.CompletedProcess) -> None:
    said = done.stderr.decode()
    assert done.returncode in (0, 1, 2), said
    assert "Traceback" not in said, said
    assert "internal error" not in said, said
    assert done.returncode == 0 or said or done.stdout


# --- descriptors, memory, processes -------------------------------------------------------

COMMANDS = {
    "start": ["host", "start"],
    "status": ["host", "status"],
    "log": ["host", "log"],
    "doctor": ["doctor", "--session", "/nowhere"],
    "map": ["map", "--session", "/nowhere"],
    "external": ["external", "n-1", "--dry-run"],
    "attach": ["attach", "n-1"],
    "launch": ["launch", "codex"],
    "stop": ["host", "stop", "--kill-sessions"],
}


@pytest.mark.parametrize(
    "words",
    [
        *COMMANDS.values(),
        ["host", "status", "--data", "relative"],
        ["agent", "run", "codex", "p"],
        ["install", "claude", "--session", "relative"],
        ["map", "--svg", "relative", "--session", "/nowhere"],
        ["mcp", "agent", "codex", "--cwd", "relative"],
    ],
    ids=" ".join,
)
def test_who_stands_in_a_deleted_directory_is_told(desk, words):
    script = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); os.execv(sys.argv[1], sys.argv[1:])"
    )
    assert_told(limited([sys.executable, "-ISc", script, desk.ctl, *words], desk))


@pytest.mark.parametrize(
    "limits",
    [{"NOFILE": 14}, {"NOFILE": 18}, {"AS": 28 << 20}, {"FSIZE": 100}],
    ids=["14-descriptors", "18-descriptors", "28-MiB", "100-byte-files"],
)
def test_every_command_tells_a_shortage_in_plain_words_and_the_next_one_works(desk, limits):
    for words in COMMANDS.values():
        assert_told(limited([desk.ctl, *words], desk, **limits))
    assert not desk.temporary()
    desk.assert_next_works()


def test_a_user_who_may_start_no_more_processes_is_told(desk, tmp_path_factory):
    become = need_nobody()
    place = tmp_path_factory.mktemp("n")
    for path in (place, *place.parents[:2], Path(desk.ctl).parent):
        path.chmod(0o755)
    (place / "home").mkdir()
    os.chown(place / "home", 65534, 65534)
    env = {**desk.marked.env, "HOME": str(place / "home"), "TERMSPRAWL_DATA": str(place / "home" / "data")}
    for words in COMMANDS.values():
        # The limit counts what the user runs; the first process of the command is there already.
        argv = [*become, "prlimit", "--nproc=1", desk.ctl, *words, "--project", place] if "launch" in words else []
        assert_told(limited(argv or [*become, "prlimit", "--nproc=1", desk.ctl, *words], desk, env=env))
    assert not list(place.rglob("server.lock"))
    desk.marked.assert_gone()


def test_descriptors_that_a_parent_left_open_are_no_obstacle(desk):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("this machine allows too few descriptors")
    # Some programs start others with a thousand files open, and select() knows no number above 1023.
    script = (
        f"import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, {hard}))\n"
        "for number in range(3, 1200): os.dup2(0, number)\n"
        f"os.execv({desk.ctl!r}, [{desk.ctl!r}, 'host', 'start'])"
    )
    done = limited([sys.executable, "-c", script], desk)
    assert done.returncode == 0, done.stderr.decode()
    desk.assert_next_works()


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(-1, MAX_CONNECTIONS), (1 << 20, MAX_CONNECTIONS), (1024, MAX_CONNECTIONS), (256, 104), (64, MIN_CONNECTIONS)],
)
def test_connections_leave_descriptors_for_everything_else(descriptors, connections):
    assert connections_within(descriptors) == connections


def test_strangers_take_no_descriptor_that_a_host_with_few_of_them_needs(desk):
    done = limited([desk.ctl, "host", "start"], desk, NOFILE=64)
    assert done.returncode == 0, done.stderr.decode()
    desk.session = done.stdout.decode().partition("=")[2].strip()
    port = _port(desk)
    with contextlib.ExitStack() as strangers:
        for _ in range(100):
            strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
        # Sooner than strangers who say nothing are sent away.
        answer = transport.call(desk.session, "terminal_open", {}, deadline_s=REQUEST_DEADLINE_S - 2)
        assert answer["ok"], answer
    desk.assert_next_works()


def _port(desk) -> int:
    url = json.loads((desk.data / "agent-tools" / "endpoint.json").read_text())["url"]
    return int(url.rsplit(":", 1)[1].partition("/")[0])


@contextlib.contextmanager
def reader_of(host: object = None):
    """A server of its own, and a function that connects to it."""
    server = Server(host)
    reader = threading.Thread(target=server.serve_forever)
    reader.start()
    port = int(server.url.rsplit(":", 1)[1].partition("/")[0])
    with contextlib.ExitStack() as opened:
        try:
            yield server, lambda: opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        finally:
            server.stop()
            reader.join()


def test_a_server_without_descriptors_gives_a_strangers_to_whoever_waits_and_pauses_meanwhile(monkeypatch):
    accept, asked = socket.socket.accept, []

    def no_descriptor(_self):
        asked.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    with reader_of() as (server, connect):
        stranger = connect()
        until(lambda: server.open_connections == 1, "the stranger was not let in")
        with monkeypatch.context() as patched:
            patched.setattr(socket.socket, "accept", no_descriptor)
            waiting = connect()
            assert stranger.recv(1) == b""  # it was ended
            until(lambda: len(asked) > 1, "it did not try again")
            assert asked[1] - asked[0] >= SHORTAGE_PAUSE_S
        assert socket.socket.accept is accept
        waiting.sendall(b"nonsense\n")
        assert waiting.recv(12) == b"HTTP/1.1 400"


def test_a_call_that_gets_no_thread_is_told_so_and_leaves_no_trace(monkeypatch):
    session = SimpleNamespace(node_id="n-1", project_id="p-1")
    body = b'{"operation": "terminal_open", "args": {}}'
    call = b"POST /call HTTP/1.1\r\nauthorization: Bearer x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with reader_of(SimpleNamespace(sessions=SimpleNamespace(find=lambda _token: session))) as (server, connect):

        def no_thread(_run) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threads, "start", no_thread)
        client = connect()
        client.sendall(call)
        assert client.recv(12) == b"HTTP/1.1 503"
        while client.recv(65536):
            pass
        assert server.drain(0)
        until(lambda: server.open_connections == 0, "the connection kept its place")


class QuietPanes:
    """The panes of a tmux server that takes every command and reports nothing."""

    def look(self, node_id: str) -> panes.Pane:
        """A shell's pane as it is right after its start."""
        return panes.Pane(
            id=f"%{node_id[-1]}",
            pid=1,
            tty="/dev/pts/1",
            column=0,
            line=0,
            columns=80,
            rows=24,
            alternate=False,
            dead=False,
            dead_status=None,
            in_mode=False,
        )

    def run(self, _node_id: str, *_words: str, **_options: object) -> str:
        return ""


def test_output_is_followed_as_soon_as_a_thread_is_to_be_had(tmp_path, monkeypatch):
    streams = Streams(PlainDirectory(str(tmp_path)), QuietPanes())
    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(threads, "start", lambda _run: (_ for _ in ()).throw(RuntimeError("no thread")))
        with pytest.raises(Exception, match="cannot be followed: no thread"):
            streams.get("n-1")
    assert set(os.listdir("/proc/self/fd")) == before
    assert os.listdir(tmp_path) == []
    stream = streams.get("n-1")
    with open(stream.fifo, "wb") as fifo:
        fifo.write(b"hello")
    until(lambda: stream.end == 5, "nothing was read")


def test_a_fault_in_one_terminals_output_ends_its_stream_and_no_other(tmp_path):
    def fails(_data: bytes) -> None:
        raise MemoryError

    ended: list[str] = []
    streams = Streams(PlainDirectory(str(tmp_path)), QuietPanes(), on_end=ended.append)
    one, other = streams.get("n-1"), streams.get("n-2")
    one.listen(fails)
    for stream in (one, other):
        with open(stream.fifo, "wb") as fifo:
            fifo.write(b"hello")
    until(lambda: one.ended and other.end == 5, "the others are not read")
    until(lambda: "n-1" in ended, "nobody is told")
    again = streams.get("n-1")
    assert again is not one
    with open(again.fifo, "wb") as fifo:
        fifo.write(b"hello")
    until(lambda: again.end == 5, "it is not followed again")


# --- disks --------------------------------------------------------------------------------


def test_a_full_disk_stops_nothing_that_runs_and_everything_works_once_there_is_room(desk):
    with small_disk(desk.data, 4 << 20):
        assert desk.run()
        kept = desk.call("terminal_open")["value"]["nodeId"]
        filled = fill(desk.data)
        refused = desk.call("terminal_open")
        assert not refused["ok"]
        assert "No space left on device" in refused["error"]
        assert desk.call("terminal_submit", nodeId=kept, command="echo 6 times 7 is $((6 * 7))")["ok"]
        until(
            lambda: "is 42" in desk.call("terminal_read", nodeId=kept)["value"]["output"],
            "the terminal does not go on",
        )
        assert desk.end() == 0
        started = desk.ctl_run("host", "start")
        assert started.returncode == 1
        assert b"No space left on device" in started.stderr
        filled.unlink()
        assert not desk.temporary()
        assert desk.run()
        assert desk.sessions() == {kept}
        assert desk.call("terminal_open")["ok"]
        assert desk.end() == 0
        desk.assert_next_works()


def test_an_event_after_one_that_was_cut_short_is_whole(tmp_path, monkeypatch):
    audit = Audit(str(tmp_path))
    audit.event("one")
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
        audit.event("cut")
    audit.event("two")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
        audit.event("cut as well")
    audit.close()
    Audit(str(tmp_path)).event("three")  # another host's
    assert [event["event"] for event in past(str(tmp_path))] == ["one", "two", "three"]


@pytest.mark.parametrize("place", ["data", "project", "home"])
def test_a_place_that_may_not_be_written_to_is_named(desk, tmp_path_factory, place):
    become = need_nobody()
    root = tmp_path_factory.mktemp("o")
    folders = {name: root / name for name in ("data", "project", "home")}
    for path in (root, *root.parents[:2], Path(desk.ctl).parent):
        path.chmod(0o755)
    for path in folders.values():
        path.mkdir(mode=0o755)
        os.chown(path, 65534, 65534)
    closed = folders[place]
    closed.chmod(0o555)
    env = {**desk.marked.env, "HOME": str(folders["home"]), "TERMSPRAWL_DATA": str(folders["data"])}
    if place == "home":
        del env["TERMSPRAWL_DATA"]

    def ctl(*words: str) -> subprocess.CompletedProcess:
        return limited([*become, desk.ctl, *words], desk, env=env)

    done = ctl("host", "start", "--project", str(folders["project"]))
    if place == "project":  # only what is drawn on its canvas is written there
        assert done.returncode == 0, done.stderr
        session = done.stdout.decode().partition("=")[2].strip()
        answer = ctl("call", "terminal_open", "--session", session, "--field", "error")
        assert f"Cannot write {closed}" in answer.stderr.decode() + answer.stdout.decode()
        assert ctl("host", "stop", "--kill-sessions").returncode == 0
        assert os.listdir(folders["data"] / "agent-tools" / "launch") == []
    else:
        assert done.returncode == 1
        assert b"Permission denied" in done.stderr
        assert str(closed).encode() in done.stderr
    assert os.listdir(closed) == []
    desk.marked.assert_gone()


# --- pipes --------------------------------------------------------------------------------


@pytest.fixture
def full_pipe():
    """The writing end of a pipe that is full and that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_host_serves_and_ends_although_nobody_reads_what_it_says(desk, full_pipe, number):
    argv = [desk.ctl, "host", "run"]
    child = subprocess.Popen(
        argv, env=desk.marked.env, cwd=desk.project, stdin=subprocess.DEVNULL, stdout=full_pipe, stderr=full_pipe
    )
    try:
        sessions = desk.data / "agent-tools" / "sessions"
        (desk.session,) = until(lambda: [str(path) for path in sessions.glob("cli-*.json")], "it is not ready")
        until(lambda: desk.call("session_info")["ok"], "it does not answer")
        child.send_signal(number)
        assert child.wait(timeout=30) == 0
    finally:
        child.kill()
        child.wait()
    desk.assert_next_works()


@pytest.mark.parametrize("words", [["host", "watch"], ["map", "--watch"]], ids=" ".join)
@pytest.mark.parametrize("number", SIGNALS[:2])
def test_what_watches_ends_at_a_signal_although_nobody_reads_it(serving, full_pipe, words, number):
    if "map" in words:
        words = [*words, "--session", serving.session]
    child = subprocess.Popen(
        [serving.ctl, *words],
        env=serving.marked.env,
        cwd=serving.project,
        stdin=subprocess.DEVNULL,
        stdout=full_pipe,
        stderr=full_pipe,
    )
    try:
        # It has begun to work when it sleeps or waits for room.
        until(lambda: b"termsprawlctl" in Path(f"/proc/{child.pid}/cmdline").read_bytes(), "it has not begun")
        serving.call("terminal_open")
        child.send_signal(number)
        child.wait(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert serving.end() == 0


WIRINGS = [">&-", "2>&-", "<&- >&- 2>&-", "| true", "> /dev/full"]


@pytest.mark.parametrize("wiring", WIRINGS)
def test_commands_do_their_work_whatever_their_descriptors_lead_to(desk, wiring):
    def shell(words: str, statuses: tuple[int, ...]) -> None:
        argv = ["bash", "-c", f"set -o pipefail; {desk.ctl} {words} {wiring}"]
        done = subprocess.run(argv, env=desk.marked.env, cwd=desk.project, capture_output=True, timeout=60, check=False)
        assert done.returncode in statuses, (words, done.stderr)
        assert b"Traceback" not in done.stderr

    told = (1,) if wiring == "> /dev/full" else (0,)
    shell("host start", told)
    assert (desk.data / "agent-tools" / "endpoint.json").exists()
    shell("host status", told)
    shell("host log", told)
    shell("host stop", (0,))
    assert not (desk.data / "agent-tools" / "endpoint.json").exists()
    desk.assert_next_works()


# --- standing still, and dying around it --------------------------------------------------


def test_a_host_that_stood_still_answers_as_if_nothing_had_been(serving):
    os.kill(serving.process.pid, signal.SIGSTOP)
    answers: list[dict] = []
    asking = threading.Thread(target=lambda: answers.append(serving.call("terminal_open")))
    asking.start()
    assert serving.ctl_run("host", "status").returncode == 0
    os.kill(serving.process.pid, signal.SIGCONT)
    asking.join(60)
    assert answers[0]["ok"]
    assert serving.end() == 0
    serving.assert_next_works()


def test_a_host_stops_in_time_although_tmux_stands_still(serving):
    for _ in range(3):
        assert serving.call("terminal_open")["ok"]
    until(lambda: len(list((serving.data / "run").glob("*.out"))) == 3, "their output is not followed")
    pid = int(serving.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        stopped = serving.ctl_run("host", "stop")
        assert stopped.returncode == 0, stopped.stderr
        # It is on its way out: another signal would meet a Python that listens to none any more.
        assert serving.process.wait(timeout=60) == 0
        serving.end()
        with pytest.raises(CtlError, match="kill -CONT"):
            Tmux(shutil.which("tmux"), "-S", str(serving.data / "tmux-sockets" / "termsprawl")).run(
                "list-sessions", timeout_s=0.5
            )
    finally:
        os.kill(pid, signal.SIGCONT)
    assert serving.run()
    assert len(serving.sessions()) == 3
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_start_that_is_ended_leaves_a_host_that_works_or_none(desk, number):
    for delay_s in (0.05, 0.1, 0.2):  # where it is cut off differs; each place has to do
        child = subprocess.Popen(
            [desk.ctl, "host", "start"],
            env=desk.marked.env,
            cwd=desk.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay_s)
        child.send_signal(number)
        child.wait(timeout=30)
    desk.assert_next_works()


def test_a_host_ends_when_whoever_started_it_is_gone_before_it_is_ready(desk):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        child = subprocess.Popen(
            [desk.ctl, "host", "run", "--data", desk.data, "--ready-fd", str(writer)],
            env=desk.marked.env,
            cwd=desk.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
        )
    finally:
        os.close(writer)
    assert child.wait(timeout=30) == 0
    desk.assert_next_works()


def test_stop_ends_also_a_host_that_took_over_meanwhile(tmp_path, monkeypatch):
    running, asked = [11, 22], []

    def ask(pid: int) -> None:
        asked.append(pid)
        running.remove(pid)

    monkeypatch.setattr(control, "is_held", lambda _paths: bool(running))
    monkeypatch.setattr(control, "holder", lambda _paths: {"pid": running[0], "instanceId": "x"})
    monkeypatch.setattr(control, "_is_host", lambda _pid: True)
    monkeypatch.setattr(control, "_ask_to_end", ask)
    assert control.stop(DataPaths(str(tmp_path)), kill_sessions=False)
    assert asked == [11, 22]


@pytest.mark.parametrize("name", ["endpoint.json", "server.lock"])
def test_a_host_whose_file_was_replaced_ends_and_leaves_the_new_one_alone(serving, name):
    path = serving.data / "agent-tools" / name
    with serving_call(serving):
        path.write_text('{"url": "http://127.0.0.1:1/call", "pid": 1, "instanceId": "another"}')
        assert serving.process.wait(timeout=30) == 1
    assert "another" in path.read_text()
    serving.end()
    path.unlink()
    serving.assert_next_works()


@contextlib.contextmanager
def serving_call(host):
    """A call that runs meanwhile and has to get an answer."""
    node = host.call("terminal_open")["value"]["nodeId"]
    answers: list[dict] = []
    words = {"nodeId": node, "command": "sleep 60", "timeoutMs": 60_000}
    asking = threading.Thread(target=lambda: answers.append(host.call("terminal_run", **words)))
    asking.start()
    yield
    asking.join(60)
    assert answers
    assert "Internal error" not in answers[0].get("error", "")


def test_a_socket_that_lies_elsewhere_goes_with_the_deleted_directory(desk):
    desk.data = desk.root / ("long" * 30)
    desk.plan()
    assert desk.run()
    assert desk.call("terminal_open")["ok"]
    (place,) = desk.root.glob("termsprawlctl-*")
    shutil.rmtree(desk.data)
    assert desk.process.wait(timeout=30) == 1
    desk.end()
    desk.marked.assert_gone()
    assert not place.exists()


def test_a_directory_for_scripts_elsewhere_is_taken_over_from_a_host_that_was_killed(desk):
    desk.data = desk.root / "with a blank"
    desk.plan()
    places = set()
    for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
        assert desk.run()
        node = desk.call("terminal_open")["value"]["nodeId"]
        assert desk.call("terminal_run", nodeId=node, command="true")["ok"]
        places |= set(desk.root.glob("termsprawlctl-*"))
        desk.end(number)
    assert len(places) == 1
    assert not any(place.exists() for place in places)
    desk.assert_next_works()


# --- the clock ----------------------------------------------------------------------------


@pytest.mark.parametrize("off_s", [-3600, 10 * 365 * 86_400])
def test_a_clock_that_jumps_changes_nothing(serving, off_s):
    first = serving.call("terminal_open")["value"]["nodeId"]
    person = Path(serving.session).stem
    assert serving.ctl_run("host", "link", person, first).returncode == 0
    task = serving.call("agent_send", nodeId=first, messageId="m-1", text="work")["value"]["id"]
    serving.set_clock(off_s)
    assert serving.call("agent_task", taskId=task)["value"]["state"] == "submitted"
    answer = transport.call(
        str(Path(serving.session).with_name(f"{first}.json")), "agent_reply", {"taskId": task, "text": "done"}
    )
    assert answer["ok"], answer
    assert serving.call("agent_task", taskId=task)["value"]["response"] == "done"
    second = serving.call("terminal_open")["value"]["nodeId"]
    for node in (first, second):
        ran = serving.call("terminal_run", nodeId=node, command="echo here", timeoutMs=20_000)
        assert ran["value"]["output"] == "here", ran
        waited = serving.call("terminal_wait", nodeId=node, idleMs=100, timeoutMs=20_000)
        assert waited["value"]["reason"] == "idle", waited
    assert {one["nodeId"] for one in serving.call("agent_status")["value"]} == {first, second}
    assert serving.ctl_run("host", "log").returncode == 0
    assert serving.end() == 0
    serving.assert_next_works()


@pytest.mark.parametrize(("ago_s", "is_typing"), [(0, True), (1, True), (60, False), (-60, False), (-86_400, False)])
def test_a_key_that_was_pressed_in_the_future_keeps_nobody_waiting(monkeypatch, ago_s, is_typing):
    one = panes.Panes(server=None)
    monkeypatch.setattr(one, "clients", lambda: {"/dev/pts/1": panes.Client("n-1", int(time.time()) - ago_s)})
    with pytest.raises(panes.TypedByPerson) if is_typing else contextlib.nullcontext():
        one.refuse_if_person_types("n-1")


@pytest.mark.parametrize("age_s", [3600, -3600])
def test_a_lock_without_an_endpoint_is_old_whichever_way_the_clock_was_set(tmp_path, age_s):
    paths = DataPaths(str(tmp_path))
    os.makedirs(paths.agent_tools)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        Path(paths.server_lock).write_text(f'{{"pid": {stranger.pid}, "instanceId": "x"}}')
        os.utime(paths.server_lock, (time.time() - age_s,) * 2)
        lock.refuse_foreign_server(paths)
        os.utime(paths.server_lock)
        with pytest.raises(lock.Occupied):
            lock.refuse_foreign_server(paths)
    finally:
        stranger.kill()
        stranger.wait()
