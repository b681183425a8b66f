"""Hostile lines for the MCP core, in process and without threads: every request is answered exactly once, and right."""

from __future__ import annotations

import pytest
from hypothesis import given
from support import corpus, hostile, mcp_lines
from support.jsonrpc_model import INTERNAL_ERROR, RESULT, Answers, Model, Rules, settle, settle_batches

from termsprawlctl.mcp import dispatch, stdio, work
from termsprawlctl.mcp.options import Options
from termsprawlctl.mcp.provider import Provider, ProviderFault

SECRET = "5ecre7" * 8
CAP = 4096
NAMES = ["echo", "broken", "fault"]


class Tools(Provider):
    """Tools that answer with what they were given, and that break."""

    options = Options(max_line_bytes=CAP)

    def tools(self) -> list[dict]:
        return [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in NAMES]

    def call(self, name, arguments, context) -> dict:
        context.progress(SECRET[:3])
        if name == "broken":
            raise RuntimeError(SECRET)
        if name == "fault":
            raise ProviderFault("out of order")
        return {"content": [{"type": "text", "text": "x"}], "isError": False, "structuredContent": {"a": arguments}}


class Original(Tools):
    """With the session bridge's choices and a handshake that fails."""

    options = Options(max_line_bytes=CAP, original_frame_errors=True, any_tool_name=True, initialize_waits=True)

    def on_initialize(self, context) -> None:
        raise ProviderFault("nobody there")


class Anything(Tools):
    """With the choices of the server for a TUI, and a handshake that takes its turn."""

    options = Options(max_line_bytes=CAP, any_tool_name=True, any_arguments=True, initialize_waits=True)

    def on_initialize(self, context) -> None:
        context.progress("hello")


RULES = {
    Tools: Rules(CAP, NAMES),
    Original: Rules(CAP, original=True),
    Anything: Rules(CAP, any_arguments=True),
}


class Inline:
    """In the place of a pool of threads: a job is done when it is added."""

    def __init__(self, _limit, run) -> None:
        self._run = run

    def add(self, job, _turn=None) -> None:
        self._run(job)

    def begun(self, _job) -> None:
        return

    def remove(self, _job) -> bool:
        return False


class Recorder:
    """In the place of the writer, with a client that reads all at once."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.put = self.data.append

    @staticmethod
    def has_room() -> bool:
        return True

    def wait_for_room(self) -> None:
        return


def answered(provider_class, pieces: list[bytes]) -> list[bytes]:
    """Everything that the server says to these pieces of a stream, line by line."""
    provider, recorder = provider_class(), Recorder()
    dispatcher = dispatch.Dispatcher(provider, provider.options, recorder, lambda: None)
    cutter = stdio.Lines(CAP)
    for piece in pieces:
        for line in cutter.feed(piece):
            dispatcher.take(line)
    for line in cutter.end():
        dispatcher.take(line)
    dispatcher.end_of_input()
    assert dispatcher.is_idle()
    assert dispatcher.work.in_flight._open_bytes == 0
    lines = b"".join(recorder.data).split(b"\n")
    assert lines.pop() == b""
    return lines


def check(provider_class, pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    model = Model(RULES[provider_class], greets_well=provider_class is not Original)
    model.feed(data)
    answers = Answers()
    for line in answered(provider_class, pieces):
        if not hostile.shows(SECRET, data):
            assert not hostile.shows(SECRET, line)
        answers.take(line)
    due = model.due + model.subscriptions
    for one in (*due, *(one for batch in model.batches for one in batch)):
        one.optional = False  # without threads no cancellation comes in time
        if RESULT in one.codes:
            one.codes = one.codes | {INTERNAL_ERROR}  # of a tool that breaks
    settle(due, answers.single)
    settle_batches(model.batches, answers.batches)
    assert answers.acknowledged == model.acknowledged
    for answer in answers.single:
        if answer.get("id") is None:
            # The original answers "id": null, the others leave the member out.
            assert "id" not in answer or provider_class is Original


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch):
    monkeypatch.setattr(work, "WorkerPool", Inline)


@pytest.mark.parametrize("provider_class", RULES, ids=lambda made: made.__name__)
@pytest.mark.parametrize("path", corpus.entries("mcp_lines"), ids=corpus.name)
def test_the_corpus_is_answered_as_the_protocol_says(provider_class, path):
    check(provider_class, [path.read_bytes()])


@given(mcp_lines.streams(NAMES, CAP).flatmap(hostile.cuts))
def test_any_lines_are_answered_as_the_protocol_says(pieces):
    for provider_class in RULES:  # drawing lines takes far longer than answering them
        check(provider_class, pieces)
