"""Hostile session and endpoint files: one result of the contract, and no byte to anybody but the app's own address."""

from __future__ import annotations

import errno
import os
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile, sockets
from support.jsonrpc_model import strict
from support.mcp_client import McpServer
from support.scripted_server import Trap
from support.session_files import TOKEN, SessionFiles

from termsprawlctl.app import discovery, transport
from termsprawlctl.base import jsontext
from termsprawlctl.doctor import checks, session_files

PART = TOKEN[:8]  # no part of the token may be quoted either
FAILURE = re.compile(
    r"Tool connection unavailable: (?P<reason>\S.*)\. Check that termsprawl is running\. "
    r"Mutations are not automatically retried\.",
    re.DOTALL,
)
# In the corpus these stand for a real token and for a port that nothing may connect to.
TOKEN_MARK, PORT_MARK = b"@TOKEN@", b"@PORT@"


def files_in(root: Path, session: bytes, endpoint: bytes) -> SessionFiles:
    made = SessionFiles(root)
    made.session.write_bytes(session)
    made.endpoint.write_bytes(endpoint)
    return made


# --- what they may hold -------------------------------------------------------------------

tokens = st.sampled_from([TOKEN, TOKEN, TOKEN.upper(), "x", '"quoted"\\', "~" * 5000]) | hostile.any_text
session_objects = hostile.objects_with(
    token=hostile.mostly(tokens, hostile.json_values), nodeId=hostile.json_values, status=hostile.json_values
)
session_texts = hostile.mostly(
    st.builds(hostile.dump, session_objects), hostile.object_texts(token=st.just(f'"{TOKEN}"')), 2
)
good_session = st.just(f'{{"nodeId":"n-1","token":"{TOKEN}","status":{{}}}}'.encode())
session_bytes = hostile.mostly(
    hostile.encoded(session_texts), st.one_of(hostile.json_bytes, hostile.damaged(good_session)), 2
)

hosts = st.sampled_from(["127.0.0.1"] * 4 + ["localhost", "127.1", "[::1]", "127.0.0.1.", "0.0.0.0", "a@127.0.0.1", ""])
ports = st.sampled_from(
    ["1", "65535", "00080", "0", "65536", "00000080", "", "-1", "8_0", "+80", "\u0661", "\uff18", "80 "]
)
queries = st.text(st.characters(min_codepoint=32, max_codepoint=127), max_size=8) | hostile.any_text
urls = st.builds(
    lambda scheme, host, port, path, mark, query: f"{scheme}://{host}:{port}{path}{mark}{query}",
    st.sampled_from(["http"] * 5 + ["https", "HTTP", "file", ""]),
    hosts,
    ports,
    st.sampled_from(["/call"] * 5 + ["/CALL", "/call/", "//call", "/call/..", "/", ""]),
    st.sampled_from(["", "?", "?a=", "#", "\n", "\0", "\\"]),
    hostile.mostly(st.just(""), queries, 1),
)
endpoint_objects = hostile.objects_with(url=hostile.mostly(urls, hostile.json_values), instanceId=hostile.json_values)
good_endpoint = st.just(b'{"url":"http://127.0.0.1:4567/call","instanceId":"7b0c1c7e-0000-4000-8000-000000000001"}')
endpoint_bytes = hostile.mostly(
    hostile.encoded(st.builds(hostile.dump, endpoint_objects)),
    st.one_of(hostile.json_bytes, hostile.damaged(good_endpoint), good_endpoint),
    2,
)


# --- what they mean, read a second time ---------------------------------------------------


