"""The official clients against the built file and the embedded host: each lists the tools and calls one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support import counterparts
from support.tui_endpoint import FakeEndpoint

pytestmark = pytest.mark.counterpart

DRIVERS = Path(__file__).resolve().parent.parent / "counterparts" / "drivers"
CLIENT_S = 60.0
MANY = 27  # how many operations an embedded host has


def run(command: list, env: dict) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CLIENT_S,
        check=False,
    )


def report(command: list, env: dict) -> dict:
    """What a driver printed; its exit status and the server's stderr have to be clean."""
    done = run(command, env)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return json.loads(done.stdout)


def check(found: dict, host) -> None:
    """A driver that opened a sticky note: its answer came, and the host has the note."""
    assert len(found["tools"]) >= MANY
    assert found["tools"][0] == "session_info"
    assert found["isError"] is False
    (block,) = found["content"]
    answer = json.loads(block["text"])
    assert answer["ok"] is True
    nodes = host.value("canvas_list")
    assert answer["value"]["nodeId"] in json.dumps(nodes)
    assert "h\\u00e9 llo" in json.dumps(nodes)


def note() -> list:
    return ["sticky_open", json.dumps({"text": "hé llo"})]


@pytest.fixture
def server(ctl, host) -> list:
    """The command that a client is given. A client hands over little environment, so the path is in it."""
    return [ctl, "mcp", "--session", host.session_file]


@pytest.mark.parametrize(
    ("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_the_official_python_client(server, host, hermetic_env, mode, revision):
    env = {**hermetic_env, "HOME": host.env["HOME"]}
    found = report([counterparts.python(), DRIVERS / "python_client.py", mode, *note(), *server], env)
    check(found, host)
    assert found["revision"] == revision
    assert found["server"] in ("termsprawl", None)


@pytest.mark.parametrize("mode", ["1.x", "legacy", "auto", "pin"])
def test_the_official_typescript_clients(server, host, hermetic_env, mode):
    folder = counterparts.package("@modelcontextprotocol/" + ("sdk" if mode == "1.x" else "client"))
    env = {**hermetic_env, "HOME": host.env["HOME"]}
    command = [counterparts.node(), DRIVERS / "typescript_client.mjs", folder, mode, *note(), *server]
    found = report(command, env)
    check(found, host)


@pytest.fixture
def inspector(hermetic_env, tmp_path):
    """A function that runs MCP Inspector's command line on a server."""
    program = counterparts.program("@modelcontextprotocol/inspector", "mcp-inspector")
    env = {**hermetic_env, "PATH": counterparts.path_with_node(), "HOME": str(tmp_path)}

    def inspect(server: list, *words: str) -> subprocess.CompletedProcess:
        return run([counterparts.node(), program, "--cli", *server, *words], env)

    return inspect


@pytest.fixture
def servers(server, ctl, tmp_path_factory) -> dict[str, tuple[list, int]]:
    """Every server there is: its command and how many tools it has at least."""
    endpoint = FakeEndpoint(tmp_path_factory.mktemp("e"))
    yield {
        "session": (server, MANY),
        "tui": ([ctl, "mcp", "tui", "--endpoint", endpoint.path], 2),
        "agent": ([ctl, "mcp", "agent", "codex"], 1),
    }
    endpoint.listener.close()


@pytest.mark.parametrize("name", ["session", "tui", "agent"])
def test_the_inspector_finds_nothing_to_say_against_the_tools(servers, inspector, name):
    server, count = servers[name]
    # Everything behind -- is the server's own.
    done = inspector(["--method", "tools/list", "--strict", "--"], *server)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b"", done.stderr.decode()
    assert len(json.loads(done.stdout)["tools"]) >= count


def test_the_inspector_calls_a_tool(server, host, inspector):
    done = inspector(server, "--method", "tools/call", "--tool-name", "sticky_open", "--tool-arg", "text=hé llo")
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    check({"tools": ["session_info"] * MANY, "isError": result.get("isError", False), **result}, host)
