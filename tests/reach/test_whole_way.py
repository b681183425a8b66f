"""The whole way with only this file and ssh: reached, used by a person and by an MCP client, cut twice, left."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from support.ssh_server import is_running, until


class McpClient:
    """An MCP client that starts the server as its configuration says."""

    def __init__(self, entry: dict, env: dict[str, str]) -> None:
        argv = [entry["command"], *entry["args"]]
        env = {**env, **entry.get("env", {})}
        self.server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.last = 0
        facts = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", facts)
        self.say({"method": "notifications/initialized"})

    def say(self, message: dict) -> None:
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.last += 1
        self.say({"id": self.last, "method": method, "params": params})
        while True:
            answer = json.loads(self.server.stdout.readline())
            if answer.get("id") == self.last:
                return answer["result"]

    def works(self) -> bool:
        return not self.ask("tools/call", {"name": "session_info", "arguments": {}}).get("isError")

    def end(self) -> None:
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(60)


def test_a_bare_account_is_reached_used_through_two_cuts_and_left_without_a_trace(box):
    session = box.reach()
    assert box.run("run", "--session", session, "--", "exit 7").returncode == 7
    done = box.run("install", "claude", "--json", "--write", "--session", session)
    assert done.returncode == 0, done.stderr
    entry = json.loads((box.here / ".claude.json").read_text())["mcpServers"]["termsprawl"]
    client = McpClient(entry, {**box.env, "TERMSPRAWL_SESSION_FILE": session})
    try:
        assert client.works()
        for _ in range(2):
            master = box.record()["ssh"]
            os.kill(master, signal.SIGKILL)
            until(lambda: box.record().get("ssh") != master)  # noqa: B023 - asked at once
            until(client.works)
            assert box.run("run", "--session", session, "--", "exit 7").returncode == 7
    finally:
        client.end()
    last = [box.keeper(), box.record()["ssh"], json.loads(box.there("host", "status", "--json").stdout)["pid"]]
    done = box.run("reach", "stop", "box", "--all")
    assert done.returncode == 0, done.stderr
    assert [pid for pid in last if is_running(pid)] == []
    assert list((box.here / ".local/state/termsprawlctl/reach").iterdir()) == []
    assert not (box.home / ".cache/termsprawlctl").exists()
