"""The real coding agents against the built file and the embedded host: connected, and a tool call that comes back."""

from __future__ import annotations

import json

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider

pytestmark = pytest.mark.counterpart

TEXT = "a note from the model"
SCRIPT = {
    "turns": [
        {"calls": [{"mcp": "termsprawl", "tool": "sticky_open", "args": {"text": TEXT}}]},
        {"text": "The note is there."},
    ]
}
STARTS = 10


@pytest.fixture
def server(ctl, host) -> list:
    return [ctl, "mcp", "--session", host.session_file]


@pytest.mark.parametrize("name", agent_clis.ALL)
def test_a_tool_call_of_the_model_is_made_and_its_result_reaches_the_model(server, host, hermetic_env, tmp_path, name):
    with FakeProvider(SCRIPT) as provider:
        cli = agent_clis.ALL[name](tmp_path, hermetic_env, provider.url, server)
        done = cli.run()
        shown = f"{done.stdout.decode()}\n{done.stderr.decode()}"
        assert done.returncode == 0, shown
        requests = provider.asked()
    assert len(requests) == 2, shown
    notes = [node for node in host.value("canvas_list") if TEXT in json.dumps(node)]
    assert len(notes) == 1, shown
    # The second request carries what the tool answered, in whichever form the CLI gives it.
    assert notes[0]["id"] in json.dumps(requests[1]), requests[1]


@pytest.mark.parametrize("name", ["opencode", "claude", "gemini"])
def test_the_agents_own_list_says_that_the_server_is_connected(server, hermetic_env, tmp_path, name):
    cli = agent_clis.ALL[name](tmp_path, hermetic_env, "http://127.0.0.1:9", server)
    listed = cli.list_servers()
    # The only server there is.
    assert "termsprawl" in listed
    assert "onnected" in listed, listed
    assert "isconnected" not in listed, listed


def test_codex_offers_our_tools_in_its_first_request_every_time(server, hermetic_env, tmp_path):
    with FakeProvider({"turns": [{"text": "hello"}]}) as provider:
        cli = agent_clis.Codex(tmp_path, hermetic_env, provider.url, server)
        cli.model = "unknown-to-codex"  # which gets every tool in full
        for _ in range(STARTS):
            before = len(provider.asked())
            done = cli.run()
            assert done.returncode == 0, done.stderr.decode()
            first = json.dumps(provider.asked()[before])
            assert "session_info" in first
            assert "terminal_submit" in first
