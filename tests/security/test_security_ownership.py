"""Whose a directory, a file or a port is: the rules themselves, with nobody else needed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import stat

import pytest
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.agents.server.folders import Folders
from termsprawlctl.app import peer, transport
from termsprawlctl.base import files, ownership

HAS_TABLES = pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="this system does not tell")


def socket_of(family) -> socket.socket:
    try:
        sock = socket.socket(family)
        if family == socket.AF_INET6:
            sock.bind(("::1", 0))
            sock.close()
            sock = socket.socket(family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    return sock


def mode_of(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_link_in_the_place_of_a_private_directory_is_refused_and_what_it_names_left_as_it_is(tmp_path):
    (tmp_path / "public").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("public")
    with pytest.raises(OSError, match=r"link"):
        files.private_directory(str(tmp_path / "link"))
    assert mode_of(tmp_path / "public") == 0o755


def test_a_directory_that_was_replaced_by_a_link_or_is_gone_is_no_longer_ours(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "link").symlink_to("made")
    (tmp_path / "file").write_text("")
    assert ownership.is_ours(str(tmp_path / "made"))
    assert [ownership.is_ours(str(tmp_path / name)) for name in ("link", "file", "none")] == [False] * 3


def test_a_data_directory_below_one_that_everybody_may_write_to_is_refused(tmp_path):
    (tmp_path / "way").mkdir()
    (tmp_path / "way").chmod(0o777)
    with pytest.raises(OSError, match="other users may write to"):
        files.named_directory(str(tmp_path / "way" / "data"))
    (tmp_path / "way").chmod(0o1777)
    assert files.named_directory(str(tmp_path / "way" / "data"))
    # Where a link leads counts, not where it lies.
    (tmp_path / "link").symlink_to("way")
    (tmp_path / "way").chmod(0o777)
    with pytest.raises(OSError, match="other users may write to"):
        files.named_directory(str(tmp_path / "link" / "data"))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A directory for temporary files that everybody may write to, and a home that nobody else may."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    # What holds pytest's own directories is no part of the question.
    monkeypatch.setattr(
        ownership,
        "_way",
        lambda path, way=ownership._way: [
            (above, status) for above, status in way(path) if above.startswith(str(tmp_path))
        ],
    )
    return tmp_path / "tmp"


def test_an_agent_without_a_folder_does_not_work_below_files_that_anybody_may_put_there(temporary, tmp_path):
    folders = Folders("", print)
    workspace, _ = folders.choose("")
    folders.close()
    assert os.path.dirname(workspace) == str(tmp_path / "home" / ".local" / "state" / "termsprawlctl" / "workspaces")
    temporary.chmod(0o755)
    folders = Folders("", print)
    assert os.path.dirname(folders.choose("")[0]) == str(temporary)
    folders.close()


@pytest.mark.parametrize("worse", ["in a repository", "open to all", "not there to be made"])
def test_a_home_that_is_no_better_is_not_used_for_an_agents_folder(temporary, tmp_path, worse):
    home = tmp_path / "home"
    if worse == "not there to be made":
        home.write_text("a file")
    else:
        home.mkdir()
        home.chmod(0o777 if worse == "open to all" else 0o755)
        (home / ".git").mkdir()
    folders = Folders("", print)
    assert os.path.dirname(folders.choose("")[0]) == str(temporary)
    folders.close()


@HAS_TABLES
@pytest.mark.parametrize("ask", [peer.owner_of_listener, peer.from_tables])
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("closed", [False, True])
def test_the_system_tells_who_listens_or_has_accepted(ask, family, closed):
    with contextlib.closing(socket_of(family)) as listener:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::" if family == socket.AF_INET6 else "127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            with accepted:
                if closed:
                    listener.close()
                assert ask(port, client.getsockname()[1]) == os.getuid()


@HAS_TABLES
def test_without_the_monitor_the_tables_are_read(monkeypatch):
    real = peer.socket.socket

    def refuse(family, *arguments):
        if family == socket.AF_NETLINK:
            raise PermissionError(1, "Operation not permitted")
        return real(family, *arguments)

    with socket.create_server(("127.0.0.1", 0)) as listener, monkeypatch.context() as patch:
        patch.setattr(peer.socket, "socket", refuse)
        assert peer.owner_of_listener(listener.getsockname()[1], 1) == os.getuid()
        patch.setattr(peer, "_TABLES", {"/nowhere": peer._TABLES["/proc/net/tcp"]})
        assert peer.owner_of_listener(listener.getsockname()[1], 1) is None


@pytest.mark.parametrize("owner", [None, 0, os.getuid(), "the session file's"])
def test_a_call_goes_to_whoever_may_know_the_token(tmp_path, monkeypatch, owner):
    with ScriptedServer(replying(answer({"ok": True}))) as app:
        session = str(SessionFiles(tmp_path, app.port).session)
        told = os.stat(session).st_uid if isinstance(owner, str) else owner
        monkeypatch.setattr(transport, "owner_of_listener", lambda _port, _client: told)
        assert transport.call(session, "session_info") == {"ok": True}


def test_a_call_to_a_port_of_another_user_sends_nothing(tmp_path, monkeypatch):
    heard: queue.Queue = queue.Queue()
    with ScriptedServer(lambda connection: heard.put(connection.sock.recv(65536))) as app:
        session = str(SessionFiles(tmp_path, app.port).session)
        monkeypatch.setattr(transport, "owner_of_listener", lambda _port, _client: os.getuid() + 4711)
        result = transport.call(session, "session_info")
        assert heard.get(timeout=20) == b""
    assert "a program of another user listens" in result["error"]
    assert TOKEN not in json.dumps(result)
