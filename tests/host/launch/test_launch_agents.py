"""Real coding agents, launched by the host in tmux, find their tools by themselves and call one."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider
from support.launched_agents import CONFIGURE, CONFIGURE_FOR_THE_SHELL, READY
from support.running_host import RunningHost
from support.waiting import until

pytestmark = [pytest.mark.counterpart, pytest.mark.timeout(600)]

PROMPT = "please call the tool"
DONE = "The tool has answered."
GREETING = "Ready to work."
SCRIPT = {
    "turns": [
        {"text": GREETING},
        {"calls": [{"mcp": "termsprawl", "tool": "session_info", "args": {}}]},
        {"text": DONE},
    ],
    "side": "x",
}
TIMEOUT_S = 120.0


def wait_for(host, node: str, condition, timeout_s: float = TIMEOUT_S) -> str:
    def screen() -> str:
        return host.value("terminal_read", nodeId=node)["output"]

    until(lambda: condition(screen()), screen, timeout_s)
    return screen()


def say(host, node: str, text: str) -> None:
    """Type a prompt, and press Enter once it is on the screen."""
    host.value("terminal_input", nodeId=node, text=text)
    wait_for(host, node, lambda screen: text in screen)
    host.value("terminal_input", nodeId=node, text="\r")


def status_of(host, node: str) -> dict:
    (status,) = [one["status"] for one in host.value("agent_status") if one["nodeId"] == node]
    return status


@contextlib.contextmanager
def launched(ctl: str, root: Path, env: dict[str, str], agent: str, url: str) -> Iterator[tuple[RunningHost, str]]:
    """A host, and the node of an agent that it has launched and that takes input."""
    cli = agent_clis.ALL[agent](root, env, url, ["unused"])
    {**CONFIGURE, **CONFIGURE_FOR_THE_SHELL}[agent](cli)
    # The agent has to be found by its name, as a user's would be.
    path = os.pathsep.join([os.path.dirname(cli.command[0]), cli.env["PATH"]])
    (root / "bin").mkdir()
    (root / "bin" / agent).symlink_to(cli.command[0])
    host = RunningHost(ctl, root, {**cli.env, "PATH": f"{root / 'bin'}{os.pathsep}{path}", "SHELL": "/bin/bash"})
    try:
        host.start()
        node = host.value("agent_launch", agent=agent)["nodeId"]
        wait_for(host, node, lambda screen: READY[agent] in screen)
        yield host, node
    finally:
        host.stop("--kill-sessions")


@pytest.mark.parametrize("agent", CONFIGURE)
def test_a_launched_agent_reaches_its_tools_by_itself(ctl, hermetic_env, tmp_path_factory, agent):
    root = tmp_path_factory.mktemp("a")
    with FakeProvider(SCRIPT) as provider, launched(ctl, root, hermetic_env, agent, provider.url) as (host, node):
        # opencode starts its servers with the first message, and does not wait for them.
        say(host, node, "hello")
        wait_for(host, node, lambda screen: GREETING in screen)
        if agent != "claude":  # which connects without a handshake
            wait_for(host, node, lambda _screen: status_of(host, node)["state"] == "connected")
        say(host, node, PROMPT)
        wait_for(host, node, lambda screen: DONE in screen)
        answered = [request for request in provider.asked() if host.endpoint()["instanceId"] in json.dumps(request)]
        assert answered, "the tool's answer did not reach the model"
        status = {"state": "connected", "adapter": f"{agent}-mcp", "version": "", "reason": ""}
        assert status_of(host, node) == status


@pytest.mark.parametrize("agent", CONFIGURE_FOR_THE_SHELL)
def test_a_launched_agent_reads_its_instructions_and_calls_from_its_shell(ctl, hermetic_env, tmp_path_factory, agent):
    root = tmp_path_factory.mktemp("a")
    command = '"$TERMSPRAWL_CTL" call sticky_open \'{"text": "from its shell"}\''
    script = {
        "turns": [{"text": GREETING}, {"calls": [{"do": "run", "command": command}]}, {"text": DONE}],
        "side": "x",
    }
    with FakeProvider(script) as provider, launched(ctl, root, hermetic_env, agent, provider.url) as (host, node):
        wait_for(host, node, lambda screen: GREETING in screen)
        first = json.dumps(provider.asked()[0])
        assert "Call `session_info` first" in first
        assert "This explains the terminal canvas that you run in." in first
        say(host, node, PROMPT)
        wait_for(host, node, lambda screen: DONE in screen)
        notes = [one for one in host.value("canvas_list") if one["type"] == "sticky"]
        assert [note["data"]["text"] for note in notes] == ["from its shell"]
        answered = [request for request in provider.asked() if notes[0]["id"] in json.dumps(request)]
        assert answered, "the answer did not reach the model"
        assert status_of(host, node)["state"] in ("cli-fallback", "connected")
