"""Hostile answers of a server to one call: always one result of the contract, never the token, never an exception."""

from __future__ import annotations

import json
import os
import re
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile
from support.jsonrpc_model import strict
from support.scripted_server import ScriptedServer
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.app import transport
from termsprawlctl.base import jsontext

MARK = TOKEN[:8]  # in the corpus, @TOKEN@ stands for the whole of it
FAILURE = re.compile(
    r"Tool connection unavailable: \S.*\. Check that termsprawl is running\. Mutations are not automatically retried\.",
    re.DOTALL,
)
AMPLE_S = 60
SHORT_S = 0.15
EARLY_BYTES = 5 << 20  # more than the buffers of a connection hold


class Server:
    """Plays pieces of bytes to each connection, then an end: close, reset, keep.

    Or "early": the pieces come while the client still sends, and nobody reads what it sends.
    """

    def __init__(self, root) -> None:
        self._pieces: list[bytes] = []
        self._end = "close"
        self._returned, self._played = threading.Event(), threading.Event()
        self.scripted = ScriptedServer(self._play, receive_buffer=4096)
        self._files = SessionFiles(root, self.scripted.port)

    def result(self, pieces: list[bytes], end: str = "close") -> dict:
        """What a call makes of it; the shape is checked, and that the token went out once and comes back never."""
        self._pieces, self._end = pieces, end
        self._returned.clear()
        self._played.clear()
        connections, requests = self.scripted.connections, len(self.scripted.requests)
        deadline_s = SHORT_S if end == "keep" else AMPLE_S
        args = {"text": "x" * EARLY_BYTES} if end == "early" else {}
        result = transport.call(str(self._files.session), "canvas_list", args, deadline_s=deadline_s)
        self._returned.set()
        assert self._played.wait(AMPLE_S)
        assert self.scripted.connections == connections + 1
        tokens = [request.headers["authorization"] for request in self.scripted.requests[requests:]]
        assert tokens == ([] if end == "early" else [f"Bearer {TOKEN}"]) or (end == "keep" and not tokens)
        for text in (jsontext.pretty(result), jsontext.compact(result), repr(result)):
            assert not hostile.shows(TOKEN, jsontext.encode(text))
        assert result["ok"] is True or (result["ok"] is False and isinstance(result["error"], str))
        return result

    def _play(self, connection) -> None:
        try:
            self._play_to(connection)
        finally:
            self._played.set()

    def _play_to(self, connection) -> None:
        if self._end == "early":
            connection.read_head()
        else:
            connection.read_request()
        for piece in self._pieces:
            connection.send(piece)
        if self._end == "reset":
            connection.reset()
        elif self._end == "early":
            connection.sock.shutdown(socket.SHUT_WR)
            self._returned.wait(AMPLE_S)
        elif self._end == "keep":
            connection.wait_for_hangup()


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    with made.scripted:
        yield made


def is_failure(result: dict) -> bool:
    return list(result) == ["ok", "error"] and result["ok"] is False and bool(FAILURE.fullmatch(result["error"]))


def expected(body: bytes) -> object:
    """The tool result that a whole body is, None where it is none; the token in it is not taken out."""
    try:
        value = strict(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    good = value.get("ok") is True or (value.get("ok") is False and isinstance(value.get("error"), str))
    return value if good else None


# --- bodies -------------------------------------------------------------------------------

secrets = st.sampled_from(
    [
        TOKEN,
        TOKEN * 2,
        f"Bearer {TOKEN}\\r\\n",
        "".join(f"\\u{ord(character):04x}" for character in TOKEN),
        TOKEN[:-1] + f"\\u00{ord(TOKEN[-1]):02X}",
    ]
)
texts = st.builds(json.dumps, hostile.any_text)
strings = hostile.mostly(texts, secrets.map('"{}"'.format), 1)
results = hostile.object_texts(
    ok=st.sampled_from(["true", "false", "true", "false", "1", "null", '"true"']),
    value=hostile.value_texts | st.lists(strings, max_size=3).map(lambda items: "[" + ",".join(items) + "]"),
    error=strings,
)
plain = st.builds(
    lambda ok, name, text: f'{{"ok": {ok}, "{name}": {text}}}',
    st.sampled_from(["true", "false"]),
    st.sampled_from(["value", "error"]),
    strings,
)
bodies = hostile.mostly(hostile.encoded(plain), hostile.mostly(hostile.encoded(results), hostile.json_bytes, 1), 2)

# --- frames around them -------------------------------------------------------------------

statuses = st.sampled_from([b"200 OK", b"400 Bad Request", b"401 ", b"500", b"200 " + TOKEN.encode(), b"599 \xff"])
names = st.sampled_from([b"x", b"", b"X-Y", b"server", b"content-type", b"location", b"\xe9", b"set-cookie", b"x y"])
field_values = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"", TOKEN.encode(), b"0", b"chunked", b"x" * 3000, b"http://127.0.0.1:1/"]),
)
junk = st.one_of(
    st.builds(lambda name, value: name + b":" + value, names, field_values),
    st.builds(lambda value: b" content-length: " + value, field_values),
    st.sampled_from([b"no colon", b"\tfolded", b":", b"\x00", b"content-length 5", b"xcontent-length: 1"]),
).map(lambda line: line.replace(b"\n", b"").replace(b"\r", b""))


