"""Calls through the bridge to a running host: order for each terminal, and nothing waits for anything else."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from support.mcp_client import McpServer

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


class Client:
    """An MCP client of a bridge, which sends without waiting."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._answers: dict[object, dict] = {}
        self._sent = 0
        server.initialize()

    def send(self, name: str, **arguments) -> object:
        """Send a call in UTF-8, as clients do; returns its id."""
        self._sent += 1
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": f"call-{self._sent}", "method": "tools/call", "params": params}
        self._server.send_bytes(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        return message["id"]

    def result(self, request_id: object) -> dict:
        """The ToolResult of a call that was sent; answers to others are kept."""
        while request_id not in self._answers:
            message = self._server.read()
            self._answers[message["id"]] = message
        return json.loads(self._answers.pop(request_id)["result"]["content"][0]["text"])

    def value(self, request_id: object) -> dict:
        result = self.result(request_id)
        assert result["ok"], result
        return result["value"]

    def call(self, name: str, **arguments) -> dict:
        return self.value(self.send(name, **arguments))

    def is_answered(self, request_id: object) -> bool:
        """Whether the answer had come before one to a ping that is sent now."""
        self._server.ask("ping", request_id="ping")
        while "ping" not in self._answers:
            message = self._server.read()
            self._answers[message["id"]] = message
        del self._answers["ping"]
        return request_id in self._answers


@pytest.fixture
def client(ctl, host, hermetic_env):
    with McpServer([ctl, "mcp", "--session", host.session_file], hermetic_env) as server:
        yield Client(server)


@pytest.fixture
def terminals(client):
    return [client.call("terminal_open")["nodeId"] for _ in range(2)]


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_commands_in_two_terminals_run_at_the_same_time(client, terminals, fifo):
    # Each can only end if the other runs meanwhile.
    first = client.send("terminal_run", nodeId=terminals[0], command=f"read x < {fifo}; echo got-$x")
    second = client.send("terminal_run", nodeId=terminals[1], command=f"echo word > {fifo}")
    assert client.value(second)["exitStatus"] == 0
    assert client.value(first)["output"].strip() == "got-word"


def test_input_and_keys_reach_a_command_that_waits_for_them(client, terminals):
    run = client.send("terminal_run", nodeId=terminals[0], command="read -r a; read -r b; echo got-$a-$b")
    typed = [client.send("terminal_input", nodeId=terminals[0], text=text) for text in ("one\r", "two\r")]
    assert all(client.value(one)["delivered"] for one in typed)
    assert client.value(run)["output"].splitlines()[-1] == "got-one-two"


def test_an_interrupt_reaches_a_command_that_runs(client, terminals, fifo):
    run = client.send("terminal_run", nodeId=terminals[0], command=f"echo started > {fifo}; sleep 300")
    assert fifo.read_text() == "started\n"
    assert client.call("terminal_interrupt", nodeId=terminals[0])["delivered"]
    assert client.value(run)["exitStatus"] == 130


def test_reading_waiting_and_the_canvas_do_not_wait_for_a_command(client, terminals, fifo):
    run = client.send("terminal_run", nodeId=terminals[0], command=f"read x < {fifo}")
    wait = client.send("terminal_wait", nodeId=terminals[0], text="never printed")
    for name, arguments in (
        ("terminal_read", {"nodeId": terminals[0]}),
        ("terminal_since", {"nodeId": terminals[0]}),
        ("canvas_list", {}),
        ("sticky_open", {"text": "note"}),
        ("agent_cards", {}),
        ("terminal_run", {"nodeId": terminals[1], "command": "true"}),
        ("terminal_close", {"nodeId": terminals[1]}),
    ):
        client.call(name, **arguments)
    assert not client.is_answered(run)
    assert not client.is_answered(wait)
    fifo.write_text("word\n")
    assert client.value(run)["exitStatus"] == 0


def test_what_changes_one_terminal_keeps_its_order(client, terminals, tmp_path):
    effects = tmp_path / "effects"
    sent = [
        client.send("terminal_run", nodeId=node, command=f"echo {node} {number} >> {effects}")
        for number in range(8)
        for node in terminals
    ]
    assert [client.value(one)["exitStatus"] for one in sent] == [0] * len(sent)
    lines = effects.read_text().splitlines()
    for node in terminals:
        assert [line for line in lines if line.startswith(node)] == [f"{node} {number}" for number in range(8)]


def test_a_command_waits_for_the_end_of_the_one_before_it_and_is_not_typed_into_it(client, terminals, fifo):
    first = client.send("terminal_run", nodeId=terminals[0], command=f"read x < {fifo}; echo $x")
    second = client.send("terminal_run", nodeId=terminals[0], command="echo second")
    assert not client.is_answered(second)
    fifo.write_text("first\n")
    assert client.value(first)["output"].strip() == "first"
    assert client.value(second)["output"].strip() == "second"


def test_a_command_that_is_given_up_lets_the_next_ones_in(client, terminals, fifo):
    first = client.send("terminal_run", nodeId=terminals[0], command=f"echo started > {fifo}; sleep 300")
    second = client.send("terminal_close", nodeId=terminals[0])
    assert fifo.read_text() == "started\n"
    client._server.cancel(first)
    assert client.value(second)["closed"]


@pytest.mark.parametrize("character", ["x", "é", "日", "😀", "\U0001f1e9"])
def test_64000_characters_of_any_script_are_taken(client, terminals, character):
    head, tail = "printf %s '", "' | wc -m"
    text = character * (64_000 - len(head) - len(tail))
    environment = "LC_ALL=C.UTF-8; export LC_ALL"
    assert client.call("terminal_run", nodeId=terminals[0], command=environment)["exitStatus"] == 0
    ran = client.call("terminal_run", nodeId=terminals[0], command=head + text + tail)
    assert ran["output"].strip() == str(len(text))
    assert client.call("sticky_open", text=character * 64_000)
    refused = client.result(client.send("sticky_open", text=character * 64_001))
    assert refused["error"].startswith("Invalid text")
    assert "64,000 characters" in refused["error"]
