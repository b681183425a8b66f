"""Whatever arrives at the host's socket gets the contract's answer, and the next request is served as ever."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import corpus, hostile
from support.running_host import RunningHost

from termsprawlctl.app import http1
from termsprawlctl.operations.table import OPERATIONS

STATUSES = {200, 400, 401, 403, 404, 414, 431, 505}
TOKEN, PLACE = b"@TOKEN@", b"@LENGTH@"  # in the corpus: the host's token, the length of what follows the head
# Takes keys and acts on none: what a shell would make of hostile text is not the question here.
READER = 'import os, tty\ntty.setraw(0)\nos.write(1, b"READY\\r\\n")\nwhile os.read(0, 65536):\n    pass\n'
MAX_BODY_BYTES = 1 << 20
MAX_GROWTH_KIB = 64 << 10


class Fuzzed:
    """A running host, and what one may hold against it."""

    def __init__(self, host: RunningHost) -> None:
        self.host = host
        self.token = host.token()
        self.port = host.port()
        self.pid = host.pid()

    def exchange(self, data: bytes) -> tuple[int, dict] | None:
        """(status, ToolResult) of one connection; None where it was closed without an answer."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as sock:
            with contextlib.suppress(OSError):  # it may have answered before it had read everything
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            while chunk := sock.recv(65536):
                received += chunk
        assert not hostile.shows(self.token, received)
        if not received:
            return None
        received = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        head, _, body = received.partition(b"\r\n\r\n")
        version, status, _ = head.split(b" ", 2)
        assert version == b"HTTP/1.1"
        assert int(status) in STATUSES, body
        assert b"content-length: %d" % len(body) in head.split(b"\r\n")
        return int(status), a_result(json.loads(body))

    def call(self, operation: object, args: object) -> tuple[int, dict]:
        body = json.dumps({"operation": operation, "args": args}).encode()
        answer = self.exchange(a_request(body, self.token))
        assert answer is not None
        return answer

    def value(self, operation: str, **args):
        status, result = self.call(operation, args)
        assert status == 200, result
        return result["value"]

    def check(self) -> None:
        """It is the same process, it serves as ever, and its log tells of no fault and no token."""
        assert self.value("session_info")["nodeId"].startswith("cli-")
        assert self.host.pid() == self.pid
        log = (self.host.data / "host.log").read_text(errors="replace")
        assert "internal error" not in log
        assert not hostile.shows(self.token, log)
        for events in (self.host.data / "audit").iterdir():
            assert not hostile.shows(self.token, events.read_bytes())


def a_result(result: object) -> dict:
    assert isinstance(result, dict)
    if result["ok"] is True:
        assert set(result) == {"ok", "value"}
    else:
        assert set(result) == {"ok", "error"}
        assert result["ok"] is False
        assert result["error"]
        assert isinstance(result["error"], str)
        assert "Traceback" not in result["error"]
    return result


def a_request(body: bytes, token: str) -> bytes:
    head = f"POST /call HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.fixture(scope="module")
def fuzzed(ctl, tmp_path_factory):
    root = tmp_path_factory.mktemp("z")
    path = os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ["PATH"]])
    env = {"PATH": path, "HOME": str(root), "SHELL": "/bin/sh"}  # no DISPLAY: no window opens
    running = RunningHost(ctl, root, env)
    running.start()
    found = Fuzzed(running)
    before_kib = resident_kib(found.pid)
    yield found
    try:
        found.check()
        assert resident_kib(found.pid) - before_kib < MAX_GROWTH_KIB
    finally:
        running.stop("--kill-sessions")


# --- the head -----------------------------------------------------------------------------

