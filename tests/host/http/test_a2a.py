"""The A2A facade on a running host: cards, a task from end to end, and what it refuses."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path

import pytest
from support import counterparts

DRIVER = Path(__file__).resolve().parents[2] / "counterparts" / "drivers" / "a2a_client.py"


class Pair:
    """Two terminals, the first linked to the second, and requests in the name of the first."""

    def __init__(self, host) -> None:
        self.host = host
        self.a, self.b = (host.value("terminal_open", title=title)["nodeId"] for title in ("Asker", "Worker"))
        assert host.run("host", "link", self.a, self.b, "--data", str(host.data)).returncode == 0
        self.sessions = {
            node: str(host.data / "agent-tools" / "sessions" / f"{node}.json") for node in (self.a, self.b)
        }

    def request(self, method: str, path: str, content: object = None, **headers: str) -> tuple[int, dict]:
        token = json.loads(Path(self.sessions[self.a]).read_text())["token"]
        connection = http.client.HTTPConnection("127.0.0.1", self.host.port(), timeout=30)
        try:
            body = b"" if content is None else json.dumps(content).encode()
            connection.request(method, path, body, {"authorization": f"Bearer {token}", **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def rpc(self, method: str, params: object) -> dict:
        content = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        status, answer = self.request("POST", f"/a2a/agents/{self.b}", content)
        assert (status, answer["id"]) == (200, 7)
        return answer

    def send(self, message_id: str, *texts: str, **more: object) -> dict:
        parts = [{"kind": "text", "text": text} for text in texts]
        message = {"kind": "message", "role": "user", "messageId": message_id, "parts": parts, **more}
        return self.rpc("message/send", {"message": message})


@pytest.fixture
def pair(host) -> Pair:
    return Pair(host)


def test_a_task_goes_out_and_its_answer_comes_back(pair):
    task = pair.send("m-1", "one", "two")["result"]
    assert (task["kind"], task["status"]["state"], task["contextId"]) == ("task", "submitted", task["id"])
    assert task["history"][0]["parts"] == [{"kind": "text", "text": "one\ntwo"}]
    assert "artifacts" not in task
    pair.host.value("agent_reply", session=pair.sessions[pair.b], taskId=task["id"], text="done")
    found = pair.rpc("tasks/get", {"id": task["id"]})["result"]
    assert found["status"]["state"] == "completed"
    assert found["artifacts"][0]["parts"] == [{"kind": "text", "text": "done"}]
    again = pair.send("m-2", "more")["result"]
    pair.host.value("agent_reply", session=pair.sessions[pair.b], taskId=again["id"], text="cannot", state="failed")
    status = pair.rpc("tasks/get", {"id": again["id"]})["result"]["status"]
    assert (status["state"], status["message"]["parts"]) == ("failed", [{"kind": "text", "text": "cannot"}])


def test_cards_are_the_callers_own_and_those_of_the_agents_that_it_sees(pair):
    status, own = pair.request("GET", "/.well-known/agent-card.json")
    assert (status, own["name"], own["protocolVersion"]) == (200, "Asker", "0.3.0")
    status, card = pair.request("GET", f"/a2a/agents/{pair.b}/.well-known/agent-card.json")
    assert (status, card["name"]) == (200, "Worker")
    assert card["url"] == f"http://127.0.0.1:{pair.host.port()}/a2a/agents/{pair.b}"
    assert pair.request("GET", "/a2a/agents/n-0/.well-known/agent-card.json")[0] == 404
    card_path = "/.well-known/agent-card.json"
    assert pair.request("GET", card_path, authorization="Bearer " + "0" * 64)[0] == 401
    assert pair.request("GET", card_path, origin="http://127.0.0.1")[0] == 403


def test_what_cannot_be_done_has_the_codes_of_the_protocol(pair):
    path = f"/a2a/agents/{pair.b}"
    for content in ([], {"id": 1, "method": "tasks/get"}, {"jsonrpc": "2.0", "method": 1}):
        assert pair.request("POST", path, content)[1]["error"]["code"] == -32600
    assert pair.rpc("message/stream", {})["error"]["code"] == -32601
    assert pair.rpc("tasks/get", {"id": 1})["error"]["code"] == -32602
    for refused in (
        pair.send("m-1"),
        pair.send("", "x"),
        pair.send("m-1", "x", taskId="t"),
        pair.send("m-1", "x", role="agent"),
        pair.rpc("message/send", {"message": {"kind": "message", "role": "user", "messageId": "m", "parts": [{}]}}),
    ):
        assert refused["error"]["code"] == -32602
    assert pair.send("m 1", "x")["error"] == {
        "code": -32000,
        "message": "messageId has to be 1 to 128 letters, digits, - or _. Choose a short new one.",
    }
    task = pair.send("m-1", "x")["result"]["id"]
    content = {"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"id": task}}
    assert pair.request("POST", f"/a2a/agents/{pair.a}", content)[1]["error"]["code"] == -32001


def test_the_official_client_gives_a_task_and_fetches_the_answer(pair):
    """Card, message/send, tasks/get before and after the reply, and a task that is none."""
    words = [counterparts.python("a2a"), "-IB", DRIVER, f"http://127.0.0.1:{pair.host.port()}", pair.b]
    token = json.loads(Path(pair.sessions[pair.a]).read_text())["token"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(words, env={"PATH": "/usr/bin:/bin", "NO_PROXY": "*"}, **pipes) as client:

        def heard(line: str) -> dict:
            client.stdin.write(line + "\n")
            return json.loads(client.stdout.readline())

        card = heard(token)
        assert (card["name"], card["protocolVersion"]) == ("Worker", "0.3.0")
        sent = json.loads(client.stdout.readline())
        assert (sent["kind"], sent["status"]["state"]) == ("task", "submitted")
        assert heard(sent["id"])["history"][0]["parts"][0]["text"] == "one task, please"
        pair.host.value("agent_reply", session=pair.sessions[pair.b], taskId=sent["id"], text="done")
        done = heard(sent["id"])
        assert (done["status"]["state"], done["artifacts"][0]["parts"][0]["text"]) == ("completed", "done")
        assert "error" in heard("0")
        client.stdin.close()
        assert client.wait(30) == 0
