"""What the server loads until it is ready: start-up time is counted in modules here, not in milliseconds."""

from __future__ import annotations

import sys

import pytest
from support.mcp_app import StandInApp
from support.mcp_client import META, McpServer

HEAVY = {
    "asyncio",
    "concurrent",
    "ctypes",
    "dataclasses",
    "email",
    "inspect",
    "logging",
    "multiprocessing",
    "pathlib",
    "random",
    "shutil",
    "ssl",
    "subprocess",
    "tempfile",
    "typing",
    "urllib",
}
OTHER_ROOMS = tuple(f"termsprawlctl.{room}" for room in ("agents", "tui", "host", "tmux", "processes"))
# Around 100 on every Python, 40 of which are a bare start; a heavy module brings dozens.
MOST_MODULES = 125


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path) as running:
        yield running


def loaded(server) -> list[str]:
    """Names of the modules, as Python reports them while it imports."""
    server.close()
    server.rest()
    assert server.exit_status() == 0
    lines = [line.split("|") for line in server.log().splitlines() if line.startswith("import time:")]
    return [line[2].strip() for line in lines[1:]]


@pytest.fixture
def server(ctl, app, hermetic_env):
    words = [sys.executable, "-ISB", "-X", "importtime", ctl, "mcp", "--session", app.session]
    with McpServer(words, hermetic_env) as running:
        yield running


def test_nothing_heavy_is_loaded_to_list_the_tools_and_to_call_one(server, app):
    assert server.modern("server/discover")["result"]
    assert server.modern("tools/list")["result"]["tools"]
    assert server.initialize()["result"]
    assert server.answer_to(server.call("canvas_list"))["result"]
    assert app.operations[-1] == "canvas_list"
    names = loaded(server)
    # The call went out, so its modules are among them.
    assert "termsprawlctl.app.transport" in names
    heavy = {name.split(".")[0] for name in names} & HEAVY
    # The transport's HTTP needs a little of what a list of tools does not.
    assert heavy <= {"email", "typing", "urllib"}
    assert not [name for name in names if name.startswith(OTHER_ROOMS)]


def test_few_modules_are_loaded_until_the_server_is_ready(server):
    # Everything that tools/list needs as well; only what calls need comes after that. The input
    # ends at once, because what calls need is loaded when the client is quiet for a moment.
    server.ask("server/discover", {"_meta": META})
    names = loaded(server)
    assert not {name.split(".")[0] for name in names} & HEAVY
    assert not {"socket", "http.client", "selectors"} & set(names)
    assert not [name for name in names if name.startswith(OTHER_ROOMS)]
    assert len(names) <= MOST_MODULES
