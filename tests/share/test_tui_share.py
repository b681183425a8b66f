"""The sharing side on its socket: frames, connections, hang-ups and deadlines, over raw sockets."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import uuid
from pathlib import Path

import pytest
from support.tui_loop import PlayedShare
from support.tui_share import ask, dial, everything, exchange, frame, one_line, select_request
from support.waiting import until

from termsprawlctl.base.errors import UsageError
from termsprawlctl.share import endpoint
from termsprawlctl.share.directory import ShareDirectory
from termsprawlctl.share.sharing import controller as controller_module
from termsprawlctl.share.sharing import server as share_module

GET = {"operation": "get_view_context"}
FULL = 16_384


@pytest.fixture
def share(tmp_path_factory):
    played = PlayedShare(tmp_path_factory.mktemp("t"))
    yield played
    played.close()


@pytest.fixture
def short_cut_off(monkeypatch):
    monkeypatch.setattr(share_module, "CUT_OFF_S", 0.3)


def context(share) -> dict:
    return ask(share.path, GET)["context"]


def rejected(code: str) -> dict:
    return {"status": "rejected", "code": code}


def test_a_context_is_answered_in_one_line_and_the_connection_closed(share):
    seen = ask(share.path, GET)
    members = json.loads(Path(share.path).read_text())
    assert seen == {
        "status": "context",
        "context": {
            "instanceId": members["instanceId"],
            "generation": members["generation"],
            "revision": 0,
            "route": "home",
            "ready": True,
            "blocked": False,
        },
    }


def test_a_session_is_selected_and_a_repeated_request_gets_the_first_answer(share):
    request = select_request(context(share), "ses_a")
    first = ask(share.path, request)
    assert first["status"] == "applied"
    assert first["context"]["sessionId"] == "ses_a"
    ask(share.path, select_request(context(share), "ses_b"))
    assert ask(share.path, request) == first
    assert share.shown == ["ses_a", "ses_b"]
    assert ask(share.path, {**request, "sessionId": "ses_c"}) == rejected("request_conflict")


def test_each_request_is_reported_with_its_revision_and_outcome_and_without_the_token(share):
    context(share)
    ask(share.path, select_request(context(share), "ses_unknown"))
    *reads, (request, answer) = share.reports
    assert [type(read).__name__ for read, _ in reads] == ["GetViewContext"] * 2
    assert [given["status"] for _, given in reads] == ["context"] * 2
    assert (request.session_id, request.expected_revision) == ("ses_unknown", 0)
    assert answer == rejected("target_unavailable")
    assert share.directory.token not in repr(share.reports)


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"hello\n",
        b"[]\n",
        b'{"token": 1, "request": {}}\n',
        b"\x00\xff\n",
    ],
    ids=repr,
)
def test_a_line_that_is_no_frame_is_invalid(share, data):
    assert exchange(share.path, data) == rejected("invalid_request")


@pytest.mark.parametrize(
    "request_",
    [{}, None, {"operation": "revoke"}, {**GET, "more": 1}, {"operation": "select_session"}],
    ids=str,
)
def test_a_request_of_another_shape_is_invalid(share, request_):
    assert ask(share.path, request_) == rejected("invalid_request")


def test_an_unknown_key_beside_token_and_request_is_invalid(share):
    assert ask(share.path, GET, more=1) == rejected("invalid_request")


def test_a_wrong_token_is_unauthorized(share):
    assert ask(share.path, GET, token="0" * 64) == rejected("unauthorized")
    assert share.reports == []


@pytest.mark.parametrize("token", ["", "0" * 63, "0" * 65, "A" * 64, "\u00e9" * 64, "\u0660" * 64, "\ud800"], ids=ascii)
def test_what_cannot_be_a_token_is_no_request(share, token):
    assert ask(share.path, GET, token=token) == rejected("invalid_request")
    assert share.reports == []


def test_a_wrong_token_moves_nothing(share):
    request = select_request(context(share), "ses_a")
    assert ask(share.path, request, token="0" * 64) == rejected("unauthorized")
    assert share.asked == []


def padded(share, size: int) -> bytes:
    data = frame(share.path, GET)
    return data[:-1] + b" " * (size - len(data)) + b"\n"


def test_a_frame_may_have_16384_bytes_with_its_line_end(share):
    assert exchange(share.path, padded(share, FULL))["status"] == "context"


@pytest.mark.parametrize("size", [FULL + 1, 3 * FULL, 1 << 20])
def test_a_longer_frame_is_invalid_however_much_of_it_was_sent(share, size):
    with dial(share.path) as sock:
        with contextlib.suppress(OSError):  # refused while still sending
            sock.sendall(padded(share, size))
        assert one_line(sock) == rejected("invalid_request")


def test_a_frame_over_the_cap_is_invalid_before_its_line_ends(share):
    with dial(share.path) as sock:
        sock.sendall(b"x" * FULL)
        assert one_line(sock) == rejected("invalid_request")


def test_two_frames_in_one_go_are_invalid_and_neither_runs(share):
    request = frame(share.path, select_request(context(share), "ses_a"))
    assert exchange(share.path, request + request) == rejected("invalid_request")
    assert share.asked == []


@pytest.mark.parametrize("rest", [b"\n", b" ", b"{"], ids=repr)
def test_anything_after_the_frame_in_one_go_is_invalid(share, rest):
    assert exchange(share.path, frame(share.path, GET) + rest) == rejected("invalid_request")


@pytest.mark.parametrize("second", [b"\n", b" ", b"{}\n"], ids=repr)
def test_bytes_after_the_frame_are_invalid_and_cancel_what_it_asked_for(share, second):
    share.hold.set()
    request = select_request(context(share), "ses_a")
    with dial(share.path) as sock:
        sock.sendall(frame(share.path, request))
        until(lambda: share.asked, "the validation has begun")
        sock.sendall(second)
        assert one_line(sock) == rejected("invalid_request")
    share.settle()
    assert share.shown == []
    assert ask(share.path, request) == rejected("cancelled")


def test_a_frame_may_come_byte_by_byte(share):
    with dial(share.path) as sock:
        for position, _ in enumerate(data := frame(share.path, GET)):
            sock.sendall(data[position : position + 1])
        assert one_line(sock)["status"] == "context"


@pytest.mark.parametrize("data", [b"", b'{"token"'], ids=["nothing", "half"])
def test_a_caller_that_stops_sending_before_the_line_end_is_invalid(share, data):
    with dial(share.path) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert one_line(sock) == rejected("invalid_request")


def test_half_a_frame_and_then_silence_is_cut_off(share, short_cut_off):
    with dial(share.path) as sock:
        sock.sendall(b'{"token"')
        assert everything(sock) == b""


def test_a_caller_that_drips_bytes_is_cut_off_all_the_same(share, short_cut_off):
    with dial(share.path) as sock:
        sock.settimeout(0.02)
        received = None
        for _ in range(1000):
            try:
                sock.sendall(b" ")
                received = sock.recv(1)
                break
            except socket.timeout:
                continue
            except OSError:
                received = b""
                break
        assert received == b""


def test_sixteen_connections_are_held_and_one_more_is_closed_at_once(share):
    held = [dial(share.path) for _ in range(16)]
    until(lambda: len(share.share.connections) == 16)
    with dial(share.path) as one_more:
        assert everything(one_more) == b""
    assert len(share.share.connections) == 16
    held[3].sendall(frame(share.path, GET))
    assert one_line(held[3])["status"] == "context"
    held.pop(3).close()
    until(lambda: len(share.share.connections) == 15)
    assert ask(share.path, GET)["status"] == "context"
    for sock in held:
        sock.close()
    until(lambda: not share.share.connections)


def test_idle_connections_do_not_block_the_share_for_longer_than_the_cut_off(share, short_cut_off):
    held = [dial(share.path) for _ in range(16)]
    for sock in held:
        assert everything(sock) == b""
        sock.close()
    assert ask(share.path, GET)["status"] == "context"


def test_a_caller_that_hangs_up_while_its_session_is_validated_moves_nothing(share):
    share.hold.set()
    request = select_request(context(share), "ses_a")
    with dial(share.path) as sock:
        sock.sendall(frame(share.path, request))
        until(lambda: share.asked)
    until(lambda: not share.share.connections)
    share.settle()
    assert share.shown == []
    assert ask(share.path, request) == rejected("cancelled")


def test_a_caller_that_only_stops_sending_gets_its_answer(share):
    share.hold.set()
    with dial(share.path) as sock:
        sock.sendall(frame(share.path, select_request(context(share), "ses_a")))
        sock.shutdown(socket.SHUT_WR)
        until(lambda: share.asked)
        share.settle()
        assert one_line(sock)["status"] == "applied"


def test_a_caller_that_stops_sending_and_then_leaves_moves_nothing(share):
    share.hold.set()
    request = select_request(context(share), "ses_a")
    with dial(share.path) as sock:
        sock.sendall(frame(share.path, request))
        sock.shutdown(socket.SHUT_WR)
        until(lambda: share.asked)
    until(lambda: not share.share.connections)
    share.settle()
    assert share.shown == []


def test_a_validation_that_takes_too_long_is_answered_at_its_deadline_and_keeps_the_gate(share, monkeypatch):
    monkeypatch.setattr(controller_module, "VALIDATION_S", 0.2)
    share.hold.set()
    assert ask(share.path, select_request(context(share), "ses_a")) == rejected("deadline_exceeded")
    assert ask(share.path, select_request(context(share), "ses_b")) == rejected("busy")
    share.settle()
    assert ask(share.path, select_request(context(share), "ses_b"))["status"] == "applied"
    assert share.shown == ["ses_b"]


def test_revoking_answers_who_waits_and_leaves_nothing_behind(share):
    share.hold.set()
    sock = dial(share.path)
    sock.sendall(frame(share.path, select_request(context(share), "ses_a")))
    idle = dial(share.path)
    until(lambda: share.asked)
    share.revoke()
    assert one_line(sock) == rejected("revoked")
    everything(idle)
    assert not os.path.exists(share.directory.directory)
    with pytest.raises(FileNotFoundError):
        dial(share.path)
    share.settle()
    share.revoke()
    assert share.shown == []
    sock.close()
    idle.close()


def test_the_share_directory_has_exactly_the_described_files_and_modes_under_any_umask(tmp_path_factory):
    for mask in (0o000, 0o022, 0o077, 0o177, 0o777):
        root = str(tmp_path_factory.mktemp("u"))
        old = os.umask(mask)
        try:
            made = ShareDirectory(root)
        finally:
            os.umask(old)
        modes = {
            name: stat.S_IMODE(os.lstat(os.path.join(made.directory, name)).st_mode)
            for name in ("", *os.listdir(made.directory))
        }
        assert modes == {"": 0o700, "endpoint.json": 0o600, "s": 0o600}
        loaded = endpoint.load(made.path).members
        assert (loaded.instance_id, loaded.generation, loaded.token) == (made.instance_id, made.generation, made.token)
        for value in (made.instance_id, made.generation):
            assert str(uuid.UUID(value)) == value
        made.remove()
        assert not os.path.exists(made.directory)
        made.remove()


def test_a_share_directory_is_exactly_0700_even_where_directories_inherit_a_group(tmp_path_factory):
    root = tmp_path_factory.mktemp("g")
    root.chmod(0o2777)
    made = ShareDirectory(str(root))
    assert stat.S_IMODE(os.stat(made.directory).st_mode) == 0o700
    made.remove()


def test_a_share_directory_lies_under_the_real_path_of_the_temp_root(tmp_path_factory):
    root = tmp_path_factory.mktemp("r")
    (root / "link").symlink_to(root)
    made = ShareDirectory(str(root / "link"))
    assert os.path.realpath(made.path) == made.path
    made.remove()


def test_every_share_directory_has_an_identity_and_a_token_of_its_own(tmp_path_factory):
    root = str(tmp_path_factory.mktemp("r"))
    several = [ShareDirectory(root) for _ in range(3)]
    assert len({part for made in several for part in (made.token, made.instance_id, made.generation)}) == 9
    for made in several:
        made.remove()


def test_a_socket_path_may_have_99_bytes_and_100_are_refused_with_nothing_left(tmp_path_factory):
    base = str(tmp_path_factory.mktemp("l"))
    sample = ShareDirectory(base)
    sample.remove()
    name = len(sample.directory) - len(base)
    for size, fits in ((99, True), (100, False)):
        root = base + "/" + "x" * (size - len(base) - 1 - name - len("/s"))
        os.mkdir(root)
        if fits:
            made = ShareDirectory(root)
            assert len(os.path.join(made.directory, "s")) == size
            made.remove()
        else:
            with pytest.raises(UsageError, match="TMPDIR"):
                ShareDirectory(root)
            assert os.listdir(root) == []
