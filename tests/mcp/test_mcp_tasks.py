"""Ten everyday tasks through the bridge, each with as few calls as the documentation says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.mcp_client import McpServer

# Task to its calls; all but the first find a terminal open.
AT_MOST = {
    "open_and_run": 1,
    "long": 2,
    "repl": 4,
    "password": 3,
    "editor": 3,
    "pager": 3,
    "paste": 1,
    "parallel": 2,
    "server": 2,
    "news": 1,
}
ROOT = Path(__file__).parents[2]


class Agent:
    """Calls the operations, and counts that."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.calls = 0
        self.node: str | None = None
        self.cursor = ""
        server.initialize()
        self.node = self.call("terminal_open", nodeId=None)["nodeId"]

    def send(self, name: str, **arguments) -> str:
        self.calls += 1
        arguments = {key: value for key, value in {"nodeId": self.node, **arguments}.items() if value is not None}
        message = {"jsonrpc": "2.0", "id": f"call-{self.calls}", "method": "tools/call"}
        self._server.send({**message, "params": {"name": name, "arguments": arguments}})
        return message["id"]

    def answers(self, *ids: str) -> list[dict]:
        found: dict[str, dict] = {}
        while set(ids) - set(found):
            message = self._server.read()
            found[message["id"]] = json.loads(message["result"]["content"][0]["text"])
        assert all(found[one]["ok"] for one in ids), found
        return [found[one]["value"] for one in ids]

    def call(self, name: str, **arguments) -> dict:
        return self.answers(self.send(name, **arguments))[0]


def open_and_run(agent: Agent) -> None:
    before, agent.node = agent.node, None
    done = agent.call("terminal_run", command="echo out; (exit 3)")
    assert (done["output"], done["exitStatus"]) == ("out", 3)
    assert done["nodeId"] != before


def long(agent: Agent) -> None:
    assert agent.call("terminal_run", command="sleep 2; echo late; (exit 4)", timeoutMs=200)["timedOut"]
    done = agent.call("terminal_wait", exit=True)
    assert (done["exitStatus"], "late" in done["tail"]) == (4, True)


def repl(agent: Agent) -> None:
    agent.call("terminal_submit", command="python3 -iqc ''")
    agent.call("terminal_wait", text=">>> ")
    assert agent.call("terminal_submit", command="print(6 * 7)")["foreground"].startswith("python")
    assert agent.call("terminal_wait", pattern="^42$")["reason"] == "pattern"


def password(agent: Agent) -> None:
    asked = agent.call("terminal_run", command="read -s -p 'Password: ' it; echo; echo ${#it} letters", timeoutMs=500)
    assert asked["screen"].endswith("Password:")
    agent.call("terminal_input", text="abc\r")
    done = agent.call("terminal_wait", exit=True)
    assert (done["exitStatus"], "3 letters" in done["tail"]) == (0, True)


def editor(agent: Agent) -> None:
    opened = agent.call("terminal_run", command="vim -u NONE file", timeoutMs=2000)
    assert opened["fullScreen"]
    agent.call("terminal_input", text="ihello\x1b:wq\r")
    assert agent.call("terminal_wait", exit=True)["exitStatus"] == 0


def pager(agent: Agent) -> None:
    shown = agent.call("terminal_run", command="seq 500 | less", timeoutMs=1000)
    assert "\n20\n" in shown.get("screen", shown["output"])
    agent.call("terminal_input", text="q")
    assert agent.call("terminal_wait", exit=True)["exitStatus"] == 0


def paste(agent: Agent) -> None:
    lines = "".join(f'line {number} it\'s "quoted" $HOME\n' for number in range(200))
    assert agent.call("terminal_run", command=f"wc -lc <<'END'\n{lines}END")["output"].split() == [
        "200",
        str(len(lines)),
    ]


def parallel(agent: Agent, other: str) -> None:
    ids = [agent.send("terminal_run", nodeId=node, command="sleep 0.3; echo it") for node in (agent.node, other)]
    assert [value["output"] for value in agent.answers(*ids)] == ["it", "it"]


def server(agent: Agent) -> None:
    agent.call("terminal_submit", command="sleep 0.5; echo listen''ing; cat")
    assert agent.call("terminal_wait", text="listening")["match"] == "listening"


def news(agent: Agent) -> None:
    assert agent.call("terminal_since", cursor=agent.cursor)["output"].count("after") == 2  # as typed, and as told


@pytest.mark.parametrize("name", AT_MOST)
def test_a_task_takes_no_more_calls_than_it_should(ctl, host, hermetic_env, name):
    if name in ("editor", "pager") and shutil.which({"editor": "vim", "pager": "less"}[name]) is None:
        pytest.skip("not installed")
    with McpServer([ctl, "mcp", "--session", host.session_file], hermetic_env) as bridge:
        agent = Agent(bridge)
        more = {}
        if name == "parallel":
            more["other"] = agent.call("terminal_open", nodeId=None)["nodeId"]
        if name == "news":
            agent.cursor = agent.call("terminal_run", command="echo before")["cursor"]
            agent.call("terminal_submit", command="echo after")
            agent.call("terminal_wait", idleMs=300)
        agent.calls = 0
        globals()[name](agent, **more)
        assert agent.calls <= AT_MOST[name]


def test_session_info_says_where_the_project_is(host):
    assert host.value("session_info")["projectFolder"] == str(host.project)


def test_the_documentation_has_these_figures():
    text = (ROOT / "docs" / "performance.md").read_text()
    table = re.findall(r"^\| .*? \| (\d) \|$", text[text.index("## What an agent pays") :], re.MULTILINE)
    assert list(map(int, table)) == list(AT_MOST.values())