METHODS = [b"POST", b"GET", b"post", b"PO ST", b"", b"CONNECT", b"P\0ST", b"\xff", b"POST POST"]
TARGETS = [
    *(b"/call", b"/call?x=1", b"/call#x", b"/call/", b"//call", b"/%63all", b"/call/../call", b"/call;x", b"/CALL"),
    *(b"*", b"", b"http://127.0.0.1/call", b"/call\t", b"/c\xc3\xa4ll", b"/call\0", b"\\call", b"/" + b"a" * 5000),
]
VERSIONS = [
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/0.9",
    b"HTTP/1",
    b"HTTP/1.1.1",
    b"HTTP/11.1",
    b"http/1.1",
    b"",
]
FIELDS = [
    *(b"authorization: Bearer " + TOKEN, b"AUTHORIZATION:bearer  " + TOKEN + b" ", b"authorization: Basic " + TOKEN),
    *(b"authorization : Bearer " + TOKEN, b" authorization: Bearer " + TOKEN, b"authorization: Bearer x"),
    *(b"authorization: Bearer\t" + TOKEN, b"authorization: Bearer " + TOKEN + b", Bearer x", b"authorization:"),
    *(b"origin: http://evil.example", b"Origin:", b"origin : null", b"\torigin: null", b"origin", b"x: y\rorigin: z"),
    *(b"host: 127.0.0.1", b"host: evil.example", b"Host:", b"cookie: a=b", b"connection: keep-alive, close"),
    *(b"content-length: " + PLACE, b"content-length: -1", b"content-length: +5", b"content-length: 0x10"),
    *(b"content-length: 1e3", b"content-length: 5, 5", b"content-length: " + b"9" * 5000, b"content-length: \xb2"),
    *(b"content-length: 131073", b"content-length: 99999999999", b"content-length:", b"content-length: 0"),
    *(b"transfer-encoding: chunked", b"transfer-encoding: identity", b"Transfer-Encoding:", b"expect: 100-continue"),
    *(b"upgrade: h2c", b": no name", b"no colon", b"x: " + b"y" * 3000, b"x:\0", b"x: \x1b[2J", b"\xff\xfe: x", b""),
    b"x: folded\r\n and on",
]
BODIES = [b'{"operation":"session_info","args":{}}', b"", b"{}", b"[]", b"5\r\n{}\r\n0\r\n\r\n", b'{"args":{}}']
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b"\x85", b"\x0b"])


@st.composite
def requests(draw) -> bytes:
    """A request of good and bad parts; TOKEN and PLACE stand where the host's values belong."""
    end = draw(ends)
    words = [draw(st.sampled_from(options[:2]) | st.sampled_from(options)) for options in (METHODS, TARGETS, VERSIONS)]
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=6))
    if draw(st.booleans()):
        fields += [FIELDS[0], b"content-length: " + PLACE]
    fields = draw(st.permutations(fields))
    head = end.join([b" ".join(words), *fields, b""]) + end
    body = draw(st.sampled_from(BODIES) | hostile.json_bytes)
    return head + body + draw(st.sampled_from([b"", b"", head + body]))  # perhaps a second one right behind


def filled(data: bytes, token: str) -> bytes:
    body = data.partition(b"\r\n\r\n")[2]
    return data.replace(TOKEN, token.encode()).replace(PLACE, b"%d" % len(body))


@pytest.mark.parametrize("path", corpus.entries("host_requests"), ids=corpus.name)
def test_a_request_that_once_was_answered_wrongly_is_refused(fuzzed, path):
    answer = fuzzed.exchange(filled(path.read_bytes(), fuzzed.token))
    assert answer is None or (answer[0] != 200 and not answer[1]["ok"])
    fuzzed.check()


@given(requests() | hostile.damaged(requests()) | hostile.binary)
def test_any_bytes_are_answered_and_the_next_request_is_served(fuzzed, data):
    data = filled(data, fuzzed.token)
    answer = fuzzed.exchange(data)
    if answer is not None and answer[0] == 200:
        head = data.replace(b"\r", b"\n").partition(b"\n\n")[0].lower()
        assert b"origin" not in head
        assert b"transfer-encoding" not in head or b"content-length" not in head
        assert fuzzed.token.encode() in data
    assert fuzzed.value("session_info")["host"] == "local"


