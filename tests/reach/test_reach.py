"""A host on another machine, over a real ssh server: reaching it, using it as if it were here, leaving it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.ssh_server import is_running, until


def test_a_bare_account_is_reached_and_used_as_if_it_were_here(box):
    session = box.reach()
    assert box.run("doctor", "--session", session).returncode == 0
    done = box.run("run", "--session", session, "--", "pwd; (exit 3)")
    assert (done.stdout.strip(), done.returncode) == (str(box.home), 3)
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    assert node in box.run("map", "--session", session).stdout
    assert box.run("wait", node, "--idle", "0.1", "--session", session).returncode == 0


def test_what_is_kept_is_private_on_both_sides_and_the_file_is_there_once(box):
    session = box.reach()
    assert stat.S_IMODE(os.stat(session).st_mode) == 0o600
    for path in [box.place(), *box.place().rglob("*")]:
        assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path
    (copy,) = box.copies()
    assert copy.read_bytes() == Path(box.ctl).read_bytes()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    before = copy.stat()
    assert box.reach() == session
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_two_projects_there_are_two_sessions_over_one_connection(box):
    (box.home / "a b'c").mkdir()
    first, second = box.reach(), box.reach("--project", "a b'c")
    assert first != second
    done = box.run("run", "--session", second, "--", "pwd")
    assert done.stdout.strip() == str(box.home / "a b'c")
    (row,) = json.loads(box.run("reach", "list", "--json").stdout)
    assert (row["destination"], row["connected"], row["keeper"]) == ("box", True, True)
    assert {one["sessionFile"] for one in row["sessions"]} == {first, second}


def test_it_stops_without_a_trace(box):
    session = box.reach()
    box.call(session, "terminal_open")
    keeper, master = box.keeper(), box.record()["ssh"]
    host = json.loads(box.there("host", "status", "--json").stdout)["pid"]
    done = box.run("reach", "stop", "box", "--all")
    assert done.returncode == 0, done.stderr
    assert [pid for pid in (keeper, master, host) if is_running(pid)] == []
    assert list((box.here / ".local/state/termsprawlctl/reach").iterdir()) == []
    assert not (box.home / ".cache/termsprawlctl").exists()


def test_a_stop_leaves_the_host_there_running(box):
    box.reach()
    assert box.run("reach", "stop", "box").returncode == 0
    assert json.loads(box.there("host", "status", "--json").stdout)["running"]
    assert box.run("reach", "stop", "box").returncode == 0


def test_no_token_is_in_any_command_line_or_environment(box):
    session = box.reach()
    token = json.loads(Path(session).read_text())["token"].encode()
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                assert token not in (process / name).read_bytes(), process
            except OSError:
                continue


def test_two_at_once_share_one_connection(box):
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: box.reach(), range(2))
    assert first == second
    assert box.works(first)
    assert is_running(box.keeper())


def test_what_is_reached_already_takes_two_runs_of_ssh(box):
    """Whether it is up, and one script over there for all the rest."""
    session = box.reach()
    ssh, log = box.root / "bin" / "ssh", box.root / "runs"
    ssh.write_text(ssh.read_text().replace("exec ", f'echo "$*" >> {log}\nexec ', 1))
    assert box.reach() == session
    first, second = log.read_text().splitlines()
    assert "-O check" in first
    assert second.endswith("sh -s")


# What is over there may be anything


NOISE = 'echo "motd: welcome"; echo "rc warns" >&2; false\n'


@pytest.mark.parametrize("shell", ["fish", "csh", "tcsh", "zsh", "dash"])
def test_the_login_shell_may_be_any_and_talk(shell, stopped_box):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} is installed")
    stopped_box.start(ForceCommand=f"{NOISE.strip()}; {stopped_box.shell(program)}")
    assert stopped_box.works(stopped_box.reach())


@pytest.mark.parametrize(
    ("destination", "why"),
    [
        ("-oProxyCommand=touch x", "is an option"),
        ("box;touch x", "characters"),
        ("$(touch x)", "characters"),
        ("box touch", "characters"),
        ("`touch x`@box", "characters"),
        ("a'b@box", "characters"),
        ("box\n", "characters"),
        ("", "characters"),
    ],
)
def test_a_destination_that_could_be_more_than_a_name_is_refused(destination, why, box):
    done = (
        box.run("reach", "check", "--", destination) if destination.startswith("-") else box.run("reach", destination)
    )
    assert done.returncode == 2
    assert why in done.stderr or "usage" in done.stderr.lower()
    assert not (box.here / "x").exists()
    assert not (box.here / ".local").exists()


def test_a_copy_that_was_changed_is_replaced_and_never_run(box):
    box.reach()
    box.run("reach", "stop", "box")
    (copy,) = box.copies()
    copy.write_text(f"#!/bin/sh\ntouch {box.home}/ran\n")
    assert box.works(box.reach())
    assert copy.read_bytes() == Path(box.ctl).read_bytes()
    assert not (box.home / "ran").exists()


def test_a_cache_that_others_may_write_to_gets_no_file(box):
    (box.home / ".cache").mkdir()
    (box.home / ".cache").chmod(0o777)
    done = box.run("reach", "box")
    assert done.returncode == 1
    assert "another user can change" in done.stderr
    assert box.copies() == []
    assert not list((box.here / ".local/state/termsprawlctl/reach").iterdir())


def checks(box) -> dict[str, dict]:
    done = box.run("reach", "check", "box", "--json")
    found = {row["name"]: row for row in json.loads(done.stdout)}
    assert (done.returncode == 0) == all(row["status"] != "failed" for row in found.values())
    return found


def test_check_finds_nothing_wrong_and_leaves_nothing(box):
    assert {row["status"] for row in checks(box).values()} == {"ok"}
    assert list((box.here / ".local/state/termsprawlctl/reach").iterdir()) == []
    assert list(box.home.iterdir()) == []


@pytest.mark.parametrize(
    ("client", "server", "step", "words"),
    [
        ({"UserKnownHostsFile": "/dev/null"}, {}, "connect", "key is not known"),
        ({"IdentityFile": "/dev/null"}, {}, "connect", "no key was accepted"),
        ({"Port": "1"}, {}, "connect", "nothing listens"),
        ({"HostName": "no-such-host.invalid"}, {}, "connect", "no such host name"),
        ({}, {"DisableForwarding": "yes"}, "forward", "forwards nothing"),
        ({}, {"AllowStreamLocalForwarding": "no"}, "forward", "forwards nothing"),
        ({}, {"AllowTcpForwarding": "no"}, "forward", "forwards nothing"),
        ({}, {"ForceCommand": "/bin/false"}, "shell", "no answer"),
        ({}, {"ForceCommand": "PATH=/nowhere; exec /bin/sh -s"}, "python", "no Python"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_step_that_fails_has_its_cause_and_its_fix(client, server, step, words, stopped_box):
    stopped_box.host_block(**client)
    stopped_box.start(**server)
    found = checks(stopped_box)
    assert found[step]["status"] == "failed"
    assert words in found[step]["evidence"]
    assert found[step]["fix"]
    done = stopped_box.run("reach", "box")
    assert done.returncode == 1
    assert words in done.stderr


def test_without_ssh_the_answer_names_it(box):
    done = box.run(
        "reach", "box", env={"HOME": str(box.here), "PATH": str(box.root / "none") + ":" + python_folder(box)}
    )
    assert done.returncode == 1
    assert "ssh is not installed" in done.stderr


def python_folder(box) -> str:
    folder = box.root / "only-python"
    folder.mkdir()
    os.symlink(shutil.which("python3", path=box.env["PATH"]), folder / "python3")
    return str(folder)


# A connection that is lost


def test_a_lost_connection_comes_back_with_the_same_session_file(box):
    session = box.reach()
    for _ in range(2):
        master = box.record()["ssh"]
        os.kill(master, signal.SIGKILL)
        until(lambda: box.record().get("ssh") != master)  # noqa: B023 - asked at once
        until(lambda: box.works(session))


def test_a_server_that_restarts_is_reached_again(box):
    session = box.reach()
    box.end_server()
    until(lambda: not box.works(session))
    box.start()
    until(lambda: box.works(session))


def test_a_call_that_is_cut_off_is_not_repeated(box):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    with ThreadPoolExecutor() as pool:
        mark = box.home / "runs"
        cut = pool.submit(box.call, session, "terminal_run", nodeId=node, command=f"echo ran >> {mark}; sleep 5")
        until(mark.exists)
        os.kill(box.record()["ssh"], signal.SIGKILL)
        answer = cut.result()
    assert not answer["ok"]
    assert "not automatically retried" in answer["error"]
    until(lambda: box.works(session))
    assert mark.read_text() == "ran\n"


def test_a_killed_keeper_is_replaced_and_the_connection_stays(box):
    session = box.reach()
    keeper, master = box.keeper(), box.record()["ssh"]
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_running(keeper))
    assert box.works(session)
    assert box.reach() == session
    assert box.record()["ssh"] == master
    assert box.keeper() != keeper


def test_a_killed_host_is_said_and_started_by_the_next_reach(box):
    session = box.reach()
    node = box.call(session, "terminal_open")["value"]["nodeId"]
    os.kill(json.loads(box.there("host", "status", "--json").stdout)["pid"], signal.SIGKILL)
    assert not box.works(session)
    assert box.reach() == session
    assert [row["id"] for row in box.call(session, "canvas_list")["value"]].count(node) == 1


def test_a_stopped_ssh_process_is_not_taken_for_a_lost_one(box):
    session = box.reach()
    master = box.record()["ssh"]
    os.kill(master, signal.SIGSTOP)
    try:
        done = box.run("reach", "box")
        assert done.returncode == 1
        assert "stands still" in done.stderr
    finally:
        os.kill(master, signal.SIGCONT)
    until(lambda: box.works(session))
    assert box.record()["ssh"] == master


def test_stop_ends_a_stopped_ssh_process_too(box):
    box.reach()
    master = box.record()["ssh"]
    os.kill(master, signal.SIGSTOP)
    assert box.run("reach", "stop", "box").returncode == 0
    until(lambda: not is_running(master))