def object_in(data: bytes) -> dict:
    try:
        value = strict(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def token_in(data: bytes) -> str | None:
    token = object_in(data).get("token")
    visible = isinstance(token, str) and token and all("!" <= character <= "~" for character in token)
    return token if visible else None


def place_in(data: bytes) -> tuple[int, str] | None:
    url = object_in(data).get("url")
    if not isinstance(url, str) or not url.startswith("http://127.0.0.1:"):
        return None
    port, slash, rest = url[len("http://127.0.0.1:") :].partition("/")
    if not slash or not 1 <= len(port) <= 5 or not all(digit in "0123456789" for digit in port):
        return None
    sendable = all("!" <= character <= "~" and character not in "#\\" for character in rest)
    if not 1 <= int(port) <= 65535 or not sendable or (rest != "call" and not rest.startswith("call?")):
        return None
    return int(port), "/" + rest


@pytest.fixture
def attempts(monkeypatch) -> list[tuple]:
    """Every connection is refused; the addresses are kept in here."""
    made: list[tuple] = []

    class Refused(socket.socket):
        def connect(self, address) -> None:
            made.append(address)
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    monkeypatch.setattr(transport, "socket", sockets.with_class(Refused))
    return made


def reason_of(result: dict) -> str:
    assert list(result) == ["ok", "error"]
    assert result["ok"] is False
    for shown in (jsontext.pretty(result), jsontext.compact(result), repr(result)):
        assert not hostile.shows(PART, jsontext.encode(shown))
    match = FAILURE.fullmatch(result["error"])
    assert match, result["error"]
    return match["reason"]


@given(session_bytes, endpoint_bytes)
def test_any_two_files_lead_to_the_app_or_to_a_reason(tmp_path, attempts, session, endpoint):
    made = files_in(tmp_path, session, endpoint)
    token, place = token_in(session), place_in(endpoint)
    attempts.clear()
    reason = reason_of(transport.call(str(made.session), "session_info"))
    if token is None or place is None:
        assert attempts == []
        if token is None:
            assert f"session file {made.session}" in reason
        else:
            assert reason == "Invalid local endpoint" or f"endpoint file {made.endpoint}" in reason
        with pytest.raises(discovery.Unavailable):
            discovery.locate(str(made.session))
    else:
        assert attempts == [("127.0.0.1", place[0])]
        assert reason.startswith(f"nothing listens on 127.0.0.1:{place[0]} ")
        target = discovery.locate(str(made.session))
        assert (target.port, target.request_target, target.token) == (*place, token)


@given(session_bytes, endpoint_bytes)
def test_doctor_explains_any_two_files_and_quotes_no_token(tmp_path, session, endpoint):
    made = files_in(tmp_path, session, endpoint)
    found = session_files.check_session_file(str(made.session))
    more, _, port = session_files.check_endpoint_file(str(made.endpoint))
    place = place_in(endpoint)
    assert port == (place[0] if place else None)
    token = object_in(session).get("token")
    assert any(check.status == checks.FAILED for check in found) is not (isinstance(token, str) and token != "")
    for text in (checks.as_text(found + more, colour=False), jsontext.pretty(checks.as_json(found + more))):
        assert not hostile.shows(PART, text)


@given(hostile.any_text | hostile.any_text.map("/proc/self/{}".format) | st.just("x/" * 3000))
def test_any_path_is_a_reason_and_no_exception(attempts, path):
    assert "session file" in reason_of(transport.call(path))
    assert attempts == []


# --- files that are no ordinary files -----------------------------------------------------


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def padded_to_the_limit(path: Path) -> None:
    path.write_bytes(b" " * ((1 << 20) - 2) + b"[]")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.path.relpath(path))  # a whole path may be too long for a socket


def a_link_into_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


SPECIAL = [
    *("/proc/self/mem", "/proc/self/environ", "/proc/self/maps", "/proc/self/pagemap", "/proc/self/clear_refs"),
    *("/proc/kmsg", "/proc/kcore", "/proc/cpuinfo", "/proc/self/fd/0", "/proc/self/root"),
    *("/dev/zero", "/dev/full", "/dev/random", "/dev/tty", "/dev/ptmx", "/dev/null", "/proc/self/exe"),
]
MAKERS = [sparse, padded_to_the_limit, a_socket, a_link_into_nothing]


def put(kind, path: Path) -> None:
    path.unlink(missing_ok=True)
    if callable(kind):
        kind(path)
    else:
        path.symlink_to(kind)


@pytest.mark.parametrize("which", ["session", "endpoint"])
def test_whatever_a_path_leads_to_is_a_reason_and_no_wait(tmp_path, attempts, monkeypatch, which):
    spoilt = SessionFiles(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    descriptors = len(os.listdir("/dev/fd"))
    for kind in (*MAKERS, *SPECIAL):
        put(kind, getattr(spoilt, which))
        reason = reason_of(transport.call(str(spoilt.session), "session_info"))
        assert f"{which} file {getattr(spoilt, which)}" in reason, kind
    assert attempts == []
    assert len(os.listdir("/dev/fd")) == descriptors


# --- the corpus ---------------------------------------------------------------------------


def filled(path: Path, port: int) -> bytes:
    return path.read_bytes().replace(TOKEN_MARK, TOKEN.encode()).replace(PORT_MARK, b"%d" % port)


def test_the_corpus_opens_nothing_and_shows_nothing_to_a_running_bridge(tmp_path, ctl, hermetic_env):
    # None of these files leads anywhere; the one bridge reads them anew for each call.
    with Trap() as trap:
        pair = SessionFiles(tmp_path, trap.port)
        good = {which: getattr(pair, which).read_bytes() for which in ("session", "endpoint")}
        with McpServer([ctl, "mcp", "--session", str(pair.session)], hermetic_env) as server:
            for which in ("session", "endpoint"):
                for path in corpus.entries(f"{which}_files"):
                    getattr(pair, which).write_bytes(filled(path, trap.port))
                    answer = server.request("tools/call", {"name": "canvas_list"})["result"]
                    reason = reason_of(strict(answer["content"][0]["text"].encode()))
                    assert answer["isError"] is True
                    assert which in reason, path.name
                    refused = server.initialize()["error"]
                    assert refused["code"] == -32603
                    assert not hostile.shows(PART, refused["message"])
                getattr(pair, which).write_bytes(good[which])
            assert not hostile.shows(PART, server.log())
            assert "Traceback" not in server.log()
        assert trap.untouched()
