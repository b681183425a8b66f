"""What a client may send to a share: one answer of the contract or none, nothing moved, and the next one is served."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import corpus, hostile
from support.chosen import plain_path
from support.tui_endpoint import SELECT
from support.tui_loop import PlayedShare
from support.tui_share import RunningShare, ask, dial, select_request
from support.tui_tmux import UserTmux
from support.waiting import until

from termsprawlctl.share import wire

GET = {"operation": "get_view_context"}
# Stand for the share's own in the corpus, and in what is drawn before there is a share.
TOKEN, INSTANCE, GENERATION, REVISION = "@TOKEN@", "@INSTANCE@", "@GENERATION@", 700_700_700
EXAMPLES = settings.default.max_examples


class Share(PlayedShare):
    """Knows two sessions; keeps the faults that would end a real share."""

    def __init__(self, temp_root) -> None:
        super().__init__(temp_root)
        self.faults: list[dict] = []
        self._loop.set_exception_handler(lambda _loop, context: self.faults.append(context))

    def validate(self, session_id, done) -> None:
        super().validate(session_id if session_id in ("ses_a", "ses_there") else "ses_unknown", done)


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    played = Share(tmp_path_factory.mktemp("t"))
    yield played
    played.close()


# --- strategies -----------------------------------------------------------------------------

uuids = st.uuids(version=4).map(str)
session_ids = st.sampled_from(["ses_a", "ses_there", "ses_", "ses_a\n", "ses_\u0661"])
selections = hostile.objects_with(
    operation=hostile.values_beside("select_session"),
    requestId=uuids | hostile.values_beside(SELECT["requestId"]),
    instanceId=hostile.values_beside(INSTANCE, INSTANCE.upper()),
    generation=hostile.values_beside(GENERATION),
    expectedRevision=hostile.values_beside(REVISION, REVISION + 1),
    sessionId=session_ids | hostile.json_values,
)
requests = (
    st.just(GET) | selections | hostile.json_values | st.builds(lambda more: {**GET, **more}, hostile.json_objects)
)
tokens = hostile.values_beside(TOKEN, TOKEN, TOKEN, TOKEN[:-1], TOKEN + " ", "0" * 64, "\u0660" * 64)
frames = st.builds(
    lambda token, request, more, end: hostile.dump({"token": token, "request": request, **more}).encode() + end,
    tokens,
    requests,
    st.just({}) | hostile.json_objects,
    st.sampled_from([b"\n", b"\n", b"\n", b"", b"\r\n", b"\n\n", b"\n{}", b" \n", b"\0\n"]),
)
texts = hostile.encoded(hostile.json_texts)
wrapped = texts.map(lambda text: b'{"token":"%s","request":%s}\n' % (TOKEN.encode(), text))
ended = texts.map(lambda text: text + b"\n")
lines = frames | wrapped | ended | hostile.damaged(frames) | hostile.json_bytes | hostile.binary
# How a client goes: it reads to the end, stops sending first, closes with a reset, or just closes.
departures = st.sampled_from(["read", "read", "half", "reset", "close"])


# --- a hostile client -------------------------------------------------------------------------


def with_identity(share, data: bytes) -> bytes:
    """The same bytes with the share's own token and ids in place of what stands for them."""
    instance, generation = share.directory.instance_id, share.directory.generation
    own = {
        TOKEN: share.directory.token,
        INSTANCE: instance,
        GENERATION: generation,
        REVISION: share.controller._revision,
    }
    for name, value in own.items():
        data = data.replace(str(name).encode(), str(value).encode())
    return data


def send(sock: socket.socket, piece: bytes) -> bool:
    try:
        sock.sendall(piece)
    except OSError:
        return False  # refused already
    return True


def leave(sock: socket.socket, departure: str) -> bytes:
    """Go as `departure` says; what came back, if it was waited for."""
    received = b""
    try:
        if departure == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif departure != "close":
            if departure == "half":
                sock.shutdown(socket.SHUT_WR)
            while chunk := sock.recv(65536):
                received += chunk
                if received.endswith(b"\n"):
                    break
    except ConnectionError:
        pass  # the share had closed
    sock.close()
    return received


def check_answer(share, received: bytes) -> dict:
    """One line of one of the shapes, without the token."""
    assert received.endswith(b"\n")
    assert received.count(b"\n") == 1
    assert len(received) <= wire.MAX_FRAME_BYTES
    assert not hostile.shows(share.directory.token, received)
    for request in (wire.GetViewContext(), wire.select_request(SELECT)):
        try:
            return wire.parse_answer(received, request)
        except wire.InvalidFrame:
            continue
    raise AssertionError(received)


def attempt(share, pieces: list[bytes], departure: str) -> dict | None:
    """One hostile connection; the answer, None where there was none to have."""
    before = list(share.shown)
    data = b"".join(pieces)
    whole_lines = data.count(b"\n")
    sock = dial(share.path)
    for piece in pieces:
        if not send(sock, piece):
            break
    # Without a line end and without stopping to send, a client is waiting for its own cut-off.
    ends = whole_lines or len(data) >= wire.MAX_FRAME_BYTES
    received = leave(sock, departure if ends or departure in ("reset", "close") else "half")
    answer = check_answer(share, received) if received else None
    assert answer or departure in ("reset", "close"), data
    if answer and answer["status"] == "applied":
        assert share.shown == [*before, answer["context"]["sessionId"]]
    elif answer:
        assert share.shown == before
    return answer


