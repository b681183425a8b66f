"""What goes wrong over there, or on the way: each is said as it is, and what can go on does."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from support.faults import fill, small_disk
from support.ssh_server import is_running, until

from termsprawlctl.app import transport

_END_OF_ARCHIVE_BYTES = 22  # its last two count the bytes of a comment that follows


def data(box) -> Path:
    """The data directory of the host over there."""
    return box.home / ".local/state/termsprawlctl"


def host_pid(box) -> int:
    return json.loads(box.there("host", "status", "--json").stdout)["pid"]


@pytest.fixture
def other_file(box) -> str:
    """The same program with another checksum."""
    path = box.root / "termsprawlctl"
    shutil.copy(box.ctl, path)
    comment = b"another build"
    with open(path, "r+b") as file:
        file.seek(-2, os.SEEK_END)
        assert file.read() == b"\0\0"
        file.seek(-2, os.SEEK_END)
        file.write(len(comment).to_bytes(2, "little") + comment)
    return str(path)


def test_a_killed_tmux_is_said_and_the_host_goes_on(box):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    host = host_pid(box)
    tmux = int((data(box) / "tmux-sockets/termsprawl.pid").read_text())
    os.kill(tmux, signal.SIGKILL)
    until(lambda: not is_running(tmux))
    answer = box.call(session, "terminal_read", nodeId=node)
    assert not answer["ok"]
    assert node in answer["error"]
    assert box.works(session)
    opened = box.call(session, "terminal_open")
    assert opened["ok"], opened
    assert box.run("run", "--session", session, "--", "exit 3").returncode == 3
    assert host_pid(box) == host


def test_a_full_disk_is_said_leaves_nothing_and_is_no_longer_in_the_way_once_there_is_room(box):
    with small_disk(box.home, 48 << 20):
        try:
            filled = fill(box.home)
            done = box.run("reach", "box")
            assert done.returncode == 1
            assert "No space left" in done.stderr
            assert "df -h" in done.stderr
            assert [path for path in box.home.rglob("*") if path.is_file()] == [filled]
            rows = json.loads(box.run("reach", "check", "box", "--json").stdout)
            (disk,) = [row for row in rows if row["name"] == "disk"]
            assert (disk["status"], bool(disk["fix"])) == ("failed", True)
            filled.unlink()
            assert box.works(box.reach())
        finally:
            box.end()


def test_a_host_of_another_file_goes_on_until_it_is_updated_and_so_do_its_terminals(box, other_file):
    own, box.ctl = box.ctl, other_file
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    older, box.ctl = host_pid(box), own
    assert box.reach() == session
    assert host_pid(box) == older
    rows = {row["name"]: row for row in json.loads(box.run("reach", "check", "box", "--json").stdout)}
    assert rows["host"]["status"] == "warning"
    assert "--update" in rows["host"]["fix"]
    answer = box.call(session, "no_such_operation")
    assert not answer["ok"]
    assert "Unknown operation" in answer["error"]
    assert box.reach("--update") == session
    assert host_pid(box) != older
    assert {row["status"] for row in json.loads(box.run("reach", "check", "box", "--json").stdout)} == {"ok"}
    assert box.call(session, "terminal_read", nodeId=node)["ok"]


def test_a_host_without_a_socket_is_one_to_update(box):
    box.reach()
    Path(box.record()["socket"]).unlink()
    done = box.run("reach", "box")
    assert done.returncode == 1
    assert "an older one" in done.stderr
    assert "--update" in done.stderr
    assert box.works(box.reach("--update"))


def test_a_call_while_ssh_stands_still_is_answered_in_time_and_runs_at_most_once(box):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    mark = box.home / "runs"
    master = box.record()["ssh"]
    os.kill(master, signal.SIGSTOP)
    try:
        result = transport.call(
            session, "terminal_submit", {"nodeId": node, "command": f"echo ran >> {mark}"}, deadline_s=2.0
        )
        assert transport.is_late(result)
        assert "not automatically retried" in result["error"]
        assert not mark.exists()
    finally:
        os.kill(master, signal.SIGCONT)
    until(lambda: box.works(session))
    box.call(session, "terminal_wait", nodeId=node)
    assert not mark.exists() or mark.read_text() == "ran\n"
    assert box.record()["ssh"] == master


def test_an_agent_over_there_outlives_the_connection_its_keeper_the_server_and_the_host(box):
    agent, number = box.root / "agent", box.home / "pid"
    agent.write_text(f"#!/bin/sh\necho $$ > {number}\necho here I am\nexec cat\n")
    agent.chmod(0o755)
    session = box.reach()
    wish = json.dumps({"customAgent": {"executable": str(agent)}})
    (data(box) / "agent-tools/preferences.json").write_text(wish)
    node = box.call(session, "agent_launch", agent="custom")["value"]["nodeId"]
    until(lambda: "here I am" in box.call(session, "terminal_read", nodeId=node)["value"]["output"])
    for pid in (box.keeper(), box.record()["ssh"], host_pid(box)):
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_running(pid))  # noqa: B023 - asked at once
    box.end_server()
    box.start()
    assert box.run("reach", "stop", "box").returncode == 0
    session = box.reach()
    assert is_running(int(number.read_text()))
    (row,) = [row for row in box.call(session, "agent_status")["value"] if row["nodeId"] == node]
    assert row["running"]
    box.call(session, "terminal_input", nodeId=node, text="still there?\r")
    until(lambda: box.call(session, "terminal_read", nodeId=node)["value"]["output"].count("still there?") == 2)
