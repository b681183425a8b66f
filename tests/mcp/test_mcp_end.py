"""What ends the server, and what it does then; what does not end it, and does not hold it up."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time

import pytest
from support.mcp_client import META, McpServer, toy
from support.waiting import PATIENCE_S, until

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
EIGHT_MIB = 8 << 20


@pytest.fixture
def closed_file(tmp_path):
    """Where the toy notes that its close() was called."""
    return tmp_path / "closed"


@pytest.fixture
def env(hermetic_env, closed_file):
    return {**hermetic_env, "TOY_CLOSED": str(closed_file)}


@pytest.fixture
def server(ctl, env):
    with McpServer(toy(ctl), env) as running:
        yield running


def test_it_ends_silently_when_the_input_ends(server, closed_file):
    assert server.request("ping")
    server.close()
    assert server.rest() == []
    assert server.exit_status() == 0
    assert server.log() == ""
    assert closed_file.read_text() == "closed\n"


def test_it_ends_without_having_been_asked_anything(server):
    server.close()
    assert server.rest() == []
    assert server.exit_status() == 0


def test_calls_in_flight_and_queued_are_finished_at_the_end_of_the_input(server):
    ids = [server.call("echo", value=str(number)) for number in range(100)]
    server.close()
    assert [answer["id"] for answer in server.rest()] == ids
    assert server.exit_status() == 0


def test_it_stays_until_a_slow_reader_has_everything(server):
    wanted = server.call("big", bytes=EIGHT_MIB)
    server.close()
    # Not a moment that is waited for: the reader does nothing at all for a while.
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.5)
    assert [answer["id"] for answer in server.rest()] == [wanted]
    assert server.exit_status() == 0


def test_concurrent_calls_are_finished_too(ctl, env):
    with McpServer(toy(ctl, "max_running=4"), env) as server:
        ids = [server.call("steps", count=2, pause_s=0.001) for _ in range(100)]
        server.close()
        assert sorted(answer["id"] for answer in server.rest()) == ids
        assert server.exit_status() == 0


def test_a_limit_on_finishing_ends_what_goes_on_too_long(ctl, env, closed_file):
    with McpServer(toy(ctl, "finish_in_flight_s=0.05", "max_running=2"), env) as server:
        server.block()
        server.call("block")
        server.call("block", gate="queued")
        quick = server.call("echo", request_id="never started")
        server.close()
        assert quick not in [answer["id"] for answer in server.rest()]
        assert server.exit_status() == 0
    assert closed_file.read_text() == "closed\n"


def test_a_limit_on_finishing_does_not_delay_the_end(ctl, env):
    with McpServer(toy(ctl, "finish_in_flight_s=3600"), env) as server:
        answered = server.call("echo")
        server.close()
        assert [answer["id"] for answer in server.rest()] == [answered]
        assert server.exit_status() == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_it_silently(server, closed_file, number):
    assert server.request("ping")
    server.signal(number)
    assert server.rest() == []
    assert server.exit_status() == 0
    assert server.log() == ""
    assert closed_file.read_text() == "closed\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_running_calls_without_an_answer(server, closed_file, number):
    server.block()
    server.call("block")
    server.ask("subscriptions/listen", {"_meta": META})
    assert server.read()["method"] == "notifications/subscriptions/acknowledged"
    server.signal(number)
    assert server.rest() == []
    assert server.exit_status() == 0
    assert closed_file.read_text() == "closed\n"


def test_a_signal_ends_it_while_it_finishes_calls_after_the_input(server):
    server.block()
    server.close()
    server.signal()
    assert server.exit_status() == 0


def test_signal_upon_signal_ends_it_once(server, closed_file):
    server.block()
    for number in SIGNALS * 10:
        with contextlib.suppress(ProcessLookupError):
            server.signal(number)
    assert server.exit_status() == 0
    assert closed_file.read_text() == "closed\n"


def test_the_bridge_ends_at_a_signal_while_the_app_does_not_answer(ctl, tmp_path, hermetic_env):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        sessions = tmp_path / "agent-tools" / "sessions"
        sessions.mkdir(parents=True)
        (sessions / "a.json").write_text(json.dumps({"token": "t" * 64}))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/call"
        (tmp_path / "agent-tools" / "endpoint.json").write_text(json.dumps({"url": url, "instanceId": "i"}))
        with McpServer([ctl, "mcp", "--session", sessions / "a.json"], hermetic_env) as server:
            server.ask("initialize")
            server.call("canvas_list")
            connection, _ = silent.accept()
            server.signal()
            assert server.rest() == []
            assert server.exit_status() == 0
            connection.close()


@pytest.mark.parametrize("piece", [4096, 65536])
def test_a_signal_in_the_middle_of_a_line_lets_a_reader_have_its_end(server, piece):
    wanted = server.call("big", bytes=EIGHT_MIB)
    pieces = [server.read_some(piece)]
    server.signal()
    while pieces[-1]:
        pieces.append(server.read_some(piece))
    data = b"".join(pieces)
    assert data.endswith(b"}\n")
    (answer,) = [json.loads(line) for line in data.splitlines()]
    assert answer["id"] == wanted
    assert len(answer["result"]["content"][0]["text"]) == EIGHT_MIB
    assert server.exit_status() == 0


def answers_in(data: bytes) -> list[dict]:
    """The messages; fails on a half one."""
    assert data == b"" or data.endswith(b"}\n"), data[-100:]
    return [json.loads(line) for line in data.splitlines()]


def output(kind: str) -> tuple[int, int]:
    """(our end, the server's end) of an output of this kind, as descriptors."""
    if kind == "pipe":
        return os.pipe()
    ours, theirs = socket.socketpair()
    theirs.setblocking(kind == "socket")
    return ours.detach(), theirs.detach()


@pytest.mark.parametrize("kind", ["pipe", "socket", "non-blocking socket"])
@pytest.mark.parametrize(
    ("size", "piece", "pause_s"), [(60_000, 4096, 0.03), (60_000, 16_384, 0.05), (400_000, 4096, 0)]
)
def test_a_signal_leaves_no_half_line_to_a_reader_however_slow(ctl, env, kind, size, piece, pause_s):
    count = 10
    ours, theirs = output(kind)
    with open(ours, "rb"), McpServer(toy(ctl), env, stdout=theirs) as server:
        os.close(theirs)
        ids = [server.call("big", bytes=size) for _ in range(count)]
        pieces = [os.read(ours, piece)]
        server.signal()
        while pieces[-1]:
            time.sleep(pause_s)  # what this reader is: slow
            pieces.append(os.read(ours, piece))
            if server.process.poll() is not None:
                pause_s = 0
        answers = answers_in(b"".join(pieces))
        assert [answer["id"] for answer in answers] == ids[: len(answers)]
        # Only what had begun: the rest of the backlog is not waited for.
        assert len(answers) < count
        assert server.exit_status() == 0


def test_answers_that_have_not_begun_hold_no_end_up(server):
    # The first fills the pipe and is read by nobody; the rest of them waits behind it.
    server.call("big", bytes=65_000)
    for _ in range(20):
        server.call("big", bytes=EIGHT_MIB // 8)
    assert select.select([server.process.stdout], [], [], PATIENCE_S)[0]
    server.signal()
    assert server.exit_status() == 0


def test_complete_answers_are_written_although_the_time_for_finishing_is_up(ctl, env, closed_file):
    with McpServer(toy(ctl, "finish_in_flight_s=0.05", "max_running=2"), env) as server:
        server.block()
        ids = [server.call("big", bytes=1 << 20) for _ in range(4)]
        server.call("flood", bytes=2000)  # behind them on the one lane that is free
        until(lambda: "l" in server.log())
        server.close()
        # The reader is slow: calls have been ended and the provider is closed before it reads.
        until(closed_file.exists)
        assert [answer["id"] for answer in server.rest()][:4] == ids
        assert server.exit_status() == 0


def test_a_signal_ends_the_writing_of_complete_answers(ctl, env, closed_file):
    with McpServer(toy(ctl, "finish_in_flight_s=0.05"), env) as server:
        server.call("big", bytes=EIGHT_MIB)
        assert select.select([server.process.stdout], [], [], PATIENCE_S)[0]
        server.close()
        until(closed_file.exists)
        server.signal()
        assert server.exit_status() == 0


@pytest.mark.parametrize("same_id", [False, True], ids=["new ids", "one id for all"])
def test_a_signal_ends_it_with_very_many_queued_calls(server, same_id):
    server.block(request_id="first")
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}
    server.send(*({**call, "id": 7 if same_id else number} for number in range(5000)))
    assert server.is_silent()
    server.signal()
    assert server.rest() == []
    assert server.exit_status() == 0


def test_a_signal_ends_it_although_nobody_reads_the_line(server):
    server.call("big", bytes=EIGHT_MIB)
    assert select.select([server.process.stdout], [], [], PATIENCE_S)[0]
    server.signal()
    assert server.exit_status() == 0


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_when_its_output_is_closed(server, closed_file, busy):
    if busy:
        server.block()
        server.call("echo")
    else:
        server.request("ping")
    server.process.stdout.close()
    # No word from us: the broken pipe alone is the news.
    assert server.exit_status() == 0
    assert server.log() == ""
    assert closed_file.read_text() == "closed\n"


def test_it_ends_when_its_output_is_closed_in_the_middle_of_a_line(server):
    server.call("big", bytes=EIGHT_MIB)
    server.read_some(1000)
    server.process.stdout.close()
    assert server.exit_status() == 0
    assert server.log() == ""


def test_it_ends_when_its_output_takes_nothing(ctl, env):
    with open("/dev/full", "wb") as full, McpServer(toy(ctl), env, stdout=full) as server:
        server.ask("ping")
        assert server.exit_status() == 0
        assert server.log() == ""


def test_an_unread_error_output_holds_nothing_up(ctl, env):
    read_end, write_end = os.pipe()
    try:
        with McpServer(toy(ctl), env, stderr=write_end) as server:
            server.request("ping")
            before = server.peak_memory_kib()
            for _ in range(3):
                assert "result" in server.answer_to(server.call("flood", bytes=EIGHT_MIB))
            # Nor is it kept.
            assert server.peak_memory_kib() - before < 6 << 10
            server.close()
            assert server.rest() == []
            assert server.exit_status() == 0
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_closed_error_output_holds_nothing_up(ctl, env):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        with McpServer(toy(ctl), env, stderr=write_end) as server:
            assert "result" in server.answer_to(server.call("flood", bytes=1 << 20))
            assert "result" in server.answer_to(server.call("stray"))
    finally:
        os.close(write_end)


def test_a_flood_of_the_log_is_read_whole_by_who_reads_it(ctl, env):
    with McpServer(toy(ctl), env) as server:
        assert "result" in server.answer_to(server.call("flood", bytes=100_000))
        server.close()
        assert server.exit_status() == 0
        assert (server.log().count("l" * 999), server.log().count("p" * 999)) == (50, 50)


@pytest.mark.parametrize("size", [65534, 65535, 65536, 65537, 131072, EIGHT_MIB])
def test_a_slow_reader_gets_every_byte(server, size):
    server.ask("ping", request_id="p")
    envelope = len(server.read_line()) + len('"content":[{"type":"text","text":""}],"isError":false')
    wanted = {server.call("big", bytes=size - envelope + offset): size - envelope + offset for offset in (-1, 0, 1, 2)}
    pieces: list[bytes] = []
    ended = 0
    while ended < len(wanted):
        pieces.append(server.read_some(700 if size < EIGHT_MIB else 60_000))
        ended += pieces[-1].count(b"\n")
    answers = [json.loads(line) for line in b"".join(pieces).splitlines()]
    assert {answer["id"]: len(answer["result"]["content"][0]["text"]) for answer in answers} == wanted
    assert server.is_silent()


def test_a_client_that_writes_everything_before_it_reads_does_not_deadlock(server):
    ids = [server.call("echo", value="x" * 2000) for _ in range(1500)]
    assert [server.read()["id"] for _ in ids] == ids


def test_a_client_that_asks_for_more_than_it_reads_does_not_fill_the_memory(server):
    ids = [server.call("big", bytes=4 << 20) for _ in range(60)]
    # The reader does nothing for a while; 240 MiB of answers are to be had.
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(1.5)
    # 64 MiB may wait for it.
    assert server.peak_memory_kib() < 130 << 10
    assert [server.read()["id"] for _ in ids] == ids


def test_input_and_output_may_be_non_blocking_sockets(ctl, env):
    # As a client in Node.js hands them over.
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        process = subprocess.Popen(toy(ctl), env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
        try:
            theirs.close()
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            call["params"] = {"name": "big", "arguments": {"bytes": 1 << 20}}
            ours.sendall(json.dumps(call).encode() + b"\n")
            data = b""
            while not data.endswith(b"\n"):
                data += ours.recv(1 << 16)
            assert len(data) > 1 << 20
            ours.shutdown(socket.SHUT_WR)
            assert ours.recv(1) == b""
            assert process.wait(PATIENCE_S) == 0
            assert process.stderr.read() == b""
        finally:
            process.kill()
            process.wait()
            process.stderr.close()


def test_closed_descriptors_are_no_crash(ctl, env):
    for redirections in ("<&-", "2>&-", "<&- 2>&-", ">&-"):
        command = f'exec "$@" {redirections}'
        done = subprocess.run(
            ["/bin/sh", "-c", command, "sh", ctl, "mcp", "--session", "/nonexistent"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), redirections


def test_it_needs_no_environment(ctl, hermetic_env):
    # What the official clients leave: HOME, LOGNAME, PATH, SHELL, TERM, USER; no LANG. Even less has to do.
    with McpServer([ctl, "mcp", "--session", "/nonexistent"], hermetic_env) as server:
        server.send_bytes('{"jsonrpc":"2.0","id":"é","method":"ping"}\n'.encode())
        assert server.read() == {"jsonrpc": "2.0", "id": "é", "result": {}}
