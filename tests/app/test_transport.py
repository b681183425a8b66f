"""One call over loopback HTTP, against servers that answer well, badly, late or not at all."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import socket
import subprocess
import threading

import pytest
from support import sockets
from support.scripted_server import ScriptedServer, Trap, answer, replying, unused_port
from support.seccomp import run_without
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.app import transport

GOOD = {"ok": True, "value": {"n": 1}}
FAILURE = re.compile(
    r"Tool connection unavailable: (?P<reason>.+)\. Check that termsprawl is running\. "
    r"Mutations are not automatically retried\.",
    re.DOTALL,
)
# A deadline that no healthy exchange on this machine meets, and one for exchanges that have to
# run into it.
AMPLE_S = 60
SHORT_S = 0.4


def reason_of(result: dict) -> str:
    """The reason in a transport failure, whose shape is checked to the letter."""
    assert list(result) == ["ok", "error"]
    assert result["ok"] is False
    match = FAILURE.fullmatch(result["error"])
    assert match, result["error"]
    assert TOKEN not in result["error"]
    return match["reason"]


def ask(files: SessionFiles, operation: str | None = "canvas_list", args: object = None, deadline_s: float = AMPLE_S):
    return transport.call(str(files.session), operation, args, deadline_s=deadline_s)


def exchange(tmp_path, script, *, args: object = None, deadline_s: float = AMPLE_S, **options) -> dict:
    """One call against one script; there is exactly one connection, because nothing is ever retried."""
    with ScriptedServer(script, **options) as server:
        result = ask(SessionFiles(tmp_path, server.port), args=args, deadline_s=deadline_s)
    assert server.connections == 1
    return result


# What is sent


def test_the_request_is_the_contracts_to_the_letter(tmp_path):
    with ScriptedServer(replying(answer(GOOD))) as server:
        assert ask(SessionFiles(tmp_path, server.port), "terminal_read", {"nodeId": "n-1", "maxChars": 20}) == GOOD
    (request,) = server.requests
    assert request.line == "POST /call HTTP/1.1"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"
    assert "origin" not in request.headers
    assert request.json == {"operation": "terminal_read", "args": {"nodeId": "n-1", "maxChars": 20}}


def test_a_small_request_arrives_in_one_piece(tmp_path):
    pieces = []

    def script(connection):
        pieces.append(connection.sock.recv(65536))
        connection.send(answer(GOOD))

    for _ in range(5):  # two pieces can be there at once, by chance
        assert exchange(tmp_path, script, args={"nodeId": "n-1"}) == GOOD
    assert all(piece.endswith(b'"nodeId":"n-1"}}') for piece in pieces)


def test_a_call_without_an_operation_is_sent_without_that_key(tmp_path):
    with ScriptedServer(replying(answer({"ok": False, "error": "Unknown operation"}))) as server:
        result = transport.call(str(SessionFiles(tmp_path, server.port).session))
    assert result == {"ok": False, "error": "Unknown operation"}
    assert server.requests[0].json == {"args": {}}


@pytest.mark.parametrize("args", [[], "text", 7, True, {"deep": [[[{}]]]}])
def test_any_json_value_goes_out_as_args_because_the_app_is_the_judge(tmp_path, args):
    with ScriptedServer(replying(answer(GOOD))) as server:
        ask(SessionFiles(tmp_path, server.port), args=args)
    assert server.requests[0].json["args"] == args


def test_text_goes_out_as_utf_8_and_not_six_times_as_long(tmp_path):
    # The app takes 128 KiB, so 64,000 characters of two bytes each have to fit.
    text = "é" * 64_000
    with ScriptedServer(replying(answer(GOOD))) as server:
        ask(SessionFiles(tmp_path, server.port), args={"text": text})
    assert len(server.requests[0].body) < 128 << 10
    assert server.requests[0].json["args"] == {"text": text}


def test_a_lone_surrogate_goes_out_as_the_escape_it_was(tmp_path):
    with ScriptedServer(replying(answer(GOOD))) as server:
        assert ask(SessionFiles(tmp_path, server.port), args={"text": "a\ud800é"}) == GOOD
    assert server.requests[0].json["args"] == {"text": "a\ud800é"}


@pytest.mark.parametrize("query", ["?", "?a=b", "?v=1&x=%20/../@evil.com:80//", '?q="<>|^`{}~!$*'])
def test_a_query_string_is_sent_as_it_is(tmp_path, query):
    with ScriptedServer(replying(answer(GOOD))) as server:
        files = SessionFiles(tmp_path, url=f"http://127.0.0.1:{server.port}/call{query}")
        assert ask(files) == GOOD
    assert server.requests[0].line == f"POST /call{query} HTTP/1.1"


def test_both_files_are_read_again_for_every_call(tmp_path):
    # An app that restarted: another port, another token, the same paths.
    with ScriptedServer(replying(answer(GOOD))) as first, ScriptedServer(replying(answer(GOOD))) as second:
        files = SessionFiles(tmp_path, first.port)
        assert ask(files) == GOOD
        files.write_endpoint(second.port)
        files.write_session("f" * 64)
        assert ask(files) == GOOD
    assert [request.headers["authorization"] for request in first.requests] == [f"Bearer {TOKEN}"]
    assert [request.headers["authorization"] for request in second.requests] == ["Bearer " + "f" * 64]


# What comes back


@pytest.mark.parametrize(
    "status", ["200 OK", "400 Bad Request", "401 No", "403 No", "404 No", "413 No", "500 No", "200"]
)
def test_the_body_is_the_answer_whatever_the_status_says(tmp_path, status):
    refusal = {"ok": False, "error": "Unknown or revoked session"}
    assert exchange(tmp_path, replying(answer(refusal, status))) == refusal


@pytest.mark.parametrize(
    "result",
    [
        {"ok": True},
        {"ok": True, "value": None},
        {"ok": True, "value": [1, "é", {"a": None}], "more": 1},
        {"ok": False, "error": ""},
        {"ok": False, "error": "é\n"},
    ],
)
def test_a_tool_result_comes_back_unchanged(tmp_path, result):
    assert exchange(tmp_path, replying(answer(result))) == result


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"<html>busy</html>",
        b"[]",
        b'"ok"',
        b"null",
        b"true",
        b"{}",
        b'{"ok": 1}',
        b'{"ok": "true"}',
        b'{"ok": null, "error": "x"}',
        b'{"ok": false}',
        b'{"ok": false, "error": 5}',
        b'{"ok": false, "error": null}',
        b'{"value": 1}',
        b'[{"ok": true}]',
        b'{"ok": true, "value": NaN}',
        b'{"ok": true, "value": Infinity}',
        b'{"ok": true, "value": -Infinity}',
        b'{"ok": true, "value": 1e999}',
        b'{"ok": true, "value": ' + b"9" * 5000 + b"}",
        b'{"ok": true, "value": "\xff\xfe"}',
        '{"ok": true}'.encode("utf-16"),
        b'{"ok": true} {"ok": true}',
        b'{"ok": true, "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"ok": true, "value": "' + b"\x01" + b'"}',
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_is_no_tool_result_is_a_failure(tmp_path, body):
    assert re.match(r"the answer is not (JSON|a tool result)", reason_of(exchange(tmp_path, replying(answer(body)))))


def test_a_byte_order_mark_is_skipped(tmp_path):
    assert exchange(tmp_path, replying(answer(b'\xef\xbb\xbf{"ok": true}'))) == {"ok": True}


def test_a_lone_surrogate_in_an_answer_is_kept(tmp_path):
    body = b'{"ok": true, "value": "a\\ud83d"}'
    assert exchange(tmp_path, replying(answer(body))) == {"ok": True, "value": "a\ud83d"}


def test_a_server_that_echoes_the_token_does_not_get_it_printed(tmp_path):
    echo = {"ok": False, "error": f"bad token {TOKEN}", "token": TOKEN}
    result = exchange(tmp_path, replying(answer(echo)))
    assert result["ok"] is False
    assert TOKEN not in json.dumps(result)


def as_escapes(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


@pytest.mark.parametrize(
    "body",
    [
        '{"ok": false, "error": "bad TOKEN"}'.replace("TOKEN", as_escapes(TOKEN)),
        '{"ok": false, "error": "bad TOKEN"}'.replace("TOKEN", TOKEN[:63] + as_escapes(TOKEN[63])),
        '{"ok": true, "value": [{"TOKEN": [["TOKEN"]]}]}'.replace("TOKEN", as_escapes(TOKEN[0]) + TOKEN[1:]),
        '{"ok": true, "value": "TOKENTOKEN", "value": "\\ud800TOKEN"}'.replace("TOKEN", as_escapes(TOKEN)),
    ],
)
def test_a_token_behind_escapes_is_not_printed_either(tmp_path, body):
    result = exchange(tmp_path, replying(answer(body.encode())))
    assert TOKEN not in json.dumps(result)
    assert "[token removed]" in json.dumps(result)


def test_a_token_that_json_has_to_escape_is_not_printed_either(tmp_path):
    token = '"quoted"\\and/slashed' * 2
    body = {"ok": False, "error": f"bad token {token}"}
    for data in (json.dumps(body), json.dumps(body).replace("/", "\\/")):
        with ScriptedServer(replying(answer(data.encode()))) as server:
            result = ask(SessionFiles(tmp_path, server.port, token=token))
        assert result == {"ok": False, "error": "bad token [token removed]"}


def test_what_only_looks_like_a_token_comes_back_unchanged(tmp_path):
    result = {"ok": True, "value": ['a\n\\u0035"' + TOKEN[1:], "\ud83d", 1.5, {"é": TOKEN[:-1]}]}
    assert exchange(tmp_path, replying(answer(result))) == result


# Framing


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + parts + end


def test_a_chunked_answer_is_put_together(tmp_path):
    data = chunked(b'{"ok"', b": true, ", b'"value": {"n": 1}}', end=b"0;x=y\r\ntrailer: 1\r\n\r\n")
    assert exchange(tmp_path, replying(data)) == GOOD


def test_an_answer_that_ends_with_the_connection_is_read_to_its_end(tmp_path):
    assert exchange(tmp_path, replying(b'HTTP/1.0 200 OK\r\n\r\n{"ok": true, "value": {"n": 1}}')) == GOOD


WHOLE = b'{"ok": true, "value": {"n": 1}}'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(answer(WHOLE)[:-1], id="content-length, last byte missing"),
        pytest.param(answer(WHOLE)[: -len(WHOLE)], id="content-length, no body"),
        pytest.param(answer(GOOD, "200 OK", "content-length: 9999"), id="content-length twice"),
        pytest.param(chunked(WHOLE, end=b""), id="chunked, no end"),
        pytest.param(chunked(WHOLE, end=b"0")[:-1], id="chunked, no end of line"),
        pytest.param(chunked(WHOLE, end=b"")[:-9], id="chunked, cut in a chunk"),
        pytest.param(chunked(end=b"ff"), id="chunked, cut in a size"),
        pytest.param(chunked(end=b""), id="chunked, nothing"),
    ],
)
def test_an_answer_that_is_cut_short_is_never_taken_for_a_whole_one(tmp_path, data):
    if b"9999" in data:
        data = data.replace(b"content-length: 31\r\n", b"")
    assert reason_of(exchange(tmp_path, replying(data))) == "the answer was cut short"


def test_a_close_delimited_answer_that_is_cut_short_is_not_json(tmp_path):
    reason = reason_of(exchange(tmp_path, replying(b'HTTP/1.0 200 OK\r\n\r\n{"ok": true, "val')))
    assert reason.startswith("the answer is not JSON")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x50",
        b'{"ok": true}',
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 99999 x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n",
        chunked(end=b"zz\r\n\r\n"),
        chunked(end=b"-5\r\nabcde\r\n0\r\n\r\n"),
        chunked(end=b"f" * 70_000),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_an_answer_that_is_no_http_is_a_failure(tmp_path, data):
    assert re.match(
        r"the answer (is not HTTP|is not JSON|was cut short)", reason_of(exchange(tmp_path, replying(data)))
    )


@pytest.mark.parametrize(
    "head",
    [
        "CONTENT-LENGTH: 31",
        "content-length:31",
        "content-length: \t31  ",
        "x-first: a\r\n content-length: 3\r\ncontent-length: 31",
        "x-first: a\r\n\tcontent-length: 3\r\ncontent-length: 31",
        "x-first: a\x85content-length: 3\r\ncontent-length: 31",
        "x-first: a\x0bcontent-length: 3\r\ncontent-length: 31",
        "no colon\r\ncontent-length: 31",
        ": nameless\r\ncontent-length: 31",
        "x-é: ü\r\ncontent-length: 31",
        "content-length: 31\r\ncontent-length: 31",
    ],
)
def test_headers_are_read_in_every_legal_spelling_and_junk_among_them_is_ignored(tmp_path, head):
    data = b"HTTP/1.1 200 OK\r\n" + head.encode("iso-8859-1") + b"\r\n\r\n" + WHOLE
    assert len(WHOLE) == 31

    def script(connection):
        connection.read_request()
        connection.send(data)
        connection.wait_for_hangup()  # only the length tells where the answer ends

    assert exchange(tmp_path, script) == GOOD


@pytest.mark.parametrize(
    "fields",
    [
        "content-length: 31\r\ncontent-length: 32",
        "content-length: 32\r\ncontent-length: 31",
        "content-length: 31, 31",
        "content-length: -31",
        "content-length: +31",
        "content-length: 3_1",
        "content-length: \u00b3\u00b9",
        "content-length:",
        "content-length: 31\r\ntransfer-encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: identity",
    ],
)
def test_a_length_that_is_not_clear_is_refused_and_not_guessed(tmp_path, fields):
    data = b"HTTP/1.1 200 OK\r\n" + fields.encode("iso-8859-1") + b"\r\n\r\n" + WHOLE
    assert reason_of(exchange(tmp_path, replying(data))) == "the answer is not HTTP"


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_interim_answers_of_every_number_are_skipped(tmp_path, status):
    interim = b"HTTP/1.1 %d x\r\nlink: y\r\ncontent-length: 5\r\n\r\n" % status
    assert exchange(tmp_path, replying(interim * 3 + answer(GOOD))) == GOOD


def test_a_host_is_asked_to_say_that_a_call_has_begun_only_where_somebody_listens(tmp_path):
    begun = []

    def script(connection):
        connection.read_request()
        connection.send(b"HTTP/1.1 102 Processing\r\n\r\n")
        connection.send(answer(GOOD))

    with ScriptedServer(script) as server:
        session = str(SessionFiles(tmp_path, server.port).session)
        assert transport.call(session, "terminal_run", begun=lambda: begun.append(1)) == GOOD
        assert begun == [1]
        assert transport.call(session, "terminal_run") == GOOD
    assert [request.headers.get("prefer") for request in server.requests] == ["processing", None]


def test_a_connection_that_is_closed_without_a_word_is_a_failure(tmp_path):
    reason = reason_of(exchange(tmp_path, lambda connection: connection.read_request()))
    assert reason == "the server closed the connection without an answer"


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", answer(GOOD)[:-1]], ids=["nothing", "status", "most"])
def test_a_connection_that_is_reset_is_a_failure(tmp_path, sent):
    def script(connection):
        connection.read_request()
        connection.send(sent)
        connection.reset()

    assert re.search(
        r"broke \(Connection reset|cut short|without an answer|not JSON", reason_of(exchange(tmp_path, script))
    )


def test_twenty_megabytes_arrive_whole(tmp_path):
    result = {"ok": True, "value": "é" * (10 << 20)}
    assert exchange(tmp_path, replying(answer(json.dumps(result, ensure_ascii=False).encode()))) == result


@pytest.mark.parametrize("piece", [b"[],", b'{"a":0},', b"[[[]]]," + b" " * 4, b"1,"])
def test_a_large_answer_of_very_many_values_is_dropped_before_it_fills_the_memory(tmp_path, piece):
    body = b'{"ok": true, "value": [' + piece * (transport.DENSE_BYTES // len(piece)) + b"0]}"
    reason = reason_of(exchange(tmp_path, replying(answer(body))))
    assert reason == f"the answer holds more than {transport.MAX_VALUES} values"


def test_a_small_answer_may_hold_as_many_values_as_fit(tmp_path):
    result = {"ok": True, "value": [0] * 600_000}
    assert exchange(tmp_path, replying(answer(result))) == result


@pytest.mark.parametrize("framing", ["content-length", "chunked", "close-delimited"])
def test_an_answer_over_the_cap_is_dropped(tmp_path, monkeypatch, framing):
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)

    def script(connection):
        connection.read_request()
        if framing == "content-length":
            connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n")
        elif framing == "chunked":
            connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        else:
            connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        # Without end: only a client that hangs up ends this.
        for _ in itertools.count():
            block = b" " * 65536
            connection.send(b"10000\r\n%s\r\n" % block if framing == "chunked" else block)

    assert reason_of(exchange(tmp_path, script)) == "the answer is larger than 1 MiB"


def test_the_largest_answer_under_the_cap_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    body = WHOLE + b" " * ((1 << 20) - len(WHOLE))
    assert exchange(tmp_path, replying(answer(body))) == GOOD
    assert exchange(tmp_path, replying(b"HTTP/1.1 200 OK\r\n\r\n" + body)) == GOOD


# Redirects and proxies: the token stays where it is


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308, 399])
def test_a_redirect_is_a_failure_and_is_not_followed(tmp_path, status):
    with Trap() as elsewhere:
        headers = (f"location: http://127.0.0.1:{elsewhere.port}/call", "refresh: 0")
        result = exchange(tmp_path, replying(answer(GOOD, f"{status} Moved", *headers)))
        assert elsewhere.untouched()
    assert reason_of(result) == f"the server answered with a redirect ({status}), and none is followed"


PROXY_VARIABLES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "ftp_proxy")


def test_no_proxy_variable_is_honoured(tmp_path, ctl, hermetic_env):
    with Trap() as proxy, ScriptedServer(replying(answer(GOOD))) as server:
        files = SessionFiles(tmp_path, server.port)
        env = hermetic_env | dict.fromkeys(PROXY_VARIABLES, f"http://user:pass@127.0.0.1:{proxy.port}")
        for no_proxy in ({}, {"no_proxy": ""}, {"NO_PROXY": "example.com", "no_proxy": "example.com"}):
            done = subprocess.run(
                [ctl, "--session", str(files.session), "doctor"], env=env | no_proxy, capture_output=True, check=False
            )
            assert (done.returncode, json.loads(done.stdout)) == (0, GOOD)
        assert proxy.untouched()
    assert len(server.requests) == 3


# The deadline is one for the whole exchange


def trickle(connection, data: bytes, every_s: float = 0.02) -> None:
    for position in range(len(data)):
        connection.send(data[position : position + 1])
        if not connection.client_is_there(every_s):
            return


def silent(connection):
    connection.read_request()
    connection.wait_for_hangup()


def trickled_headers(connection):
    connection.read_request()
    trickle(connection, b"HTTP/1.1 200 OK\r\nx-filler: " + b"y" * 60_000)


def trickled_status(connection):
    connection.read_request()
    trickle(connection, b"HTTP/1.1 200 " + b"O" * 60_000)


def trickled_body(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    trickle(connection, b'{"ok": true, "value": "' + b"y" * 100_000)


def trickled_chunks(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    trickle(connection, b"1\r\n \r\n" * 60_000)


def trickled_to_the_close(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
    trickle(connection, b" " * 60_000)


def endless_interim_answers(connection):
    connection.read_request()
    for _ in itertools.count():
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def interim_answers_now_and_then(connection):
    connection.read_request()
    while connection.client_is_there(0.02):
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def whole_but_kept_open_without_length(connection):
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\n\r\n" + WHOLE)
    connection.wait_for_hangup()


@pytest.mark.parametrize(
    "script",
    [
        silent,
        trickled_status,
        trickled_headers,
        trickled_body,
        trickled_chunks,
        trickled_to_the_close,
        endless_interim_answers,
        interim_answers_now_and_then,
        whole_but_kept_open_without_length,
    ],
)
def test_a_server_that_keeps_the_line_open_is_cut_off_at_the_deadline(tmp_path, script):
    result = exchange(tmp_path, script, deadline_s=SHORT_S)
    assert reason_of(result) == f"no complete answer within {SHORT_S} s"


def test_a_body_that_nobody_reads_is_cut_off_at_the_deadline(tmp_path):
    def script(connection):
        connection.wait_unread()

    result = exchange(tmp_path, script, args={"text": "x" * (16 << 20)}, deadline_s=SHORT_S, receive_buffer=4096)
    assert reason_of(result) == f"no complete answer within {SHORT_S} s"


def test_interim_answers_without_end_to_a_body_that_nobody_reads_are_cut_off(tmp_path):
    def script(connection):
        connection.read_head()
        for _ in itertools.count():
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    result = exchange(tmp_path, script, args={"text": "x" * (16 << 20)}, deadline_s=SHORT_S, receive_buffer=4096)
    assert reason_of(result) == f"no complete answer within {SHORT_S} s"


def test_connecting_counts_into_the_deadline(tmp_path):
    fillers = []
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        try:
            # Fill the queue of connections that nobody accepts.
            while True:
                filler = socket.socket()
                fillers.append(filler)
                filler.settimeout(0.2)
                filler.connect(full.getsockname())
        except OSError:
            pass
        result = ask(SessionFiles(tmp_path, full.getsockname()[1]), deadline_s=SHORT_S)
        for filler in fillers:
            filler.close()
    assert reason_of(result) == f"no complete answer within {SHORT_S} s"


def test_the_deadline_is_45_seconds_unless_a_test_says_otherwise():
    assert transport.call.__kwdefaults__["deadline_s"] == transport.DEADLINE_S == 45


# Answers that come before the request was read

TOO_LARGE = {"ok": False, "error": "Request too large"}
LARGE = {"text": "x" * (8 << 20)}


def answers_and_closes(connection):
    connection.read_head()
    connection.send(answer(TOO_LARGE, "400 Bad Request", "connection: close"))


def answers_and_resets(connection):
    connection.read_head()
    connection.send(answer(TOO_LARGE, "400 Bad Request"))
    connection.sock.shutdown(socket.SHUT_WR)
    # The unread rest of the body turns this close into a reset.


def answers_and_keeps_open(connection):
    connection.read_head()
    connection.send(answer(TOO_LARGE, "400 Bad Request"))
    connection.wait_unread()


def answers_after_some(connection):
    connection.read_head()
    connection.sock.recv(200_000)
    connection.send(answer(TOO_LARGE, "400 Bad Request"))


def interim_then_answers_and_keeps_open(connection):
    connection.read_head()
    connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    connection.sock.recv(65536)
    refusal = answer(TOO_LARGE, "400 Bad Request")
    connection.send(refusal[:5])
    connection.sock.recv(65536)
    connection.send(refusal[5:])
    connection.wait_unread()


@pytest.mark.parametrize(
    "script",
    [
        answers_and_closes,
        answers_and_resets,
        answers_and_keeps_open,
        answers_after_some,
        interim_then_answers_and_keeps_open,
    ],
)
def test_an_answer_to_a_body_that_was_not_read_is_not_lost(tmp_path, script):
    assert exchange(tmp_path, script, args=LARGE, receive_buffer=4096) == TOO_LARGE


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_an_answer_is_read_even_if_sending_broke_before_it_was_seen(tmp_path, monkeypatch, error):
    # Between looking for an answer and sending on, the server may have closed.
    broken = []
    has_broken = threading.Event()

    class Breaking(socket.socket):
        def send(self, data):
            head, end, _ = bytes(data).partition(b"\r\n\r\n")
            if self.family != socket.AF_INET:
                return super().send(data)  # a question to the kernel
            if not end:
                broken.append(data)
                has_broken.set()
                raise error
            return super().send(head + end)

    def script(connection):
        connection.read_head()
        assert has_broken.wait(AMPLE_S)
        connection.send(answer(TOO_LARGE, "400 Bad Request"))

    with ScriptedServer(script) as server:
        files = SessionFiles(tmp_path, server.port)
        monkeypatch.setattr(transport, "socket", sockets.with_class(Breaking))
        assert ask(files) == TOO_LARGE
        monkeypatch.undo()
    assert len(broken) == 1


def test_an_interim_answer_does_not_stop_the_body(tmp_path):
    def script(connection):
        connection.send(b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        connection.read_request()
        connection.send(answer(GOOD))

    assert exchange(tmp_path, script, args=LARGE) == GOOD


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_server_that_goes_while_the_body_is_sent_is_a_failure(tmp_path, ending):
    def script(connection):
        connection.read_head()
        if ending == "reset":
            connection.reset()

    reason = reason_of(exchange(tmp_path, script, args=LARGE, receive_buffer=4096))
    assert re.search(r"without an answer|broke \(", reason)


# Nobody there, or nobody may be reached


def test_a_port_that_nothing_listens_on_is_named_with_the_file_that_names_it(tmp_path):
    port = unused_port()
    files = SessionFiles(tmp_path, port)
    reason = reason_of(ask(files))
    assert reason == f"nothing listens on 127.0.0.1:{port} (connection refused), so {files.endpoint} is out of date"


def test_a_refused_connection_names_the_sandbox_that_has_a_loopback_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_SANDBOX_NETWORK_DISABLED", "1")
    reason = reason_of(ask(SessionFiles(tmp_path, unused_port())))
    assert "CODEX_SANDBOX_NETWORK_DISABLED is set" in reason
    assert "outside the sandbox" in reason


def test_a_port_that_connects_to_itself_counts_as_nobody_listening(tmp_path, monkeypatch):
    # The kernel may hand a connecting socket the very port it connects to; here it is made to.
    class SelfConnecting(socket.socket):
        def connect(self, address):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(address)
            super().connect(address)

    files = SessionFiles(tmp_path, unused_port())
    monkeypatch.setattr(transport, "socket", sockets.with_class(SelfConnecting))
    reason = reason_of(ask(files))
    assert reason.startswith("nothing listens on 127.0.0.1:")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.ENETUNREACH])
@pytest.mark.parametrize("where", ["socket", "connect"])
def test_a_blocked_connection_names_the_sandbox_and_not_the_app(tmp_path, monkeypatch, code, where):
    # Simulated: the kernel's refusals are put into the socket class. The real thing is below.
    class Blocked(socket.socket):
        def __init__(self, *args, **options):
            if where == "socket":
                raise OSError(code, os.strerror(code))
            super().__init__(*args, **options)

        def connect(self, address):
            raise OSError(code, os.strerror(code))

    files = SessionFiles(tmp_path, unused_port())
    monkeypatch.setattr(transport, "socket", sockets.with_class(Blocked))
    reason = reason_of(ask(files))
    assert os.strerror(code) in reason
    assert "a sandbox blocks loopback" in reason
    assert "outside the sandbox" in reason


@pytest.mark.parametrize("name", ["socket", "connect"])
def test_a_real_sandbox_is_named(tmp_path, ctl, hermetic_env, name):
    with Trap() as trap:
        files = SessionFiles(tmp_path, trap.port)
        done = run_without([ctl, "doctor", "--session", str(files.session)], hermetic_env, name)
        assert trap.untouched()
    assert (done.returncode, done.stderr) == (1, b"")
    reason = reason_of(json.loads(done.stdout))
    assert "a sandbox blocks loopback" in reason


# Never an exception


@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, AttributeError, UnicodeDecodeError])
def test_even_a_fault_of_our_own_becomes_the_one_shape_and_quotes_nothing(tmp_path, monkeypatch, fault):
    def broken(*_):
        raise fault("utf-8", TOKEN.encode(), 0, 1, TOKEN) if fault is UnicodeDecodeError else fault(TOKEN)

    monkeypatch.setattr(transport, "_ask", broken)
    with Trap() as trap:
        result = ask(SessionFiles(tmp_path, trap.port))
    assert re.fullmatch(r"internal error \(\w+\)|the answer is not HTTP", reason_of(result))


@pytest.mark.parametrize("args", [float("nan"), {"x": float("inf")}, {1, 2}, object()])
def test_args_that_are_no_json_are_a_failure_and_are_not_sent(tmp_path, args):
    with Trap() as trap:
        assert reason_of(ask(SessionFiles(tmp_path, trap.port), args=args)).startswith("internal error")
        assert trap.untouched()


def test_no_failure_leaves_a_descriptor_open(tmp_path):
    before = len(os.listdir("/dev/fd"))
    for script in (silent, answers_and_keeps_open, replying(b"junk"), replying(answer(GOOD))):
        exchange(tmp_path, script, deadline_s=SHORT_S)
    ask(SessionFiles(tmp_path, unused_port()))
    assert len(os.listdir("/dev/fd")) == before
