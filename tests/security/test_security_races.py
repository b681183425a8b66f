"""Another user who moves while we work: swaps files, links and directories of a shared place for one another.

The attacker is a process of uid 65534 that does nothing else until the test ends it; whoever
looks first and acts later is caught within some hundred rounds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from support.other_user import STRANGER, Other
from support.running_host import RunningHost

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.files import write_output
from termsprawlctl.base.tmux import Tmux, find
from termsprawlctl.install.configfile import ConfigFile

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user as well")
ROUNDS = 400
PRECIOUS = b'{"precious": true}'


@pytest.fixture
def place():
    """A directory that every user may enter, with one in it that everybody may write to, and a file of ours."""
    root = Path(tempfile.mkdtemp(prefix="race-", dir="/tmp"))
    root.chmod(0o755)
    (root / "shared").mkdir()
    (root / "shared").chmod(0o1777)
    (root / "ours").mkdir(mode=0o700)
    (root / "ours" / "out").write_bytes(PRECIOUS)
    yield root
    shutil.rmtree(root, ignore_errors=True)


def swapping(place: Path, kind: str):
    """An action: what lies at shared/out, or what shared/way is, changes without end."""
    shared, target = str(place / "shared"), str(place / "ours" / "out")
    out, spare, way = f"{shared}/out", f"{shared}/spare", f"{shared}/way"

    def put(make) -> None:
        with contextlib.suppress(OSError):
            make()
            os.replace(spare, out)

    def action(say) -> None:
        os.umask(0)
        os.mkdir(f"{shared}/theirs", 0o777)
        say("ready")
        while True:
            if kind == "directory":
                for other in (f"{shared}/theirs", str(place / "ours")):
                    with contextlib.suppress(OSError):
                        os.symlink(other, spare)
                        os.replace(spare, way)
                with contextlib.suppress(OSError):
                    os.unlink(way)
                    os.mkdir(way, 0o777)
                with contextlib.suppress(OSError):
                    os.rename(way, f"{shared}/{os.urandom(4).hex()}")
                continue
            put(lambda: os.close(os.open(spare, os.O_CREAT | os.O_WRONLY, 0o666)))
            put((lambda: os.mkfifo(spare, 0o666)) if kind == "fifo" else (lambda: os.symlink(target, spare)))
            with contextlib.suppress(OSError):
                os.unlink(out)

    return action


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
@pytest.mark.parametrize("sticky", [True, False], ids=["sticky", "not sticky"])
def test_an_output_never_goes_through_what_is_swapped_in_meanwhile(place, kind, sticky):
    (place / "shared").chmod(0o1777 if sticky else 0o777)
    path = str(place / "shared" / ("way/out" if kind == "directory" else "out"))
    written = 0
    with Other(swapping(place, kind)) as other:
        assert other.lines.readline() == "ready\n"
        for _ in range(ROUNDS):
            with contextlib.suppress(OSError):
                write_output(path, b"picture")
                written += 1
        assert (place / "ours" / "out").read_bytes() == PRECIOUS
    assert os.listdir(place / "ours") == ["out"]
    assert written or kind != "link", "no round got as far as to write"


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_configuration_is_never_changed_or_read_through_what_is_swapped_in_meanwhile(place, kind):
    path = str(place / "shared" / ("way/out" if kind == "directory" else "out"))
    read = set()
    with Other(swapping(place, kind)) as other:
        assert other.lines.readline() == "ready\n"
        for _ in range(ROUNDS):
            with contextlib.suppress(CtlError, OSError):
                file = ConfigFile(path, private=True)
                read.add(file.text)
                file.write("{}", backed_up=True)
        assert (place / "ours" / "out").read_bytes() == PRECIOUS
    assert os.listdir(place / "ours") == ["out"]
    assert PRECIOUS.decode() not in read


def test_a_configuration_is_not_changed_through_a_link_that_another_user_planted(place):
    link = place / "shared" / "out"
    link.symlink_to(place / "ours" / "out")
    os.lchown(link, STRANGER, STRANGER)
    with pytest.raises(CtlError, match="another user made it"):
        ConfigFile(str(link), private=True)
    os.lchown(link, 0, 0)
    assert ConfigFile(str(link), private=True).text == PRECIOUS.decode()
    assert stat.S_ISLNK(link.lstat().st_mode)


def taking(folder: str):
    """An action: makes the directory as soon as it is gone, listens in it as tmux would, and says who comes."""

    def action(say) -> None:
        os.umask(0)
        say("ready")
        while True:
            with contextlib.suppress(OSError):
                os.mkdir(folder, 0o777)
                break
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(folder, "tmux"))
            server.listen(50)
            say("taken")
            while True:
                peer, _ = server.accept()
                say("somebody came")
                peer.close()

    return action


def test_a_running_host_does_not_talk_to_a_tmux_that_another_user_put_in_the_place_of_its_own(ctl, place, hermetic_env):
    deep = place / ("d" * 100)
    deep.mkdir()
    env = {**hermetic_env, "HOME": str(deep), "SHELL": "/bin/sh", "TMPDIR": str(place / "shared")}
    running = RunningHost(ctl, deep, env)
    running.start()
    try:
        node = running.value("terminal_open")["nodeId"]
        folder = Path((running.data / "tmux-sockets" / "termsprawl.path").read_text().strip()).parent
        with Other(taking(str(folder))) as other:
            assert other.lines.readline() == "ready\n"
            shutil.rmtree(folder)  # as a cleaner of old files does
            assert other.lines.readline() == "taken\n"
            for operation, arguments in (
                ("terminal_open", {}),
                ("terminal_read", {"nodeId": node}),
                ("terminal_submit", {"nodeId": node, "command": "echo secret"}),
                ("terminal_run", {"nodeId": node, "command": "echo secret"}),
                ("terminal_close", {"nodeId": node}),
            ):
                answer = running.call(operation, **arguments)
                assert not answer["ok"], operation
            os.kill(other._pid, signal.SIGKILL)
            assert other.lines.read() == ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        running.stop("--kill-sessions")


def test_a_short_socket_lies_where_nobody_else_can_make_one_wherever_that_is_possible(ctl, place, hermetic_env):
    deep = place / ("d" * 100)
    deep.mkdir()
    (place / "home").mkdir()
    env = {**hermetic_env, "HOME": str(place / "home"), "SHELL": "/bin/sh", "TMPDIR": str(place / "shared")}
    running = RunningHost(ctl, deep, env)
    running.start()
    try:
        socket_path = (running.data / "tmux-sockets" / "termsprawl.path").read_text()
        assert socket_path.startswith(str(place / "home" / ".local" / "state" / "termsprawlctl"))
        assert running.value("terminal_open")["nodeId"]
    finally:
        running.stop("--kill-sessions")
    assert os.listdir(place / "home" / ".local" / "state" / "termsprawlctl") == []


@pytest.mark.parametrize("command", [("list-sessions",), ("new-session", "-d", "-s", "two", "sleep 600")])
def test_tmux_talks_to_the_socket_that_was_looked_at_whatever_has_taken_its_name_by_then(place, command):
    """The attacker acts in the very moment between our look and what tmux does."""
    folder, path = place / "shared" / "sockets", place / "shared" / "sockets" / "tmux"
    folder.mkdir(mode=0o700)
    tmux = Tmux(find(), "-S", str(path), "-f", "/dev/null")
    tmux.run("new-session", "-d", "-s", "one", "sleep 600")
    with Other(taking(str(folder))) as other:
        assert other.lines.readline() == "ready\n"
        late = place / "ours" / "tmux"
        late.write_text(
            f"#!/bin/sh\nmv {folder} {place}/ours/away\n"
            f'while [ ! -S {path} ]; do sleep 0.01; done\nexec {find()} "$@"\n'
        )
        late.chmod(0o700)
        try:
            Tmux(str(late), "-S", str(path), "-f", "/dev/null").run(*command)
            assert other.lines.readline() == "taken\n"
            with pytest.raises(CtlError, match="belongs to another user"):
                tmux.run(*command)
            os.kill(other._pid, signal.SIGKILL)
            assert other.lines.read() == ""
        finally:
            held = Tmux(find(), "-S", str(place / "ours" / "away" / "tmux"))
            names = held.run("list-sessions", "-F", "#{session_name}").split()
            held.run("kill-server")
    assert names == (["one", "two"] if command[0] == "new-session" else ["one"])


def test_a_command_for_a_server_that_is_not_there_does_not_look_for_it_a_second_time(place):
    """Whoever takes the place of one that is missing is not met by chance."""
    ran = place / "ours" / "ran"
    binary = place / "ours" / "tmux"
    binary.write_text(f"#!/bin/sh\ntouch {ran}\n")
    binary.chmod(0o700)
    with pytest.raises(CtlError, match="No such file"):
        Tmux(str(binary), "-S", str(place / "shared" / "sockets" / "tmux")).run("list-sessions")
    assert not ran.exists()
