"""The HTTP side of a running host, over raw sockets: what it refuses, and in which words."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.running_host import RunningHost

from termsprawlctl.base.layout import DataPaths

PATHS_AND_METHODS = [
    (b"GET", b"/call", 403),
    (b"PUT", b"/call", 403),
    (b"DELETE", b"/call", 403),
    (b"OPTIONS", b"/call", 403),
    (b"POST", b"/", 404),
    (b"POST", b"/call/", 404),
    (b"POST", b"/other", 404),
]
UNSUPPORTED = {"ok": False, "error": "Unsupported request"}
REVOKED = {"ok": False, "error": "Unknown or revoked session"}


def exchange(port: int, data: bytes) -> tuple[int, dict]:
    """Send bytes, read to the end; returns (status, ToolResult)."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(data)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def exchange_by_socket(path: str, data: bytes) -> tuple[int, dict]:
    """The same over the host's own socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(30)
        sock.connect(path)
        sock.sendall(data)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def request(body: bytes, token: str, *, method: bytes = b"POST", path: bytes = b"/call", extra: bytes = b"") -> bytes:
    head = b"%s %s HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n%s\r\n"
    return head % (method, path, token.encode(), len(body), extra) + body


def call_body(operation: object, args: object) -> bytes:
    return json.dumps({"operation": operation, "args": args}).encode()


INFO = call_body("session_info", {})


@pytest.mark.parametrize(("method", "path", "status"), PATHS_AND_METHODS)
def test_anything_but_post_call_is_an_unsupported_request(host, method, path, status):
    assert exchange(host.port(), request(INFO, host.token(), method=method, path=path)) == (status, UNSUPPORTED)


def test_a_request_with_an_origin_is_refused_even_with_a_good_token(host):
    for origin in (b"http://evil.example", b"null", b"http://127.0.0.1", b""):
        refused = exchange(host.port(), request(INFO, host.token(), extra=b"Origin: %s\r\n" % origin))
        assert refused == (403, UNSUPPORTED)


def test_a_request_for_another_host_is_refused_even_with_a_good_token(host):
    def answer(name: str) -> tuple:
        asked = request(INFO, host.token()).replace(b"host: 127.0.0.1\r\n", f"Host: {name}\r\n".encode())
        return exchange(host.port(), asked)

    port = host.port()
    for name in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1:{port + 1}",
        "127.0.0.1.evil.example",
        f"[::1]:{port}",
        "",
    ):
        assert answer(name) == (403, UNSUPPORTED), name
    for name in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost"):
        assert answer(name)[0] == 200, name


def test_an_unknown_token_is_refused_whatever_it_looks_like(host):
    good = host.token()
    for token in ("0" * 64, good[:-1], good + "0", good.upper(), "", "x"):
        assert exchange(host.port(), request(INFO, token)) == (401, REVOKED)
    bare = b"POST /call HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"
    assert exchange(host.port(), bare) == (401, REVOKED)
    other_scheme = request(INFO, good).replace(b"Bearer", b"Basic")
    assert exchange(host.port(), other_scheme) == (401, REVOKED)


def test_a_body_over_the_limit_is_refused_and_the_answer_arrives(host):
    limit = 1 << 20
    body = call_body("guide_read", {"topic": "x" * 10})
    padded = body[:-1] + b" " * (limit - len(body)) + b"}"
    status, result = exchange(host.port(), request(padded, host.token()))
    assert (status, result["error"]) == (400, "Invalid topic")
    status, result = exchange(host.port(), request(padded + b" ", host.token()))
    assert (status, result["error"]) == (400, "Request too large")
    # Sent by the real client, whose own connection must not be reset over it.
    assert host.call("sticky_open", text="y" * (1 << 20))["error"] == "Request too large"


def test_a_body_that_is_no_request_is_named(host):
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"args": NaN}'):
        status, result = exchange(host.port(), request(body, host.token()))
        assert status == 400
        assert result["error"].startswith("The request is not JSON")
    for body in (b"[]", b"1", b"null"):
        assert exchange(host.port(), request(body, host.token()))[1]["error"] == "The request is not a JSON object"


@pytest.mark.parametrize(
    "extra",
    [
        b"transfer-encoding: chunked\r\n",  # beside a length
        b"transfer-encoding: gzip, chunked\r\n",
        b"content-length: 3\r\n",
        b"content-length: x\r\n",
    ],
)
def test_a_body_of_unclear_length_is_refused(host, extra):
    assert exchange(host.port(), request(INFO, host.token(), extra=extra)) == (400, UNSUPPORTED)


def chunked(host, *parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = request(b"", host.token(), extra=b"transfer-encoding: chunked\r\n")
    head = head.replace(b"content-length: 0\r\n", b"")
    assert b"content-length" not in head
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + end


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b"0;x=y\r\ntrailer: 1\r\n\r\n", b"0\n\n"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_in_chunks_is_put_together(host, size, end):
    parts = [INFO[index : index + size] for index in range(0, len(INFO), size)]
    status, result = exchange(host.port(), chunked(host, *parts, end=end))
    assert (status, result["ok"]) == (200, True)


def test_a_body_in_chunks_comes_piece_by_piece(host):
    whole = chunked(host, b'{"operation": "session_info", ', b'"args": {"a": "\n\r\n\n"', b"}}")
    with socket.create_connection(("127.0.0.1", host.port()), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for index in range(0, len(whole), 9):
            sock.sendall(whole[index : index + 9])
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    assert b"Unknown argument: a" in answer or b"not JSON" in answer


@pytest.mark.parametrize("end", [b"zz\r\n\r\n", b"-1\r\n\r\n", b"5\r\nabcdefg\r\n0\r\n\r\n"])
def test_chunks_that_are_none_are_refused(host, end):
    assert exchange(host.port(), chunked(host, INFO, end=end)) == (400, UNSUPPORTED)


def test_many_chunks_are_no_way_around_the_largest_body(host):
    status, result = exchange(host.port(), chunked(host, *[b" " * 65536] * 17, INFO))
    assert (status, result["error"]) == (400, "Request too large")


NOT_REQUESTS = [
    (b"\r\n\r\n", 400),
    (b" \r\n\r\n", 400),
    (b"\xa0\x85\r\n\r\n", 400),
    (b"\x16\x03\x01\x00", 400),
    (b"\x00" * 100, 400),
    (b"POST", 400),
    (b"POST\r\n\r\n", 400),
    (b"POST /call\r\n\r\n", 400),
    (b"GET /call\r\n\r\n", 400),
    (b"GET /call HTTP/1.0\r\n\r\n", 403),
    (b"POST /call HTTP/1.0\r\n\r\n", 401),
    (b"POST /call HTTP/0.9\r\n\r\n", 505),
    (b"POST /call HTTP/2.0\r\n\r\n", 505),
    (b"POST /call HTTP/9.9\r\n\r\n", 505),
    (b"POST /call HTTP/x\r\n\r\n", 400),
    (b"POST /call FTP/1.1\r\n\r\n", 400),
    (b"POST /call HTTP/1.1 more\r\n\r\n", 400),
    (b"A" * 70_000 + b"\r\n", 414),
    (b"A" * 70_000, 414),
    (b"POST /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
    (b"POST /call HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
    (b"POST /call HTTP/1.1\r\n" + b"x: %s\r\n" % (b"y" * 1000) * 90 + b"\r\n", 431),
    (b"POST /call HTTP/1.1\r\n" + b"x: y\r\n" * 150 + b"\r\n", 431),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
]


def test_what_is_not_a_request_of_ours_gets_a_whole_answer(host):
    for junk, status in NOT_REQUESTS:
        with socket.create_connection(("127.0.0.1", host.port()), timeout=30) as sock:
            sock.sendall(junk)
            sock.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := sock.recv(65536):
                answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), junk[:40]
        assert f"content-length: {len(body)}" in head.decode().lower().split("\r\n"), junk[:40]
        assert json.loads(body) in (UNSUPPORTED, REVOKED), junk[:40]
    assert host.value("session_info")["nodeId"].startswith("cli-")


def test_clients_that_hang_up_half_way_hurt_nobody(host):
    whole = request(INFO, host.token())
    for cut in range(0, len(whole), 17):
        with socket.create_connection(("127.0.0.1", host.port()), timeout=30) as sock:
            sock.sendall(whole[:cut])
    assert host.value("session_info")["nodeId"].startswith("cli-")


def test_arguments_are_checked_against_the_table(host):
    cases = [
        ("nope", {}, "Unknown operation"),
        (None, {}, "Unknown operation"),
        (["session_info"], {}, "Unknown operation"),
        ("session_info", [], "Expected args object"),
        ("terminal_read", {}, "Missing argument: nodeId"),
        ("terminal_read", {"nodeId": "n", "x": 1}, "Unknown argument: x"),
        ("terminal_read", {"nodeId": 1}, "Invalid nodeId"),
        ("terminal_read", {"nodeId": "n", "maxChars": "5"}, "Invalid maxChars"),
        ("terminal_read", {"nodeId": "n", "maxChars": True}, "Invalid maxChars"),
        ("canvas_move", {"nodeId": "n", "x": 1_000_001, "y": 0}, "Invalid x"),
        ("canvas_move", {"nodeId": "n", "x": 0, "y": 10**400}, "Invalid y"),
        ("canvas_select", {"nodeIds": []}, "Invalid nodeIds"),
        ("canvas_select", {"nodeIds": ["n"] * 101}, "Invalid nodeIds"),
        ("canvas_select", {"nodeIds": ["n" * 256]}, "Invalid nodeIds"),
        ("sticky_open", {"text": "a\0b"}, "Invalid text"),
        ("sticky_open", {"text": "a" * 64_001}, "Invalid text"),
        ("guide_read", {"topic": "other"}, "Invalid topic"),
    ]
    for operation, args, error in cases:
        status, result = exchange(host.port(), request(call_body(operation, args), host.token()))
        assert (status, result) == (400, {"ok": False, "error": error})


def test_the_browser_is_off_and_says_so_plainly(host):
    assert host.call("browser_list")["error"].startswith("This host has no browser.")
    offered = host.value("session_info")["operations"]
    assert not [name for name in offered if name.startswith("browser_")]


def test_eight_clients_at_once_all_get_their_answers(host):
    port, body = host.port(), request(INFO, host.token())
    results: list[tuple[int, dict]] = []

    def client() -> None:
        results.extend(exchange(port, body) for _ in range(25))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [status for status, _ in results] == [200] * 200


def test_a_slow_request_holds_up_nobody_else(host):
    with socket.create_connection(("127.0.0.1", host.port()), timeout=30) as slow:
        slow.sendall(b"POST /call HTTP/1.1\r\n")
        assert host.value("session_info")["nodeId"].startswith("cli-")


def test_idle_strangers_keep_nobody_out_and_nobody_who_has_a_token_is_dropped_for_them(host):
    half = request(INFO, host.token())[:-1]
    with contextlib.ExitStack() as opened:

        def connect() -> socket.socket:
            return opened.enter_context(socket.create_connection(("127.0.0.1", host.port()), timeout=30))

        known = connect()
        known.sendall(half)
        strangers = [connect() for _ in range(300)]
        assert host.value("session_info")["nodeId"].startswith("cli-")
        assert strangers[0].recv(100) == b""  # the oldest had to go
        known.sendall(INFO[-1:])
        assert known.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_calls_that_come_together_are_all_answered_however_few_have_a_place_at_once(ctl, tmp_path, hermetic_env):
    # A soft limit of descriptors that is low is common: 256 on macOS.
    (tmp_path / "start").write_text(f'#!/bin/sh\nulimit -Sn 64\nexec {ctl} "$@"\n')
    (tmp_path / "start").chmod(0o755)
    running = RunningHost(str(tmp_path / "start"), tmp_path, {**hermetic_env, "HOME": str(tmp_path)})
    try:
        running.start()
        port, whole = running.port(), request(INFO, running.token())

        def answer(_) -> bytes:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(whole)
                return client.recv(12)

        with ThreadPoolExecutor(60) as clients:
            assert set(clients.map(answer, range(120))) == {b"HTTP/1.1 200"}
    finally:
        running.stop()


def test_a_connection_that_lost_its_place_runs_nothing(host):
    whole = request(call_body("sticky_open", {"text": "too late"}), host.token())
    with contextlib.ExitStack() as opened:

        def connect() -> socket.socket:
            return opened.enter_context(socket.create_connection(("127.0.0.1", host.port()), timeout=30))

        late = connect()
        late.sendall(whole[:40])
        for _ in range(300):
            connect()
        host.value("session_info")
        with contextlib.suppress(ConnectionError):  # how the end shows depends on who is first
            late.sendall(whole[40:])
            assert late.recv(65536) == b""
    assert "too late" not in json.dumps(host.value("canvas_list"))


def received(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_who_asks_for_it_hears_that_a_call_has_begun_and_only_waits_and_nobody_else_does(host):
    node = host.value("terminal_open")["nodeId"]
    wait = call_body("terminal_wait", {"nodeId": node, "idleMs": 1, "timeoutMs": 5000})
    plain = received(host.port(), request(wait, host.token()))
    assert plain.startswith(b"HTTP/1.1 200 ")
    asked = received(host.port(), request(wait, host.token(), extra=b"prefer: processing\r\n"))
    interim, _, answer = asked.partition(b"\r\n\r\n")
    assert interim == b"HTTP/1.1 102 Processing"
    assert answer.startswith(b"HTTP/1.1 200 ")
    at_once = received(host.port(), request(INFO, host.token(), extra=b"prefer: processing\r\n"))
    assert at_once.startswith(b"HTTP/1.1 200 ")


# The host's own socket, to which a port of another machine may lead


def test_the_socket_answers_as_the_port_does_and_is_private(host):
    path = DataPaths(str(host.data)).host_socket()
    body = b'{"operation": "session_info", "args": {}}'
    assert exchange_by_socket(path, request(body, host.token())) == exchange(host.port(), request(body, host.token()))
    assert exchange_by_socket(path, request(body, "0" * 64)) == (401, REVOKED)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (b"127.0.0.1:1", 200),
        (b"localhost:65000", 200),
        (b"127.0.0.1", 200),
        (b"evil.example:1", 403),
        (b"evil.example", 403),
        (b"127.0.0.1:1:1", 403),
        (b"127.0.0.1:x", 403),
    ],
)
def test_a_request_over_the_socket_names_loopback_with_the_port_that_leads_to_it(name, status, host):
    data = request(b'{"operation": "session_info", "args": {}}', host.token()).replace(
        b"host: 127.0.0.1\r", b"host: %s\r" % name
    )
    assert exchange_by_socket(DataPaths(str(host.data)).host_socket(), data)[0] == status


def test_the_socket_of_a_killed_host_makes_room_and_an_ended_host_leaves_none(host):
    path = DataPaths(str(host.data)).host_socket()
    os.kill(json.loads(host.run("host", "status", "--json", "--data", str(host.data)).stdout)["pid"], signal.SIGKILL)
    assert os.path.exists(path)
    host.start()
    assert exchange_by_socket(path, request(b'{"operation": "session_info", "args": {}}', host.token()))[0] == 200
    host.stop()
    assert not os.path.exists(path)
