"""What works with the app works with our host: the same calls to both, the answers compared shape by shape.

The app is a stand-in of it, written from its contract in Node (counterparts/app). Our answers may say more
than the app's, by extra keys of an object; what the app says we say, in the same place and of the same type.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator

import pytest
from support.mcp_client import McpServer
from support.node_app import NodeApp, absent
from support.running_host import RunningHost
from support.shapes import differs
from support.waiting import until

from termsprawlctl.operations.results import RESULTS, written
from termsprawlctl.operations.table import OPERATIONS

pytestmark = pytest.mark.skipif(bool(absent()), reason=absent())
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


def shape(value: object) -> object:
    """A value with its scalars replaced by their types; an array by the shapes of its items, each once."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        items: list[object] = []
        for item in map(shape, value):
            if item not in items:
                items.append(item)
        return items
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def lacks(app: object, ours: object, where: str = "value") -> list[str]:
    """What the app's shape has and ours has not."""
    if isinstance(app, dict) and isinstance(ours, dict):
        missing = [f"{where}.{key} is missing" for key in app if key not in ours]
        return missing + [line for key in app if key in ours for line in lacks(app[key], ours[key], f"{where}.{key}")]
    if isinstance(app, list) and isinstance(ours, list):
        if bool(app) != bool(ours):
            return [f"{where} is {'not ' if ours else ''}empty"]
        return [
            min((lacks(item, mine, f"{where}[]") for mine in ours), key=len)[0]
            for item in app
            if all(lacks(item, mine, f"{where}[]") for mine in ours)
        ]
    return [] if app == ours else [f"{where} is {ours}, not {app}"]


