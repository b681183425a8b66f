"""What `host watch` and `host log` show, and what they never do."""

from __future__ import annotations

import json
import select
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from support.terminal_host import TerminalHost
from support.waiting import until

from termsprawlctl.host.daemon import audit
from termsprawlctl.host.daemon.audit import Audit, Follower, describe, past


class Watcher:
    """A running `host watch`; `lines` is what it has printed so far."""

    def __init__(self, host, *options: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [host.ctl, "host", "watch", "--data", str(host.data), *options],
            env=host.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        # It shows what happens after it has begun: ask until it shows that we asked.
        until(lambda: host.call("session_info") and self.lines, "the first event")

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def events(self, kind: str) -> list[dict]:
        return [event for event in map(json.loads, list(self.lines)) if event["event"] == kind]

    def ended(self) -> tuple[int, bytes]:
        """(exit status, standard error), once it has ended by itself."""
        status = self.process.wait(30)
        self._reader.join(10)
        return status, self.process.stderr.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def host(host):
    fast = TerminalHost(host.ctl, host.data.parent, host.env)
    fast.session_file = host.session_file
    return fast


@pytest.fixture
def watch(host):
    watchers: list[Watcher] = []

    def start(*options: str) -> Watcher:
        watchers.append(Watcher(host, *options))
        return watchers[-1]

    yield start
    for watcher in watchers:
        watcher.close()


def test_it_streams_nodes_calls_output_and_ends_and_ends_with_the_host(host, watch):
    watcher = watch("--json")
    terminal = host.open()
    terminal.run("echo hello")
    host.call("terminal_read", nodeId="no-such")
    ended = host.open()
    ended.run("exit 0")
    terminal.value("terminal_close")
    until(lambda: len(watcher.events("exit")) == 2, "both ends")
    assert host.stop().returncode == 0
    assert watcher.ended() == (0, b"")
    person = json.loads(Path(host.session_file).read_text())["nodeId"]
    opened = [(event["node"], event["caller"]) for event in watcher.events("node-opened")]
    assert opened == [(terminal.node_id, person), (ended.node_id, person)]
    assert [event["node"] for event in watcher.events("node-closed")] == [terminal.node_id]
    assert {event["node"] for event in watcher.events("exit")} == {terminal.node_id, ended.node_id}
    assert sum(event["bytes"] for event in watcher.events("output") if event["node"] == terminal.node_id) > 5
    calls = [event for event in watcher.events("call") if event["operation"] != "session_info"]
    assert [(call["operation"], call["ok"]) for call in calls] == [
        ("terminal_open", True),
        ("terminal_run", True),
        ("terminal_read", False),
        ("terminal_open", True),
        ("terminal_run", True),
        ("terminal_close", True),
    ]
    assert all(call["ms"] >= 0 and call["caller"] == person and call["project"] for call in calls)
    assert "node" not in calls[2]  # not ours: a client may send anything as an id
    assert watcher.events("host-stopped")


def test_ctrl_c_ends_it_with_130_and_without_a_word(host, watch):
    watcher = watch()
    assert "session_info by cli-" in watcher.lines[0]
    watcher.process.send_signal(signal.SIGINT)
    assert watcher.ended() == (130, b"")


def test_it_ends_when_nobody_reads_any_more(host):
    argv = [host.ctl, "host", "watch", "--data", str(host.data)]
    with subprocess.Popen(argv, env=host.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as watching:
        until(lambda: host.call("session_info") and select.select([watching.stdout], [], [], 0)[0], "a line")
        # The other end of its standard output is closed, as `| head -1` does.
        watching.stdout.close()
        assert watching.wait(30) == 0


def test_without_a_host_there_is_nothing_to_watch_but_a_log_to_read(host):
    host.value("session_info")
    host.stop()
    done = host.run("host", "watch", "--data", str(host.data))
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"no host runs on {host.data}" in done.stderr.decode()
    log = host.run("host", "log", "--data", str(host.data)).stdout.decode().splitlines()
    assert "host started, pid" in log[0]
    assert log[-1].endswith("host stopped")
    last = host.run("host", "log", "--data", str(host.data), "--json", "--lines", "1").stdout
    assert json.loads(last)["event"] == "host-stopped"
    assert host.run("host", "log", "--data", str(host.data), "--lines", "-1").returncode == 2
    empty = host.run("host", "log", "--data", str(host.data / "other"))
    assert (empty.returncode, empty.stdout) == (0, b"")
    assert b"nothing has been logged" in empty.stderr


def test_people_at_their_windows_are_told(host, watch):
    from support.node_server import PtyProgram

    watcher = watch("--json")
    terminal = host.open()
    window = PtyProgram(host.attach_argv(f"=ts-{terminal.node_id}"), host.env)

    def saw(what: str) -> bool:
        if what == "typed":
            window.type(b"x\x7f")
        return any(event["what"] == what and event["node"] == terminal.node_id for event in watcher.events("person"))

    try:
        until(lambda: saw("attached"), "attached")
        until(lambda: saw("typed"), "typed")
    finally:
        window.stop()
    until(lambda: saw("detached"), "detached")


def test_no_payload_and_no_token_is_ever_logged(host):
    token, secret = host.token(), "s3cret-payload"
    terminal = host.open()
    terminal.run(f"echo {secret}")
    terminal.value("terminal_submit", command=f"echo {secret}")
    for request in (
        {"operation": secret, "args": {}},
        {"operation": "terminal_read", "args": {"nodeId": secret}},
        {"operation": "terminal_read", "args": {"nodeId": token}},
        {"operation": token, "args": {secret: token}},
        {"operation": "terminal_run", "args": {"nodeId": terminal.node_id, "command": 7, token: secret}},
        {"operation": ["x"], "args": [secret]},
    ):
        host.call(request["operation"], **(request["args"] if isinstance(request["args"], dict) else {}))
    terminal.value("terminal_close")
    until(lambda: any(event["event"] == "exit" for event in past(str(host.data / "audit"))), "the end")
    for path in (host.data / "audit").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        content = path.read_text()
        assert secret not in content
        assert token not in content
        for line in content.splitlines():
            json.loads(line)


def test_files_are_bounded_and_a_follower_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "MAX_FILE_BYTES", 2_000)
    directory = str(tmp_path / "audit")
    log = Audit(directory)
    log.event("call", operation="before")
    follower = Follower(directory)
    numbers = []
    for number in range(300):
        log.event("call", number=number)
        if number % 37 == 0:
            numbers += [event["number"] for event in follower.read()]
    numbers += [event["number"] for event in follower.read()]
    assert numbers == list(range(300))
    sizes = [path.stat().st_size for path in (tmp_path / "audit").iterdir()]
    assert len(sizes) == audit.KEPT_FILES
    assert max(sizes) <= 2_000
    assert [event["number"] for event in past(directory)][-1] == 299
    # A new host goes on where the old one stopped; a follower that slept too long is told.
    log.close()
    again = Audit(directory)
    for number in range(300):
        again.event("call", number=number)
    events = follower.read()
    assert events[0]["event"] == "missed"
    assert [event["number"] for event in events[1:]][-1] == 299


def test_many_writers_at_once_write_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "MAX_FILE_BYTES", 50_000)
    log = Audit(str(tmp_path / "audit"))
    threads = [
        threading.Thread(target=lambda n=n: [log.event("call", number=n * 100 + i) for i in range(100)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(event["number"] for event in past(str(tmp_path / "audit"))) == list(range(800))


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path):
    (tmp_path / "audit").write_text("in the way")
    Audit(str(tmp_path / "audit")).event("call")
    assert past(str(tmp_path / "audit")) == []


def test_every_event_reads_as_a_line():
    stamp = {"time": "2026-01-02T03:04:05.678Z"}
    assert describe(
        {**stamp, "event": "call", "operation": "terminal_run", "node": "n-1", "caller": "cli-1", "ok": True, "ms": 7}
    ).endswith("  terminal_run n-1 by cli-1: ok, 7 ms")
    assert describe({**stamp, "event": "call", "caller": "c", "ok": False, "ms": 0}).endswith(
        "  an unknown operation by c: refused, 0 ms"
    )
    assert describe({**stamp, "event": "person", "node": "n-1", "what": "typed"}).endswith("  n-1: a person typed")
    assert describe({"event": "something-new"}).endswith("  something-new")
    assert describe({}).endswith("  ?")