@given(requests() | hostile.damaged(requests()))
@example(b"POST /call HTTP/1.1\r\nno colon\r\norigin: null\r\n\r\n")
@example(b"POST /call HTTP/1.1\r\nx: y\r\r\norigin: null\r\n\r\n")
@example(b"POST /call HTTP/1.1\r\nx: y\x85origin: null\r\n\r\n")
def test_a_head_that_is_read_has_every_line_as_a_field(data):
    try:
        head = http1.read_request(io.BytesIO(data))
    except http1.BadMessage:
        return
    if head is None:
        assert not data
        return
    lines = data.replace(b"\r\n", b"\n").partition(b"\n\n")[0].split(b"\n")[1:]
    assert b"\r" not in b"".join(lines)
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        assert colon
        assert value.strip(" \t") in head.all(name.lower())


@pytest.mark.parametrize("size", [0, 1, 65_500, 70_000, 2 << 20])
def test_a_head_of_any_size_is_answered(fuzzed, size):
    for field in (b"x: " + b"y" * size, b"x" * size + b": y", b"x: y\r\n" * (size // 6) + b"x: y", b"y" * size):
        data = b"POST /call HTTP/1.1\r\nauthorization: Bearer %s\r\n%s\r\n\r\n{}" % (fuzzed.token.encode(), field)
        answer = fuzzed.exchange(data)
        assert answer is not None
        assert answer[0] in ({400, 431} if size > 1 else {400})


# --- bodies and arguments -----------------------------------------------------------------


@given(
    hostile.json_bytes
    | hostile.encoded(
        hostile.object_texts(
            operation=st.sampled_from(['"session_info"', '"canvas_list"', '"nope"', '["session_info"]']),
            args=st.sampled_from(["{}", "[]", '{"nodeId":"n"}', '{"x":{}}']),
        )
    )
)
def test_any_body_is_answered(fuzzed, body):
    answer = fuzzed.exchange(a_request(body, fuzzed.token))
    assert answer is not None
    assert answer[0] in (200, 400)


TABLE = OPERATIONS
# A body holds 1 MiB: long enough for a string that is one character too long.
STRINGS = [
    "",
    " ",
    "x",
    "n-1",
    "-",
    "../..",
    "/etc/passwd",
    "/dev/zero",
    "/",
    "a\0b",
    "y" * 64_000,
    "y" * 64_001,
    "\x1b[A",
]
NUMBERS = [0, 1, -1, 0.5, 1e6, -1e6, 1_000_001, 1e308, 10**400, True, "1", None, -0.0, 5e-324]
LISTS = [
    [],
    [""],
    ["x"],
    ["y" * 255],
    ["y" * 256],
    ["x"] * 100,
    ["x"] * 101,
    [None],
    [["x"]],
    "x",
    ["a\0b"],
    ["\ud800"],
]
PATTERNS = [
    "(",
    "(?a)(?u)x",
    "x" * 1001,
    "[\ud800]",
    "(?P<x>a)(?P<x>b)",
    "a{99999999999}",
    "(" * 500,
    "\\",
    "\ud800",
    "",
]


def is_valid(argument, value: object) -> bool:
    """What the contract says of a value, in words of this test."""
    if argument.kind == "number":
        return type(value) in (int, float) and -1_000_000 <= value <= 1_000_000
    if argument.kind == "boolean":
        return type(value) is bool
    if argument.kind == "strings":
        return (
            type(value) is list
            and 0 < len(value) <= 100
            and all(type(one) is str and len(one) < 256 and "\0" not in one for one in value)
        )
    is_text = type(value) is str and len(value) <= 64_000 and "\0" not in value
    return is_text and (not argument.choices or value in argument.choices)


def refusal(operation, args: object) -> set[str]:
    """The errors that the contract allows for arguments; empty where they are valid."""
    if not isinstance(args, dict):
        return {"Expected args object"}
    known = {argument.name: argument for argument in operation.arguments}
    missing = {f"Missing argument: {one.name}" for one in operation.arguments if one.required and one.name not in args}
    unknown = {f"Unknown argument: {name}" for name in args if name not in known}
    wrong = {f"Invalid {name}" for name in args if name in known and not is_valid(known[name], args[name])}
    return missing | unknown | wrong


def values_of(operation, argument, node: str):
    if argument.name == "timeoutMs":  # nobody waits here
        return st.sampled_from([0, 1, 20, -5, 0.5, "1", True, 1e7])
    if argument.name == "pattern":
        return st.sampled_from(PATTERNS) | hostile.any_text
    if argument.kind == "number":
        return st.sampled_from(NUMBERS) | hostile.json_values
    if argument.kind == "boolean":
        return st.sampled_from([True, False, 0, "true", None])
    if argument.kind == "strings":
        return st.sampled_from([[node], *LISTS]) | st.lists(hostile.any_text, max_size=3) | hostile.json_values
    if argument.choices:
        return (
            st.sampled_from([*argument.choices, *(word.upper() for word in argument.choices), ""]) | hostile.json_values
        )
    texts = st.sampled_from(STRINGS) | hostile.any_text | hostile.json_values
    # A window would open, or the terminal of the other examples be closed.
    may_have_it = argument.name.endswith("odeId") and operation.name not in ("terminal_close", "terminal_external")
    return st.just(node) | texts if may_have_it else texts


@st.composite
def arguments(draw, operation, node: str):
    """Arguments by the table's own declarations: valid, nearly so, or nothing of the kind."""
    args = {}
    for argument in operation.arguments:
        if draw(st.integers(0, 9)) < (9 if argument.required else 5):
            args[argument.name] = draw(values_of(operation, argument, node))
    if "timeoutMs" in {argument.name for argument in operation.arguments}:
        args.setdefault("timeoutMs", 0)
    if operation.name == "terminal_run":
        args.setdefault("nodeId", node)  # without one a shell would run whatever comes
    kind = draw(st.integers(0, 9))
    if kind == 0:
        args[draw(hostile.any_text)] = draw(hostile.json_values)
    return draw(hostile.json_values) if kind == 1 else args


@pytest.fixture(scope="module")
def node(fuzzed):
    """A terminal whose program takes everything that is typed and does nothing with it."""
    script = fuzzed.host.project / "reader.py"
    script.write_text(READER)
    found = fuzzed.value("terminal_open")["nodeId"]
    fuzzed.value("terminal_submit", nodeId=found, command=f"exec python3 {script}")
    fuzzed.host.wait_for_text(found, "READY")
    return found


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_arguments_of_every_operation_are_judged_as_the_contract_says(fuzzed, node, name):
    operation = TABLE[name]

    @settings(max_examples=settings.default.max_examples // 5)
    @given(arguments(operation, node))
    @example(dict.fromkeys((argument.name for argument in operation.arguments), "y" * 64_000))
    def judged(args) -> None:
        status, result = fuzzed.call(name, args)
        allowed = refusal(operation, args)
        if len(json.dumps({"operation": name, "args": args})) > MAX_BODY_BYTES:
            assert (status, result["error"]) == (400, "Request too large")
        elif allowed:
            assert status == 400
            assert result["error"] in set(map(shown, allowed))
        else:
            assert status == (200 if result["ok"] else 400)
            assert result.get("error") not in ("Expected args object", "Unknown operation")

    judged()
    for opened in fuzzed.value("canvas_list"):
        if opened["type"] == "terminal" and opened["id"] != node:
            fuzzed.value("terminal_close", nodeId=opened["id"])
    fuzzed.check()


def shown(text: str) -> str:
    """As the answer shows it: a lone surrogate has no UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