class Side:
    """One of the two servers with a canvas that both have alike: a note, a terminal, and two agents that are linked."""

    def __init__(self, server: RunningHost) -> None:
        self.server = server
        files = server.project / "text.txt", server.project / "image.png", server.project / "binary.dat"
        for path, data in zip(files, (b"text\n", PNG, b"\0\1\2")):
            path.write_bytes(data)
        self.text, self.image, self.binary = map(str, files)
        self.note = server.value("sticky_open", text="a note")["nodeId"]
        self.terminal = server.value("terminal_open", title="a terminal")["nodeId"]
        self.agent = server.value("agent_launch", agent="custom")["nodeId"]
        self.peer = server.value("agent_launch", agent="custom")["nodeId"]
        self.sender = str(server.data / "agent-tools" / "sessions" / f"{self.agent}.json")
        self.recipient = str(server.data / "agent-tools" / "sessions" / f"{self.peer}.json")
        self._link()
        self.task = self.call("agent_send", session=self.sender, nodeId=self.peer, text="do it", messageId="m-1")

    def _link(self) -> None:
        """As a person does it in the app: an element of the project file's links."""
        path = self.server.project / ".termsprawl" / "project.json"
        document = json.loads(path.read_text())
        config = {"kind": "context-inject", "wrapper": False, "pastePointer": False, "agentMessages": True}
        link = {"id": "l-1", "source": self.agent, "target": self.peer, "kind": "context-inject", "auto": False}
        document.setdefault("links", []).append({**link, "config": config, "createdAt": 1})
        document["rev"] += 1
        path.write_text(json.dumps(document))

    def call(self, operation: str, session: str = "", **args: object) -> dict:
        """The answer to a call, of the shape that is declared for it."""
        answer = self.server.call(operation, session or None, **args)
        assert not answer["ok"] or differs(answer["value"], RESULTS[operation]) == []
        return answer

    def new(self, operation: str, **args: object) -> str:
        """The id of the node that an operation makes."""
        return self.call(operation, **args)["value"]["nodeId"]

    def request(self, method: str, path: str, body: bytes | Iterator[bytes], **headers: str) -> tuple[int, object]:
        """Status and JSON of a request as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port(), timeout=20)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def sides(ctl, tmp_path_factory):
    """(the app's, ours)."""
    from support import chosen

    made = []
    try:
        for kind in (NodeApp, RunningHost):
            root = tmp_path_factory.mktemp("s")
            env = {"PATH": chosen.plain_path(), "HOME": str(root), "SHELL": "/bin/sh"}
            server = kind(ctl, root, env)
            made.append(server)
            (server.data / "agent-tools").mkdir(parents=True, mode=0o700)
            server.data.chmod(0o700)
            program = root / "agent"
            program.write_text("#!/bin/sh\nwhile read -r line; do :; done\n")
            program.chmod(0o755)
            preferences = {
                "custom": {"executable": str(program), "instructionFlag": "--append-system-prompt"},
            }
            (server.data / "agent-tools" / "preferences.json").write_text(json.dumps(preferences))
            server.start()
        yield [Side(server) for server in made]
    finally:
        for server in made:
            server.stop("--kill-sessions")


CALLS = {
    "session_info": lambda side: side.call("session_info"),
    "guide_read": lambda side: side.call("guide_read", topic="terminal"),
    "canvas_list": lambda side: side.call("canvas_list"),
    "canvas_select": lambda side: side.call("canvas_select", nodeIds=[side.note, side.note, side.terminal]),
    "canvas_move": lambda side: side.call("canvas_move", nodeId=side.note, x=1, y=2),
    "canvas_resize": lambda side: side.call("canvas_resize", nodeId=side.note, width=300, height=200),
    "canvas_group": lambda side: side.call(
        "canvas_group", nodeIds=[side.call("sticky_open", text="x")["value"]["nodeId"]]
    ),
    "sticky_open": lambda side: side.call("sticky_open", text="another"),
    "terminal_open": lambda side: side.call("terminal_open"),
    "terminal_read": lambda side: side.call("terminal_read", nodeId=side.terminal),
    "terminal_read of no character": lambda side: side.call("terminal_read", nodeId=side.terminal, maxChars=0),
    "terminal_submit": lambda side: side.call("terminal_submit", nodeId=side.terminal, command="true"),
    "terminal_input": lambda side: side.call("terminal_input", nodeId=side.new("terminal_open"), text="x"),
    "terminal_interrupt": lambda side: side.call("terminal_interrupt", nodeId=side.terminal),
    "terminal_close": lambda side: side.call("terminal_close", nodeId=side.new("terminal_open")),
    "agent_launch": lambda side: side.call("agent_launch", agent="custom"),
    "agent_status": lambda side: side.call("agent_status"),
    "agent_cards": lambda side: side.call("agent_cards", session=side.sender),
    "agent_send": lambda side: side.task,
    "agent_send once more": lambda side: side.call(
        "agent_send", session=side.sender, nodeId=side.peer, text="do it", messageId="m-1"
    ),
    "agent_task": lambda side: side.call("agent_task", session=side.sender, taskId=side.task["value"]["id"]),
    "context_read": lambda side: side.call("context_read", session=side.sender),
    "artifact_open": lambda side: side.call("artifact_open", path=side.text),
    "artifact_open of an image": lambda side: side.call("artifact_open", path=side.image),
    "artifact_open as a diff": lambda side: side.call("artifact_open", path=side.text, view="diff"),
}


def sent(side: Side) -> dict:
    """The answer to a terminal_send, with the revision of a terminal that has shown its prompt."""
    terminal, answers = side.new("terminal_open"), []

    def send() -> bool:
        revision = side.call("terminal_since", nodeId=terminal)["value"]["cursor"]
        args = {"keys": ["Enter"], "expectRevision": revision, "requestId": f"r-{len(answers)}"}
        answers.append(side.call("terminal_send", nodeId=terminal, **args))
        return answers[-1]["ok"]

    until(send, lambda: answers[-1])
    return answers[-1]


EXTENSIONS = {
    "terminal_run": lambda side: side.call("terminal_run", nodeId=side.terminal, command="echo x"),
    "terminal_run without waiting": lambda side: side.call(
        "terminal_run", nodeId=side.new("terminal_open"), command="read x", timeoutMs=0
    ),
    "terminal_run of what ends the shell": lambda side: side.call(
        "terminal_run", nodeId=side.new("terminal_open"), command="exit 3"
    ),
    "terminal_wait": lambda side: side.call("terminal_wait", nodeId=side.terminal, idleMs=1),
    "terminal_wait for an end": lambda side: side.call("terminal_wait", nodeId=side.terminal, exit=True),
    "terminal_since": lambda side: side.call("terminal_since", nodeId=side.terminal),
    "terminal_send": sent,
}
REFUSED = {
    "an unknown operation": lambda side: side.call("nonsense"),
    "an unknown topic": lambda side: side.call("guide_read", topic="nonsense"),
    "a missing argument": lambda side: side.call("canvas_move", nodeId=side.note, x=1),
    "an unknown argument": lambda side: side.call("canvas_list", nonsense=1),
    "a node that is not there": lambda side: side.call("canvas_move", nodeId="n-0", x=1, y=1),
    "a size under the smallest": lambda side: side.call("canvas_resize", nodeId=side.note, width=239, height=200),
    "a height under the smallest": lambda side: side.call("canvas_resize", nodeId=side.note, width=300, height=139),
    "a size over the largest": lambda side: side.call("canvas_resize", nodeId=side.note, width=8001, height=200),
    "an id of 256 characters": lambda side: side.call("canvas_select", nodeIds=["x" * 256]),
    "a browser": lambda side: side.call("browser_open", url="http://127.0.0.1/"),
    "a terminal that is none": lambda side: side.call("terminal_read", nodeId=side.note),
    "a shell command for an agent": lambda side: side.call("terminal_submit", nodeId=side.agent, command="true"),
    "a message without a link": lambda side: side.call(
        "agent_send", session=side.recipient, nodeId=side.agent, text="x", messageId="m-2"
    ),
    "a second task while one is pending": lambda side: side.call(
        "agent_send", session=side.sender, nodeId=side.peer, text="x", messageId="m-3"
    ),
    "the same message with another text": lambda side: side.call(
        "agent_send", session=side.sender, nodeId=side.peer, text="other", messageId="m-1"
    ),
    "a message of blanks": lambda side: side.call(
        "agent_send", session=side.sender, nodeId=side.peer, text=" \n", messageId="m-4"
    ),
    "a message that is too long in UTF-16": lambda side: side.call(
        "agent_send", session=side.sender, nodeId=side.peer, text="\U0001f600" * 8001, messageId="m-5"
    ),
    "an unknown task": lambda side: side.call("agent_task", session=side.sender, taskId="0"),
    "a reply of somebody else": lambda side: side.call(
        "agent_reply", session=side.sender, taskId=side.task["value"]["id"], text="x"
    ),
    "a binary file": lambda side: side.call("artifact_open", path=side.binary),
    "an image as a diff": lambda side: side.call("artifact_open", path=side.image, view="diff"),
    "a file outside the project": lambda side: side.call("artifact_open", path="/etc/passwd"),
    "a relative path": lambda side: side.call("artifact_open", path="text.txt"),
}


@pytest.mark.parametrize("case", CALLS)
def test_our_answer_has_all_that_the_apps_has(sides, case):
    app, ours = (CALLS[case](side) for side in sides)
    assert app["ok"], app
    assert ours["ok"], ours
    assert lacks(shape(app["value"]), shape(ours["value"])) == []


@pytest.mark.parametrize("case", EXTENSIONS)
def test_an_answer_of_the_hosts_own_operations_is_as_declared(sides, case):
    assert EXTENSIONS[case](sides[1])["ok"]


def test_every_operation_of_the_host_declares_its_result_and_has_a_call_here():
    offered = {name for name, one in OPERATIONS.items() if not one.app_only}
    called = {case.split()[0] for case in (*CALLS, *EXTENSIONS)}
    # agent_reply has a test of its own below; a window needs a desktop (tests/windows).
    assert (set(RESULTS) - {"browser_open"}, called | {"agent_reply", "terminal_external"}) == (offered, offered)


def test_a_declared_shape_is_closed_and_typed():
    shape = {"a": "string", "b?": ["number | null"], "c?": {"*": "any"}}
    assert differs({"a": "x", "b": [1, None], "c": {"d": True}}, shape) == []
    found = differs({"b": ["x"], "c": [], "e": 1}, shape)
    assert found == [
        "value.a is missing",
        "value.e is not declared",
        "value.b[] is string, not number | null",
        "value.c is array, not {...}",
    ]
    assert differs([True, 1], ["boolean"]) == ["value[] is number, not boolean"]
    assert written(shape) == "{a: string, b?: [number | null], c?: {...}}"


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_app_refuses_we_refuse(sides, case):
    app, ours = (REFUSED[case](side) for side in sides)
    assert (app["ok"], ours["ok"]) == (False, False)
    assert isinstance(ours["error"], str)


def test_a_reply_can_be_repeated_and_not_changed(sides):
    for side in sides:
        task = side.task["value"]["id"]
        first = side.call("agent_reply", session=side.recipient, taskId=task, text="done")
        assert first["value"]["state"] == "completed"
        assert side.call("agent_reply", session=side.recipient, taskId=task, text="done") == first
        assert side.call("agent_reply", session=side.recipient, taskId=task, text="else")["ok"] is False
        seen = side.call("agent_task", session=side.sender, taskId=task)["value"]
        assert (seen["response"], seen["updatedAt"] >= seen["createdAt"] > time.time() * 1000 - 600_000) == (
            "done",
            True,
        )


REQUESTS = {
    "no token": ("POST", "/call", b"{}", {}),
    "a token that nobody has": ("POST", "/call", b"{}", {"authorization": "Bearer " + "0" * 64}),
    "an origin": ("POST", "/call", b"{}", {"origin": "http://127.0.0.1"}),
    "another path": ("POST", "/other", b"{}", {}),
    "another method": ("GET", "/call", b"", {}),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_is_none_gets_the_same_status_and_words(sides, case):
    method, path, body, headers = REQUESTS[case]
    app, ours = (side.request(method, path, body, **headers) for side in sides)
    assert ours == app


@pytest.mark.parametrize("text", ["x" * 200_000, "[]", "no json"], ids=["too large", "an array", "no JSON"])
def test_a_body_that_is_none_gets_the_same_status(sides, text):
    app, ours = (
        side.request("POST", "/call", text.encode(), authorization=f"Bearer {side.server.token()}") for side in sides
    )
    assert (ours[0], ours[1]["ok"]) == (app[0], app[1]["ok"]) == (400, False)


def test_a_body_in_chunks_is_answered_alike(sides):
    def parts():
        yield b'{"operation": "canvas_select", '
        yield b'"args": {"nodeIds": ["n-0"]}}'

    app, ours = (
        side.request("POST", "/call", parts(), authorization=f"Bearer {side.server.token()}") for side in sides
    )
    assert (ours[0], ours[1]["ok"]) == (app[0], app[1]["ok"]) == (400, False)
    assert "n-0" in ours[1]["error"]


@pytest.mark.parametrize("asked", ["initialize", "server/discover"])
def test_the_instructions_name_what_the_server_at_the_other_end_can_do(ctl, sides, asked):
    texts = []
    for side in sides:
        with McpServer([ctl, "mcp", "--session", side.server.session_file], side.server.env) as bridge:
            answer = bridge.initialize() if asked == "initialize" else bridge.modern(asked)
            texts.append(answer["result"]["instructions"])
        offered = side.call("session_info")["value"]["operations"]
        assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", texts[-1])) <= set(offered)
        # The app's own helper is none of ours.
        assert not re.search(r"--field|TERMSPRAWL_CTL|\btools OPERATION|call \S+ -|\[(app|host)\]", texts[-1])
    app, ours = texts
    assert ("terminal_submit" in app, "terminal_run" in app) == (True, False)
    assert "terminal_run" in ours


ON_A_TERMINAL: dict[str, dict] = {
    "terminal_read": {},
    "terminal_submit": {"command": "x"},
    "terminal_input": {"text": "x"},
    "terminal_interrupt": {},
    "terminal_external": {},
    "terminal_close": {},
    "terminal_run": {"command": "x"},
    "terminal_wait": {"idleMs": 1},
    "terminal_since": {},
    "terminal_send": {"text": "x", "expectRevision": "", "requestId": "e"},
}


def test_every_operation_on_a_terminal_is_there():
    assert set(ON_A_TERMINAL) == {name for name in OPERATIONS if name.startswith("terminal_")} - {"terminal_open"}


@pytest.mark.parametrize("operation", ON_A_TERMINAL)
def test_a_terminal_that_lives_elsewhere_is_refused_by_both(sides, operation):
    for side in sides:
        node = side.new("terminal_open")
        path = side.server.project / ".termsprawl" / "project.json"
        document = json.loads(path.read_text())
        (found,) = [one for one in document["nodes"] if one["id"] == node]
        found["data"]["relayTerm"] = {"machine": "m-1"}
        document["rev"] += 1
        path.write_text(json.dumps(document))
        answer = side.call(operation, nodeId=node, **ON_A_TERMINAL[operation])
        assert not answer["ok"], operation
        assert found in json.loads(path.read_text())["nodes"]
    assert "run by another program" in answer["error"]
    (listed,) = [one for one in side.call("canvas_list")["value"] if one["id"] == node]
    assert listed == {**found, "elsewhere": True}