def check_served(share) -> None:
    """That an honest client is served, and nothing is left of the others."""
    answer = ask(share.path, GET)
    assert answer["status"] == "context"
    until(lambda: not share.run(lambda: len(share.share.connections)), "all connections are let go")
    assert share.faults == []
    assert not hostile.shows(share.directory.token, repr(share.reports))
    share.reports.clear()
    # A share answers 128 selections in its life; these are for finding faults.
    share.run(share.controller._receipts.clear)
    share.asked.clear()
    share.shown.clear()


@pytest.mark.parametrize("path", corpus.entries("tui_requests"), ids=corpus.name)
@pytest.mark.parametrize("departure", ["read", "half", "reset"])
def test_what_once_was_odd_is_refused_and_the_next_client_served(share, path, departure):
    answer = attempt(share, [with_identity(share, path.read_bytes())], departure)
    # A byte order mark or a carriage return does no harm: such a read is answered.
    assert answer is None or answer["status"] in ("rejected", "context")
    check_served(share)


@given(lines.flatmap(hostile.cuts), departures)
def test_any_bytes_get_one_answer_at_most_and_the_next_client_is_served(share, pieces, departure):
    attempt(share, [with_identity(share, piece) for piece in pieces], departure)
    check_served(share)


@settings(max_examples=max(5, EXAMPLES // 6))
@given(st.lists(st.tuples(lines.flatmap(hostile.cuts), departures), min_size=2, max_size=24), st.integers(0, 1 << 30))
def test_a_crowd_of_hostile_clients_is_never_more_than_sixteen_and_leaves_the_share_as_it_was(share, crowd, seed):
    socks = [dial(share.path) for _ in crowd]
    steps = [(index, piece) for index, (pieces, _) in enumerate(crowd) for piece in pieces]
    random.Random(seed).shuffle(steps)
    for index, piece in steps:
        send(socks[index], with_identity(share, piece))
        assert share.run(lambda: len(share.share.connections)) <= 16
    for sock, (_, departure) in zip(socks, crowd):
        received = leave(sock, "half" if departure == "read" else departure)
        if received:
            check_answer(share, received)
    check_served(share)


@settings(max_examples=max(5, EXAMPLES // 6))
@given(st.integers(0, 400), departures, st.booleans())
def test_a_client_that_leaves_after_any_byte_of_its_request_moves_the_view_once_or_not_at_all(
    share, size, departure, held
):
    if held:
        share.hold.set()
    seen = ask(share.path, GET)["context"]
    request = select_request(seen, "ses_there")
    data = json.dumps({"token": share.directory.token, "request": request}).encode() + b"\n"
    sock = dial(share.path)
    sock.sendall(data[:size])
    if held:
        share.settle()
    whole = size >= len(data)
    leave(sock, departure if whole or departure != "read" else "half")
    assert share.shown in ([], ["ses_there"])
    assert whole or not share.shown
    share.hold.clear()
    check_served(share)


@given(hostile.json_bytes | lines)
def test_a_parsed_request_is_of_the_shape_and_a_refusal_quotes_nothing(line):
    secret = b"5ec2e7" * 10
    line = line.replace(TOKEN.encode(), secret)
    try:
        frame = wire.parse_request(line)
    except wire.InvalidFrame as error:
        text = str(error)
        assert not hostile.shows(secret.decode(), text)
        return
    assert wire.is_token(frame.token)
    request = frame.request
    if isinstance(request, wire.SelectSession):
        assert wire.is_uuid(request.request_id)
        assert wire.is_session_id(request.session_id)
        assert wire.is_revision(request.expected_revision)
    else:
        assert isinstance(request, wire.GetViewContext)


@pytest.mark.parametrize("text", ['{"token":', "[", '{"a":', '{"token":"x","request":'])
def test_a_frame_of_nothing_but_openings_is_refused(share, text):
    for size in (1000, wire.MAX_FRAME_BYTES - 1):
        data = (text * size)[:size].encode() + b"\n"
        assert attempt(share, [data], "read") == wire.rejected(wire.INVALID_REQUEST)
    check_served(share)


def test_a_flood_on_the_built_file_leaves_memory_descriptors_and_the_user_as_they_were(ctl, tmp_path_factory):
    tmux = UserTmux(tmp_path_factory.mktemp("f"), plain_path())
    try:
        tmux.new_session("one")
        tmux.first = tmux.attach("one")
        share = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket], tmux.env)
        flood(share)
        assert tmux.session_of(tmux.first) == "one"
        assert share.stop() == 0  # and no token, no traceback in what it printed
    finally:
        tmux.close()


def flood(share: RunningShare) -> None:
    share.quiet_context()
    folder = f"/proc/{share.process.pid}"
    before, kib = len(os.listdir(f"{folder}/fd")), memory_kib(folder)
    members = json.loads(Path(share.path).read_text())
    own = {TOKEN: members["token"], INSTANCE: members["instanceId"], GENERATION: members["generation"]}
    for path in corpus.entries("tui_requests"):
        data = path.read_bytes()
        for name, value in own.items():
            data = data.replace(name.encode(), value.encode())
        socks = [dial(share.path) for _ in range(20)]
        for number, sock in enumerate(socks):
            send(sock, data[: len(data) - number * number])
            leave(sock, "half" if number == 0 else "reset" if number % 2 else "close")
        until(lambda: is_served(share), "the next client is served")
    until(lambda: len(os.listdir(f"{folder}/fd")) <= before, "all descriptors are given back")
    assert memory_kib(folder) < kib + 8 * 1024


def is_served(share: RunningShare) -> bool:
    """Whether a client is, and not turned away because all places are still taken."""
    try:
        return share.context()["route"] == "session"
    except (ConnectionError, AssertionError):
        return False


def memory_kib(folder: str) -> int:
    """The most memory that a process has had."""
    lines = Path(f"{folder}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
