"""Another user of the machine: reads nothing, is told nothing, and what they planted is not used.

They are uid 65534 by the system's own means, which takes root; the rules of the checks
themselves are in test_security_ownership.py and need nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.other_user import STRANGER, Other, ask, listen, prowl
from support.running_host import RunningHost
from support.session_files import TOKEN, SessionFiles

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user as well")


@pytest.fixture
def open_root():
    """A directory that every user may enter and read, unlike pytest's own."""
    root = Path(tempfile.mkdtemp(prefix="sec-", dir="/tmp"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def open_host(ctl, open_root, hermetic_env):
    env = {**hermetic_env, "HOME": str(open_root), "SHELL": "/bin/bash", "TMPDIR": str(open_root)}
    running = RunningHost(ctl, open_root, env)
    running.start()
    yield running
    running.stop("--kill-sessions")


def test_another_user_can_do_nothing_with_what_a_host_keeps(open_host):
    node = open_host.value("terminal_open")["nodeId"]
    open_host.value("terminal_run", nodeId=node, command="echo secret")
    data = open_host.data
    data.chmod(0o755)  # as somebody does who wants to have a look at the log
    paths = [str(path) for path in data.rglob("*")]
    assert any(path.endswith("/termsprawl") for path in paths)
    assert any(path.endswith(".out") for path in paths)
    assert prowl(paths) == []
    for path in map(Path, paths):
        mode = path.lstat().st_mode
        is_private = not mode & 0o077 or not stat.S_IMODE(path.parent.stat().st_mode) & 0o077
        assert is_private, f"{path} {mode:o}"


def test_another_user_is_told_nothing_by_the_port(open_host):
    with Other(ask(open_host.port(), ["", "authorization: Bearer " + "0" * 64 + "\r\n"])) as other:
        assert other.said() == ["401", "401"]


def test_a_token_is_not_sent_to_another_user_who_took_a_dead_hosts_port(ctl, tmp_path, hermetic_env):
    with Other(listen) as other:
        port = int(other.lines.readline())
        files = SessionFiles(tmp_path, port)
        argv = [ctl, "call", "session_info", "--session", str(files.session)]
        done = subprocess.run(argv, env=hermetic_env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert other.lines.readline() == "b''\n"
    assert done.returncode == 1
    assert "another user listens (uid 65534)" in json.loads(done.stdout)["error"]
    assert TOKEN.encode() not in done.stdout + done.stderr


def test_a_session_file_of_another_user_may_lead_to_their_own_app(ctl, open_root, hermetic_env):
    with Other(listen) as other:
        port = int(other.lines.readline())
        files = SessionFiles(open_root, port)
        os.chown(files.session, STRANGER, STRANGER)
        argv = [ctl, "call", "session_info", "--session", str(files.session)]
        done = subprocess.run(argv, env=hermetic_env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert "Bearer" in other.lines.readline()
    assert json.loads(done.stdout) == {"ok": True}


@pytest.mark.parametrize("words", [("host", "status"), ("host", "stop"), ("host", "links"), ("host", "start")])
def test_a_data_directory_of_another_user_is_not_used(ctl, open_root, hermetic_env, words):
    (open_root / "data").mkdir()
    os.chown(open_root / "data", STRANGER, STRANGER)
    env = {**hermetic_env, "HOME": str(open_root)}
    argv = [ctl, *words, "--data", str(open_root / "data")]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=open_root)
    assert done.returncode == 1
    assert b"belongs to another user" in done.stderr
    assert os.listdir(open_root / "data") == []


def test_a_tmux_server_of_another_user_is_not_talked_to(ctl, open_root, hermetic_env):
    place = open_root / "theirs"
    place.mkdir()
    os.chown(place, STRANGER, STRANGER)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "s"))
        server.listen(1)
        (place / "s").chmod(0o777)
        for owner in (0, STRANGER):  # hard links and renames in a directory of theirs can make it look like ours
            os.chown(place / "s", owner, owner)
            argv = [ctl, "tui", "sessions", "--socket-path", str(place / "s")]
            done = subprocess.run(argv, env=hermetic_env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            assert (done.returncode, b"belongs to another user" in done.stderr) == (2, True)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_short_socket_directory_that_was_cleared_away_is_not_used_when_another_user_made_it_anew(
    ctl, open_root, hermetic_env
):
    deep = open_root / ("d" * 100)
    deep.mkdir()
    running = RunningHost(ctl, deep, {**hermetic_env, "HOME": str(deep), "SHELL": "/bin/sh", "TMPDIR": str(open_root)})
    pointer = running.data / "tmux-sockets" / "termsprawl.path"
    try:
        running.start()
        first = Path(pointer.read_text().strip())
        assert running.stop("--kill-sessions").returncode == 0
        first.parent.mkdir(mode=0o777)
        os.chown(first.parent, STRANGER, STRANGER)
        pointer.write_text(f"{first}\n")
        running.start()
        second = Path(pointer.read_text().strip())
        assert second != first
        assert second.parent.stat().st_uid == 0
        running.value("terminal_open")
        assert os.listdir(first.parent) == []
    finally:
        running.stop("--kill-sessions")


@pytest.mark.parametrize("kind", ["link", "fifo", "link to a link"])
def test_an_output_is_not_written_through_what_another_user_planted(open_root, kind):
    from termsprawlctl.base.files import write_output

    shared = open_root / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (open_root / "precious").write_text("kept")
    target = shared / "shot.png"
    if kind == "fifo":
        os.mkfifo(target, 0o666)
    else:
        target.symlink_to("other" if kind == "link to a link" else open_root / "precious")
        if kind == "link to a link":
            (shared / "other").symlink_to(open_root / "precious")
    planted = shared / "other" if kind == "link to a link" else target
    os.lchown(planted, STRANGER, STRANGER)
    with pytest.raises(OSError, match="another user made it"):
        write_output(str(target), b"picture")
    assert (open_root / "precious").read_text() == "kept"
    os.lchown(planted, 0, 0)
    if kind != "fifo":
        write_output(str(target), b"picture")
        assert (open_root / "precious").read_bytes() == b"picture"


def test_an_output_goes_to_the_terminal_of_whoever_became_this_user_in_it():
    from termsprawlctl.base.files import write_output

    master, terminal = os.openpty()
    try:
        os.fchown(terminal, STRANGER, STRANGER)
        write_output(os.ttyname(terminal), b"picture")
        assert os.read(master, 100) == b"picture"
    finally:
        os.close(master)
        os.close(terminal)


def test_a_shared_tui_cannot_be_reached_by_another_user(open_root):
    from termsprawlctl.share.directory import ShareDirectory

    place = ShareDirectory(str(open_root))
    try:
        paths = [place.directory, place.path, os.path.join(place.directory, "s")]
        assert prowl(paths) == []
    finally:
        place.remove()


def test_full_outputs_go_where_no_other_user_has_been_first(open_root, monkeypatch):
    from termsprawlctl.agents.server import outputs

    (open_root / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(open_root / "file"))  # no directory can be made below it
    monkeypatch.setenv("TMPDIR", str(open_root))
    path = Path(outputs.save(["one"]))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    shutil.rmtree(path.parent)
    path.parent.mkdir(mode=0o777)
    os.chown(path.parent, STRANGER, STRANGER)
    other = Path(outputs.save(["two"]))
    assert other.parent != path.parent
    assert os.listdir(path.parent) == []
    assert prowl([str(other), str(other.parent)]) == []


def test_scripts_go_to_no_directory_that_another_user_made_anew(open_root, monkeypatch):
    from termsprawlctl.host.terminals.directory import PlainDirectory

    monkeypatch.setenv("TMPDIR", str(open_root))
    scripts = PlainDirectory(str(open_root / "a b"))
    first = scripts.path()
    assert scripts.path() == first
    os.rmdir(first)
    os.mkdir(first, 0o777)
    os.chown(first, STRANGER, STRANGER)
    second = scripts.path()
    assert second != first
    assert os.stat(second).st_uid == 0


def test_the_way_to_a_data_directory_must_be_nobody_elses(open_root, monkeypatch):
    from termsprawlctl.base.files import named_directory

    monkeypatch.setenv("HOME", "/root")
    way = open_root / "way"
    way.mkdir()
    assert named_directory(str(way / "data")) == str(way / "data")
    way.chmod(0o777)
    with pytest.raises(OSError, match=r"other users may write to .*/way above it"):
        named_directory(str(way / "data"))
    way.chmod(0o1777)
    named_directory(str(way / "data"))
    os.chown(way, STRANGER, STRANGER)
    with pytest.raises(OSError, match="above it belongs to another user"):
        named_directory(str(way / "data"))
    # Who could replace the home directory has the start-up files of every shell of ours.
    for home in (way, way / "home"):
        monkeypatch.setenv("HOME", str(home))
        named_directory(str(home / "data"))
    # Beside it, too: a place of one's own in a folder of a group, for both.
    named_directory(str(way / "data"))
    (way / "theirs").mkdir()
    os.chown(way / "theirs", STRANGER + 1, STRANGER + 1)
    with pytest.raises(OSError, match="/theirs above it belongs to another user"):
        named_directory(str(way / "theirs" / "data"))


@pytest.mark.parametrize("kind", ["abstract", "ssh"])
def test_no_window_is_opened_on_a_display_of_another_user(kind):
    from termsprawlctl.windows import displays

    number = 4711

    def serve(say) -> None:
        family = socket.AF_INET if kind == "ssh" else socket.AF_UNIX
        with socket.socket(family) as server:
            server.bind(("127.0.0.1", 0) if kind == "ssh" else f"\0/tmp/.X11-unix/X{number}")
            server.listen(5)
            say(str(server.getsockname()[1] - 6000) if kind == "ssh" else str(number))
            while True:
                server.accept()

    with Other(serve) as other:
        shown = int(other.lines.readline())
        found = displays.usable({"DISPLAY": f"{'localhost' if kind == 'ssh' else ''}:{shown}"})
    assert found.kinds == frozenset()
    assert "belongs to another user, uid 65534" in found.problem


@pytest.mark.parametrize(
    ("mode", "group", "is_refused"), [(0o770, 4711, True), (0o1770, 4711, False), (0o770, 0, False)]
)
def test_a_group_of_others_may_not_write_above_a_data_directory(open_root, monkeypatch, mode, group, is_refused):
    from termsprawlctl.base.files import named_directory

    monkeypatch.setenv("HOME", "/root")
    way = open_root / "way"
    way.mkdir()
    os.chown(way, 0, group)
    way.chmod(mode)
    with pytest.raises(OSError, match="other users may write") if is_refused else contextlib.nullcontext():
        named_directory(str(way / "data"))