@st.composite
def whole_answers(draw) -> tuple[bytes, bytes]:
    """(answer, body): HTTP that is right, however odd it looks, around any body."""
    body = draw(bodies)
    fields = draw(st.lists(junk, max_size=6))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if framing == "length":
        field, data = draw(st.sampled_from([b"content-length: %d", b"CONTENT-Length:\t%d  "])) % len(body), body
    elif framing == "chunked":
        field, data = draw(st.sampled_from([b"transfer-encoding: chunked", b"Transfer-Encoding:Chunked"])), b""
        for chunk in draw(hostile.cuts(body)):
            data += draw(st.sampled_from([b"%x\r\n", b"0%X\r\n", b"%x;a=b\r\n"])) % len(chunk) + chunk + b"\r\n"
        data += draw(st.sampled_from([b"0\r\n\r\n", b"000;x\r\n\r\n", b"0\r\ntrailer: 1\r\nno colon\r\n\r\n"]))
    else:
        field, data = b"connection: close", body
    fields.insert(draw(st.integers(0, len(fields))), field)
    if fields[0][:1] in (b" ", b"\t"):
        fields.insert(0, b"x: y")  # nothing to continue yet
    fields = [one for one in fields if one.strip()]
    interim = draw(st.sampled_from([b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 x\r\na: b\r\n\r\n" * 3]))
    end = draw(st.sampled_from([b"\r\n", b"\n"]))
    head = b"HTTP/1.1 " + draw(statuses) + end + b"".join(one + end for one in fields) + end
    return interim + head + data, body


lengths = st.sampled_from([b"-1", b"+3", b"0x3", b"3_0", b"", b"3,3", b"1e3", b"9" * 30, b"9" * 5000, b"\xb2", b"3 3"])
sizes = st.sampled_from(
    [b"-5", b"", b"zz", b"0x5", b"5_0", b"f" * 30, b"+5", b" 5 ", b"f" * 70_000, b"5;" + b"x" * 9000]
)
heads = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK", b"HTTP/1.0 200", b"HTTP/0.9 200", b"HTTP/2 200 OK", b"HTTP/1.1 -200 x", b"HTTP/1.1 200x"),
        *(
            b"http/1.1 200 ok",
            b"HTTP/1.1  200",
            b"HTTP/1.1",
            b"",
            b"\0",
            b"200 OK",
            b"HTTP/1.1 204 x",
            b"HTTP/1.1 304 x",
        ),
        *(b"HTTP/1.1 101 x", b"HTTP/1.1 302 " + TOKEN.encode(), b"HTTP/9.9 999 " + b"x" * 70_000, b"HTTP/1.1 1000 x"),
    ]
)


@st.composite
def broken_answers(draw) -> bytes:
    """Bytes that nearly are an answer."""
    if draw(st.booleans()):
        return draw(hostile.damaged(whole_answers().map(lambda pair: pair[0])))
    body = draw(bodies)
    field = st.one_of(
        junk,
        lengths.map(b"content-length: ".__add__),
        st.just(b"content-length: %d" % len(body)),
        st.sampled_from(
            [b"transfer-encoding: chunked", b"transfer-encoding: gzip, chunked", b"content-encoding: gzip"]
        ),
    )
    fields = draw(st.lists(field, max_size=4)) * draw(st.sampled_from([1, 1, 1, 30, 400]))
    chunk = draw(st.sampled_from([b"", draw(sizes) + b"\r\n"]))
    return b"\r\n".join([draw(heads), *fields, b"", chunk + body])


ends = st.sampled_from(["close"] * 8 + ["early"])


@given(whole_answers().flatmap(lambda pair: st.tuples(hostile.cuts(pair[0]), st.just(pair[1]))), ends)
def test_a_whole_answer_is_taken_for_what_its_body_says(server, pair, end):
    pieces, body = pair
    result, meant = server.result(pieces, end), expected(body)
    if meant is None:
        assert is_failure(result)
    elif hostile.shows(MARK, body):
        assert (
            "[token removed]" in json.dumps(result) or is_failure(result) or not hostile.shows(TOKEN, json.dumps(meant))
        )
    else:
        assert result == meant


@given(broken_answers() | hostile.binary, st.sampled_from(["close"] * 12 + ["reset", "reset", "early", "keep"]))
def test_anything_else_becomes_one_result_of_the_contract(server, data, end):
    descriptors = len(os.listdir("/dev/fd"))
    result = server.result([data], end)
    assert is_failure(result) or expected(json.dumps(result).encode()) is not None
    if end == "keep" and b"HTTP" not in data:
        assert is_failure(result)
    assert len(os.listdir("/dev/fd")) <= descriptors + 1  # the server's end may be open a moment longer


@pytest.mark.parametrize("path", corpus.entries("http_answers"), ids=corpus.name)
def test_the_corpus_becomes_results_of_the_contract(server, path):
    # A file that ends in a line of its own, "= RESULT", says what has to become of it.
    data, _, meant = path.read_bytes().replace(b"@TOKEN@", TOKEN.encode()).partition(b"\n= ")
    result = server.result([data])
    if meant:
        assert result == json.loads(meant)
    else:
        assert is_failure(result)
