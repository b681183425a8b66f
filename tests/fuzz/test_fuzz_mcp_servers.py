"""Hostile lines for each MCP server of the built file: one process takes them all and still answers right."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from support import corpus, hostile, mcp_lines
from support.jsonrpc_model import Answers, Model, Rules, Unanswered, settle, settle_batches
from support.mcp_app import StandInApp
from support.mcp_client import McpServer, Silence
from support.session_files import TOKEN
from support.tui_endpoint import TOKEN as TUI_TOKEN
from support.tui_endpoint import FakeEndpoint

pytestmark = pytest.mark.process

BRIDGE = Rules(262_144, original=True)
TUI = Rules(64 << 10, any_arguments=True)
AGENT = Rules(4 << 20, ["run", "run_status", "run_result", "run_cancel"])
# A line is held as bytes, as text and as values of up to 64 bytes for two characters each.
MEMORY_KIB = {BRIDGE: 64 << 10, TUI: 48 << 10, AGENT: 256 << 10}


class Session:
    """One server through all examples; `exchange(stream)` sends lines and checks every answer to them."""

    def __init__(self, server: McpServer, rules: Rules, ordinary_call: dict) -> None:
        self.server = server
        self.model = Model(rules)
        self._ordinary_call = ordinary_call
        self._numbers = itertools.count()
        self._tools: object = None

    def exchange(self, stream: bytes) -> None:
        self._begin()
        for line in stream.removesuffix(b"\n").split(b"\n"):
            shakes = self.model.handshakes
            self._take(line)
            if self.model.handshakes > shakes:
                # Until that is answered, it is open whether an array is a batch.
                self._finish()
                self._begin()
        self._finish()

    def _begin(self) -> None:
        self._sent: list[bytes] = []
        self.model.start_anew()

    def _take(self, line: bytes) -> None:
        self._sent.append(line + b"\n")
        self.model.take(line)

    def _finish(self) -> None:
        number, model, answers = next(self._numbers), self.model, Answers()
        ends = [{"method": "notifications/cancelled", "params": {"requestId": one.id}} for one in model.subscriptions]
        # What is sent last, and which of it is answered last, whatever the server is busy with.
        ends += [
            {"id": f"call {number}", "method": "tools/call", "params": self._ordinary_call},
            {"id": f"list {number}", "method": "tools/list"},
            {"id": f"ping {number}", "method": "ping"},
        ]
        for end in ends:
            self._take(json.dumps({"jsonrpc": "2.0", **end}).encode())
        self.server.send_bytes(b"".join(self._sent))
        self._collect(answers)
        (listed,) = [answer["result"] for answer in answers.single if answer.get("id") == f"list {number}"]
        self._tools = self._tools or listed
        assert listed == self._tools
        assert answers.acknowledged == model.acknowledged

    def end(self) -> None:
        self.server.close()
        assert self.server.rest() == []
        assert self.server.exit_status() == 0
        assert not any(hostile.shows(token, self.server.log()) for token in (TOKEN, TUI_TOKEN))
        assert "Traceback" not in self.server.log()

    def _collect(self, answers: Answers) -> None:
        missing: Exception | None = None
        while True:
            try:
                line = self.server.read_line()
            except Silence:
                raise AssertionError(f"never answered: {missing}") from None
            assert not any(hostile.shows(token, line) for token in (TOKEN, TUI_TOKEN))
            answers.take(line)
            try:
                settle(self.model.due, answers.single)
                settle_batches(self.model.batches, answers.batches)
            except Unanswered as unanswered:
                missing = unanswered
            else:
                return


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    """Without any agent's CLI."""
    python = Path(sys.base_prefix, "bin")
    return {"PATH": f"{python}:/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


@pytest.fixture
def bridge(ctl, env, tmp_path):
    with StandInApp(tmp_path) as app:
        app.replies["echo"] = json.dumps({"ok": False, "error": f"no {TOKEN}"}).encode()
        app.replies["escaped"] = b'{"ok": true, "value": "%s"}' % "".join(f"\\u{ord(c):04x}" for c in TOKEN).encode()
        app.replies["junk"] = b'{"ok": true, "value": "\xff%s' % TOKEN.encode()
        app.replies["deep"] = hostile.nested(400, '{"ok":true,"value":', "}", "1").encode()
        with McpServer([ctl, "mcp", "--session", app.session], env) as server:
            yield Session(server, BRIDGE, {"name": "session_info"})


@pytest.fixture
def tui(ctl, env, tmp_path_factory):
    endpoint = FakeEndpoint(tmp_path_factory.mktemp("t"))
    endpoint.listener.close()  # nobody shares any more; what matters here comes before that
    with McpServer([ctl, "mcp", "tui", "--endpoint", endpoint.path], env) as server:
        yield Session(server, TUI, {"name": "get_view_context"})


@pytest.fixture
def agent(ctl, env):
    with McpServer([ctl, "mcp", "agent", "codex"], env) as server:
        yield Session(server, AGENT, {"name": "run_status"})


SERVERS = [
    ("bridge", BRIDGE, ["session_info", "canvas_list", "echo", "escaped", "junk", "deep", "\ud800"]),
    ("tui", TUI, ["get_view_context", "select_session", "x"]),
    ("agent", AGENT, ["run_status", "run_result", "run_cancel", "run"]),
]


@pytest.mark.parametrize(("name", "rules", "tools"), SERVERS, ids=["bridge", "tui", "agent"])
def test_a_server_takes_any_lines_and_goes_on(name, rules, tools, request):
    session = request.getfixturevalue(name)

    @given(mcp_lines.streams(tools, rules.cap))
    def exchange(stream):
        session.exchange(stream)

    for path in corpus.entries("mcp_lines"):
        session.exchange(path.read_bytes())
    exchange()
    session.end()


DENSE = {"empty arrays": b"[],", "objects": b'{"a":0},', "escapes": b'"\\u0001\\ud800",', "numbers": b"1.5,"}


@pytest.mark.parametrize("name", ["bridge", "tui", "agent"])
def test_the_densest_lines_under_the_cap_cost_a_bounded_amount_of_memory(name, request):
    session = request.getfixturevalue(name)
    server, cap = session.server, session.model.rules.cap
    for piece in list(DENSE.values())[: 1 if cap > 1 << 20 else None]:  # four large ones take seconds
        head, tail = b'{"jsonrpc":"2.0","id":"dense","method":"ping","params":{"x":[', b"0]}}"
        server.send_bytes(head + piece * ((cap - len(head) - len(tail)) // len(piece)) + tail + b"\n")
        assert server.read() == {"jsonrpc": "2.0", "id": "dense", "result": {}}
    assert server.peak_memory_kib() < MEMORY_KIB[session.model.rules]
    session.end()
