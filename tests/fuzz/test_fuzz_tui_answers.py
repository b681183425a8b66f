"""What an endpoint may hold and answer to the adapter: an answer of the contract comes out, and nothing else."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import subprocess
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import corpus, hostile
from support.mcp_client import McpServer
from support.tui_endpoint import (
    APPLIED,
    CONTEXT,
    GENERATION,
    INSTANCE,
    MEMBERS,
    SELECT,
    TOKEN,
    VIEW,
    FakeEndpoint,
    line,
)
from support.waiting import PATIENCE_S

from termsprawlctl.base import jsontext
from termsprawlctl.share import client, endpoint, wire
from termsprawlctl.share.adapter import TuiProvider

EXAMPLES = settings.default.max_examples
GET = wire.GetViewContext()
SELECTION = wire.select_request(SELECT)
# No honest answer has one of these; JSON's escapes of them do no harm.
RAW_CONTROLS = [*range(0x20), 0x7F]


class HostileEndpoint(FakeEndpoint):
    """Says what `answer` holds to whoever comes, and goes as `departure` says."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.answer: list[bytes] = []
        self.departure = "close"
        self.reads = True  # the request, before it answers
        self.listener.settimeout(None)
        self._thread = threading.Thread(target=self._serve_all, daemon=True)
        self._thread.start()

    def _serve_all(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(PATIENCE_S)
                self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        received = b""
        while self.reads and not received.endswith(b"\n"):
            chunk = connection.recv(65536)
            if not chunk:
                break
            received += chunk
        for piece in self.answer:
            connection.sendall(piece)
        if self.departure == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self.departure == "stay":
            while connection.recv(65536):
                pass

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        super().close()


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    made = HostileEndpoint(tmp_path_factory.mktemp("e"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def honest_again(fake):
    yield
    fake.write(MEMBERS)
    fake.answer, fake.departure, fake.reads = [line(CONTEXT)], "close", True
    assert client.call(fake.path, GET) == CONTEXT


# --- strategies -----------------------------------------------------------------------------

views = hostile.objects_with(
    instanceId=hostile.values_beside(INSTANCE, INSTANCE, GENERATION, INSTANCE + "\n"),
    generation=hostile.values_beside(GENERATION, GENERATION, INSTANCE),
    revision=hostile.values_beside(0, 3, -1, True, 3.0, 10**999),
    route=hostile.values_beside("home", "session", "Home"),
    sessionId=hostile.values_beside("ses_a", "ses_", "ses_\x1b[2J", "ses_a\n"),
    ready=hostile.values_beside(True, False, 0),
    blocked=hostile.values_beside(True, False, None),
)
answers = st.builds(
    lambda answer, more: {**answer, **more},
    hostile.objects_with(
        status=hostile.values_beside("context", "applied", "rejected", ["context"]),
        context=st.just(VIEW) | views | st.builds(lambda more: {**VIEW, **more}, views) | hostile.json_values,
        code=hostile.values_beside("busy", "revoked", "Busy", {"busy": 1}),
    ),
    st.just({}) | st.just({"token": TOKEN}),
)
honest = st.sampled_from([CONTEXT, APPLIED, wire.rejected(wire.BUSY)])
answer_lines = st.builds(
    lambda value, end: hostile.dump(value).encode() + end,
    honest | answers | hostile.json_values,
    st.sampled_from([b"\n", b"\n", b"\n", b"", b"\n\n", b"\r\n", b"\n{}\n", b"\n\0"]),
)
padded = st.builds(
    lambda value, size: hostile.dump(value).encode() + b" " * size + b"\n",
    honest,
    st.sampled_from([1, 15_000, wire.MAX_FRAME_BYTES, 100_000]),
)
answered = answer_lines | answer_lines | padded | hostile.damaged(answer_lines) | hostile.json_bytes | hostile.binary
departures = st.sampled_from(["close", "close", "reset"])


def check_answer(answer: dict, request) -> None:
    """That it is one of the contract, which an honest endpoint could have given."""
    assert wire.parse_answer(wire.encode(answer), request) == answer
    if "context" in answer:
        assert (answer["context"]["instanceId"], answer["context"]["generation"]) == (INSTANCE, GENERATION)
    text = jsontext.compact(answer)
    assert not hostile.shows(TOKEN, text)
    assert not any(chr(code) in text for code in RAW_CONTROLS)


@pytest.mark.parametrize("path", corpus.entries("tui_answers"), ids=corpus.name)
@pytest.mark.parametrize("request_", [GET, SELECTION], ids=["get", "select"])
def test_an_answer_that_once_was_odd_is_told_as_a_rejection(fake, path, request_):
    fake.answer, fake.departure, fake.reads = [path.read_bytes()], "close", True
    answer = client.call(fake.path, request_)
    check_answer(answer, request_)
    assert answer["status"] == "rejected"


@given(answered.flatmap(hostile.cuts), departures, st.booleans(), st.sampled_from([GET, SELECTION]))
def test_whatever_an_endpoint_answers_the_call_has_an_answer_of_the_contract(fake, pieces, departure, reads, request_):
    fake.answer, fake.departure, fake.reads = pieces, departure, reads
    check_answer(client.call(fake.path, request_), request_)


@settings(max_examples=max(3, EXAMPLES // 20))
@given(answered.flatmap(hostile.cuts), st.sampled_from([GET, SELECTION]))
def test_an_endpoint_that_never_closes_holds_a_call_no_longer_than_its_deadline(fake, pieces, request_):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client, "DEADLINE_S", 0.3)
        patched.setattr(client, "CLOSING_S", 0.1)
        fake.answer, fake.departure, fake.reads = pieces, "stay", True
        check_answer(client.call(fake.path, request_), request_)


# --- the endpoint's file --------------------------------------------------------------------

files = (
    hostile.encoded(
        hostile.object_texts(
            version=st.sampled_from(["1", "1.0", "true", '"1"', "2", "01"]),
            instanceId=st.sampled_from([json.dumps(INSTANCE), json.dumps(INSTANCE + "\n"), json.dumps("x")]),
            generation=st.sampled_from([json.dumps(GENERATION), "null"]),
            token=st.sampled_from([json.dumps(TOKEN), json.dumps(TOKEN.upper()), json.dumps(TOKEN[:-1] + "\u0660")]),
        )
    )
    | hostile.damaged(st.just(json.dumps(MEMBERS).encode()))
    | hostile.json_bytes
)


def check_refused_or_right(data: bytes) -> None:
    try:
        members = endpoint.parse(data)
    except endpoint.EndpointError as error:
        text = str(error)
        assert TOKEN not in text
        assert len(text) < 300
        assert text.isprintable()
        return
    assert wire.is_uuid(members.instance_id)
    assert wire.is_uuid(members.generation)
    assert len(members.token) == 64
    assert set(members.token) <= set("0123456789abcdef")


@given(files)
def test_a_file_is_taken_as_it_should_be_or_refused_in_plain_words_without_its_token(data):
    check_refused_or_right(data)


@pytest.mark.parametrize("path", corpus.entries("tui_endpoint_files"), ids=corpus.name)
def test_a_file_that_once_was_odd_makes_every_call_unavailable(fake, path):
    data = path.read_bytes()
    check_refused_or_right(data)
    fake.write(data)
    assert client.call(fake.path, GET) == wire.rejected(wire.TARGET_UNAVAILABLE)


# --- the tools ------------------------------------------------------------------------------

tool_arguments = (
    st.just(SELECT)
    | st.builds(
        lambda more: {**SELECT, **more},
        hostile.objects_with(
            requestId=hostile.values_beside(SELECT["requestId"]),
            instanceId=hostile.values_beside(INSTANCE, GENERATION),
            generation=hostile.values_beside(GENERATION),
            expectedRevision=hostile.values_beside(0, 3, 3.0, 10**999, -1),
            sessionId=hostile.values_beside("ses_a", "ses_" + "a" * 17_000),
        ),
    )
    | hostile.json_objects
    | st.just({})
)


@given(st.sampled_from(["get_view_context", "select_session"]) | hostile.any_text, tool_arguments, answered)
def test_a_tool_given_anything_answers_in_its_own_form_and_sends_one_whole_frame_or_none(fake, name, arguments, answer):
    fake.answer, fake.departure, fake.reads = [answer], "close", True
    result = TuiProvider(fake.path).call(name, arguments, client.Context())
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]
    assert result["isError"] == (result["structuredContent"]["status"] == "rejected")
    check_answer(result["structuredContent"], SELECTION if name == "select_session" else GET)


def test_the_adapter_outlives_every_odd_answer_and_file_and_shows_no_token(ctl, fake, hermetic_env):
    fake.write(MEMBERS)
    with McpServer([ctl, "mcp", "tui", "--endpoint", fake.path], hermetic_env) as server:
        server.initialize()
        said = []
        for path in corpus.entries("tui_answers"):
            fake.answer = [path.read_bytes()]
            said.append(server.answer_to(server.call("get_view_context"))["result"])
        for path in corpus.entries("tui_endpoint_files"):
            fake.write(path.read_bytes())
            said.append(server.answer_to(server.call("get_view_context"))["result"])
        assert {result["structuredContent"]["status"] for result in said} == {"rejected"}
        fake.write(MEMBERS)
        fake.answer = [line(CONTEXT)]
        assert server.answer_to(server.call("get_view_context"))["result"]["structuredContent"] == CONTEXT
        server.close()
        assert server.exit_status() == 0
        assert not hostile.shows(TOKEN, json.dumps(said) + server.log())
        assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    "name", ["escape-sequences", "another-instance", "code-of-escape-sequences", "token-as-session-id", "nothing"]
)
@pytest.mark.parametrize("words", [["context"], ["select", "ses_a"]], ids=["context", "select"])
def test_no_odd_answer_reaches_a_persons_screen(ctl, fake, hermetic_env, name, words):
    (path,) = [path for path in corpus.entries("tui_answers") if path.name == name]
    fake.answer, fake.departure, fake.reads = [path.read_bytes()], "close", True
    argv = [ctl, "tui", *words, "--endpoint", fake.path]
    done = subprocess.run(argv, env=hermetic_env, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "rejected"
    printed = done.stdout + done.stderr
    assert b"\x1b" not in printed
    assert not hostile.shows(TOKEN, printed)
