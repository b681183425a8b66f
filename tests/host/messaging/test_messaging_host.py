"""Agents that give each other work on a running host, through real terminals."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from pathlib import Path

import pytest
from support.node_server import PtyProgram
from support.waiting import until

HOSTILE = "$(touch {0}/a) `touch {0}/b` '; touch {0}/c; '\n!!\n\ttouch {0}/d\n; touch {0}/e"


class Pair:
    """Two terminals of one host, `a` linked to `b`, and calls in their names."""

    def __init__(self, host) -> None:
        self.host = host
        self.a = host.value("terminal_open", title="Asker")["nodeId"]
        self.b = host.value("terminal_open", title="Worker")["nodeId"]
        assert self.link("link", self.a, self.b).returncode == 0

    def link(self, *words: str):
        return self.host.run("host", *words, "--data", str(self.host.data))

    def session(self, node: str) -> str:
        return str(self.host.data / "agent-tools" / "sessions" / f"{node}.json")

    def call(self, node: str, operation: str, **args) -> dict:
        return self.host.call(operation, session=self.session(node), **args)

    def value(self, node: str, operation: str, **args) -> dict:
        return self.host.value(operation, session=self.session(node), **args)

    def error(self, node: str, operation: str, **args) -> str:
        return self.call(node, operation, **args)["error"]

    def send(self, text: str, message_id: str) -> dict:
        return self.value(self.a, "agent_send", nodeId=self.b, text=text, messageId=message_id)

    def shell(self, node: str, command: str) -> None:
        self.host.value("terminal_submit", nodeId=node, command=command)


@pytest.fixture
def pair(host) -> Pair:
    return Pair(host)


def test_two_shells_acting_as_agents_exchange_a_task_and_a_reply(pair):
    host = pair.host
    ctl = '"$TERMSPRAWL_CTL" call'
    pair.shell(pair.a, f"{ctl} agent_send nodeId={pair.b} messageId=m1 text='count the files, please' --field value")
    output = host.wait_for_text(pair.a, '"submitted"')
    task_id = re.search(r'"id": ?"([0-9a-f-]{36})"', output).group(1)
    shown = host.wait_for_text(pair.b, "count the files, please")
    assert f'Task ID: {task_id}. Source agent: "{pair.a}".' in shown
    pair.shell(pair.b, f'{ctl} agent_reply taskId={task_id} text="there are $((40+2)) files" --field ok')
    host.wait_for_text(pair.b, "\ntrue\n")
    pair.shell(pair.a, f"clear; {ctl} agent_task taskId={task_id} --field value.response")
    host.wait_for_text(pair.a, "there are 42 files")
    task = pair.value(pair.a, "agent_task", taskId=task_id)
    assert time.time() * 1000 >= task["updatedAt"] > task["createdAt"] > (time.time() - 600) * 1000
    assert {name: value for name, value in task.items() if not name.endswith("At")} == {
        "id": task_id,
        "projectId": json.loads(Path(pair.session(pair.a)).read_text())["projectId"],
        "messageId": "m1",
        "sourceNodeId": pair.a,
        "targetNodeId": pair.b,
        "text": "count the files, please",
        "state": "completed",
        "response": "there are 42 files",
    }
    assert pair.value(pair.b, "agent_task", taskId=task_id) == task


def test_a_restart_in_the_middle_fails_the_task_and_sends_nothing_again(pair):
    host = pair.host
    task = pair.send("slow-work", "m1")
    host.wait_for_text(pair.b, "slow-work")
    shown = host.value("terminal_read", nodeId=pair.b)["output"]
    host.stop()
    stored = json.loads((host.data / "agent-tools" / "tasks" / f"{task['id']}.json").read_text())
    assert stored["state"] == "submitted"
    host.start()
    failed = pair.value(pair.a, "agent_task", taskId=task["id"])
    assert failed["state"] == "failed"
    assert "The work was not sent again" in failed["response"]
    assert pair.error(pair.b, "agent_reply", taskId=task["id"], text="done").startswith(
        f"Task {task['id']} is over, failed: The host was restarted"
    )
    assert pair.send("slow-work", "m1") == failed
    assert host.value("terminal_read", nodeId=pair.b)["output"] == shown
    again = pair.send("slow-work", "m2")
    assert again["state"] == "submitted"
    assert pair.value(pair.b, "agent_reply", taskId=again["id"], text="no", state="failed")["state"] == "failed"


def test_the_same_message_twice_is_typed_once(pair):
    task = pair.send("only-once", "m1")
    assert pair.send("only-once", "m1") == task
    pair.host.wait_for_text(pair.b, "only-once")
    assert pair.host.value("terminal_read", nodeId=pair.b)["output"].count("only-once") == 1
    assert "was used for another task" in pair.error(
        pair.a, "agent_send", nodeId=pair.b, text="something else", messageId="m1"
    )
    assert f"{pair.b} has a pending task already" in pair.error(
        pair.a, "agent_send", nodeId=pair.b, text="more", messageId="m2"
    )
    assert len(list((pair.host.data / "agent-tools" / "tasks").iterdir())) == 1


def test_only_the_recipient_answers_and_only_those_two_know_of_a_task(pair, tmp_path):
    task_id = pair.send("x", "m1")["id"]
    assert "was not sent to you" in pair.error(pair.a, "agent_reply", taskId=task_id, text="me")
    third = pair.host.value("terminal_open")["nodeId"]
    for operation, args in (("agent_task", {}), ("agent_reply", {"text": "x"})):
        assert pair.error(third, operation, taskId=task_id, **args).startswith(f"Unknown task: {task_id}")
        assert pair.error(pair.b, operation, taskId="../../server.lock", **args).startswith("Unknown task: ../..")
    assert "control character U+001B" in pair.error(pair.b, "agent_reply", taskId=task_id, text="\x1b[2J")
    assert pair.value(pair.b, "agent_reply", taskId=task_id, text="fine")["state"] == "completed"
    assert pair.value(pair.b, "agent_reply", taskId=task_id, text="fine")["response"] == "fine"
    assert "is over, completed" in pair.error(pair.b, "agent_reply", taskId=task_id, text="better")


def test_work_goes_along_enabled_links_only(pair, tmp_path):
    host, args = pair.host, {"text": "x", "messageId": "m1"}
    assert "No enabled link leads from you" in pair.error(pair.b, "agent_send", nodeId=pair.a, **args)
    assert "No enabled link leads from you" in host.call("agent_send", nodeId=pair.b, **args)["error"]
    for stranger in ("zz", pair.a, f"cli-{pair.a[2:]}"):
        assert pair.error(pair.a, "agent_send", nodeId=stranger, **args).startswith(f"Unknown agent: {stranger}")
    file = host.project / ".termsprawl" / "project.json"
    good = file.read_text()
    for old, new in (
        ('"agentMessages": true', '"agentMessages": false'),
        ('"agentMessages": true', '"other": true'),
        ('"kind": "context-inject"', '"kind": "a2a-peer"'),
        (f'"target": "{pair.b}"', f'"target": "{pair.b}x"'),
    ):
        assert old in good
        file.write_text(good.replace(old, new))
        assert "No enabled link" in pair.error(pair.a, "agent_send", nodeId=pair.b, **args)
    file.write_text(good)
    foreign = tmp_path / "other"
    foreign.mkdir()
    other_node = host.value("terminal_open", session=host.start(foreign))["nodeId"]
    done = pair.link("link", pair.a, other_node)
    assert done.returncode == 1
    assert b"belong to different projects" in done.stderr
    assert list((host.data / "agent-tools" / "tasks").iterdir()) == []


def test_a_recipient_that_has_ended_gets_no_work_and_loses_what_it_had(pair):
    host = pair.host
    task_id = pair.send("x", "m1")["id"]
    host.tmux("kill-session", "-t", f"=ts-{pair.b}")
    task = pair.value(pair.a, "agent_task", taskId=task_id)
    assert (task["state"], "has ended" in task["response"]) == ("failed", True)
    error = pair.error(pair.a, "agent_send", nodeId=pair.b, text="x", messageId="m2")
    assert error.startswith(f"The terminal of {pair.b} has ended")


def test_cards_tell_whom_work_can_be_sent_to(pair):
    plain = pair.host.value("terminal_open")["nodeId"]
    own, other = pair.value(pair.a, "agent_cards")
    assert own["enabledPeerIds"] == [pair.b]
    assert other == {
        "nodeId": pair.b,
        "projectId": own["projectId"],
        "name": "Worker",
        "preset": "custom",
        "command": "shell",
        "integration": {
            "state": "cli-fallback",
            "adapter": "shell-cli",
            "version": "",
            "reason": "Use the CLI in TERMSPRAWL_CTL",
        },
        "capabilities": ["agent_cards", "agent_send", "agent_task", "agent_reply"],
        "enabledPeerIds": [],
        "transport": "termsprawl-local-tools",
        "running": True,
    }
    assert pair.value(pair.b, "agent_cards") == [other, own]
    assert [card["nodeId"] for card in pair.value(plain, "agent_cards")] == [plain]
    pair.host.tmux("kill-session", "-t", f"=ts-{pair.b}")
    assert [card["running"] for card in pair.value(pair.a, "agent_cards")] == [True, False]
    pair.link("unlink", pair.a, pair.b)
    assert [card["nodeId"] for card in pair.value(pair.a, "agent_cards")] == [pair.a]


def test_a_reply_is_waited_for_and_comes_as_soon_as_it_is_there(pair):
    task = pair.send("x", "m1")
    assert pair.value(pair.a, "agent_task", taskId=task["id"], waitMs=1)["state"] == "submitted"
    found = []
    waiting = threading.Thread(
        target=lambda: found.append(pair.value(pair.a, "agent_task", taskId=task["id"], waitMs=30_000))
    )
    waiting.start()
    pair.value(pair.b, "agent_reply", taskId=task["id"], text="there")
    waiting.join(60)
    assert found[0]["response"] == "there"


def test_a_closed_node_fails_its_tasks(pair):
    task = pair.send("x", "m1")
    pair.host.value("terminal_close", nodeId=pair.b)
    failed = pair.value(pair.a, "agent_task", taskId=task["id"])
    assert (failed["state"], "was closed" in failed["response"]) == ("failed", True)


def test_links_are_made_listed_and_taken_away_on_the_command_line(pair):
    a, b = pair.a, pair.b
    assert pair.link("links").stdout.decode() == f"{a} -> {b}  {pair.host.project}\n"
    assert pair.link("link", a, b).returncode == 0
    assert pair.link("link", b, a).returncode == 0
    listed = json.loads(pair.link("links", "--json").stdout)
    assert sorted((one["kind"], one["from"], one["to"], one["gone"]) for one in listed) == sorted(
        [("messages", a, b, []), ("messages", b, a, [])]
    )
    assert pair.link("unlink", a, b).returncode == 0
    again = pair.link("unlink", a, b)
    assert (again.returncode, again.stdout) == (1, b"")
    assert f"There is no link from {a} to {b}." in again.stderr.decode()
    pair.host.value("terminal_close", nodeId=a)
    assert pair.link("links").stdout.decode() == f"{b} -> {a}  {pair.host.project}  ({a} is gone)\n"
    assert pair.link("unlink", b, a).returncode == 0
    assert json.loads((pair.host.project / ".termsprawl" / "project.json").read_text())["links"] == []
    assert (pair.link("links").stdout, json.loads(pair.link("links", "--json").stdout)) == (b"", [])
    person = "cli-" + pair.host.session_file.rpartition("cli-")[2][: -len(".json")]
    for sender, recipient, error in (
        (b, "zz", "Unknown node: zz."),
        ("../x", b, "Unknown node: ../x."),
        (b, b, "cannot be linked to itself"),
        (b, person, f"{person} has no terminal"),
    ):
        done = pair.link("link", sender, recipient)
        assert done.returncode == 1
        assert error in done.stderr.decode()
    assert pair.link("link", person, b).returncode == 0
    assert pair.host.value("agent_send", nodeId=b, text="from a person", messageId="1")["sourceNodeId"] == person


def test_what_is_in_the_way_of_a_task_is_waited_out_for_a_moment_and_then_named(pair):
    host = pair.host
    pair.shell(pair.b, "exec bash --norc")
    pair.shell(pair.b, "read -s -t 1 secret; echo 'go''ne'")
    host.value("terminal_wait", nodeId=pair.b, idleMs=300)
    assert pair.send("after the question", "m1")["state"] == "submitted"
    assert "after the question" in host.wait_for_text(pair.b, "gone")
    target = f"=ts-{pair.b}"
    window = PtyProgram(host.attach_argv(target), host.env)
    try:
        until(lambda: host.tmux("list-clients", "-t", target).stdout, "the window")
        window.type(b"\x15")
        assert pair.value(pair.b, "agent_reply", taskId=task_of(host, pair.b), text="done")["state"] == "completed"
        assert pair.send("after the person", "m2")["state"] == "submitted"
    finally:
        window.stop()
    pair.value(pair.b, "agent_reply", taskId=task_of(host, pair.b), text="done")
    pair.shell(pair.b, "read -s secret")
    host.value("terminal_wait", nodeId=pair.b, idleMs=300)
    before = host.value("terminal_read", nodeId=pair.b)["output"]
    assert "does not show what is typed" in pair.error(pair.a, "agent_send", nodeId=pair.b, text="no", messageId="m3")
    assert host.value("terminal_read", nodeId=pair.b)["output"] == before


def test_an_agent_that_asks_its_user_gets_no_task_until_that_is_answered(pair, tmp_path):
    host = pair.host
    agent = tmp_path / "asking"
    agent.write_text("#!/bin/sh\nprintf 'May I?\\n\u276f 1. Yes\\n  2. No\\n'; read x; clear; echo ready; exec cat\n")
    agent.chmod(0o755)
    preferences = host.data / "agent-tools" / "preferences.json"
    preferences.write_text(json.dumps({"customAgent": {"executable": str(agent)}}))
    node = host.value("agent_launch", agent="custom")["nodeId"]
    assert pair.link("link", pair.a, node).returncode == 0
    host.wait_for_text(node, "2. No")
    error = pair.error(pair.a, "agent_send", nodeId=node, text="too early", messageId="m1")
    assert "asks its user something; nothing was typed" in error
    assert "too early" not in host.value("terminal_read", nodeId=node)["output"]
    host.value("terminal_input", nodeId=node, text="\r")
    host.wait_for_text(node, "ready")
    assert pair.value(pair.a, "agent_send", nodeId=node, text="in time", messageId="m2")["state"] == "submitted"
    assert "in time" in host.wait_for_text(node, "in time")


def task_of(host, node: str) -> str:
    """The id of the task that stands last in a terminal."""
    return re.findall(r"Task ID: ([0-9a-f-]{36})", host.value("terminal_read", nodeId=node)["output"])[-1]


SHELLS = {
    "bash": "exec bash --norc",
    "zsh": "exec zsh -f",
    "dash": "exec dash",
    "fish": "exec fish --no-config",
    "mksh": "exec mksh",
    "tcsh": "exec tcsh -f",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_runs_nothing_of_a_task_nor_of_what_a_person_had_begun_to_type(pair, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    host, quiet = pair.host, tmp_path / "quiet"
    quiet.mkdir()
    # The marks that are looked for never stand in the command line itself.
    pair.shell(pair.b, f"{SHELLS[shell]}")
    pair.shell(pair.b, "echo 're''ady'")
    host.wait_for_text(pair.b, "\nready")
    host.value("terminal_input", nodeId=pair.b, text=f"touch {quiet}/typed ")
    host.wait_for_text(pair.b, "/typed")
    task = pair.send(HOSTILE.format(quiet) + f"\ntouch {quiet}/last", "m1")
    pair.shell(pair.b, "echo 'ov''er'")
    shown = host.wait_for_text(pair.b, "\nover")
    assert task["id"] in shown
    assert ("/last" in shown) == (shell != "tcsh")
    assert list(quiet.iterdir()) == []


def test_a_line_that_the_terminal_itself_edits_is_dropped_too(pair, tmp_path):
    """A person has begun to type while a program runs that reads whole lines."""
    lines = tmp_path / "lines"
    pair.shell(pair.b, f"cat > {lines}")
    until(lines.exists, "the program")  # before, the shell would not show what is typed
    pair.host.value("terminal_input", nodeId=pair.b, text="half a line")
    pair.host.wait_for_text(pair.b, "half a line")
    task = pair.send("the task", "m1")
    last = f'{{"text":"the task"}}\nTERMSPRAWL_TASK_{task["id"]}\n'
    until(lambda: lines.read_text().endswith(last), lines.read_text)
    assert lines.read_text().startswith(": <<'TERMSPRAWL_TASK_")


AGENT = """\
import os, sys, termios, tty
tty.setraw(0)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, b"\\x1b[?2004hREADY\\r\\n")
while True:
    os.write(out, os.read(0, 1 << 20) + b"|")
"""


def test_a_program_gets_one_bracketed_paste_and_then_enter_by_itself(pair, tmp_path):
    script, arrived = tmp_path / "agent.py", tmp_path / "arrived"
    script.write_text(AGENT)
    pair.shell(pair.b, f"exec python3 {script} {arrived}")
    pair.host.wait_for_text(pair.b, "READY")
    task = pair.send("line one\n\tline two 日本 🎉;", "m1")
    until(lambda: arrived.exists() and arrived.read_bytes().endswith(b"\r|"), "Enter")
    reads = arrived.read_bytes().decode().split("|")[:-1]
    assert reads[-1] == "\r"
    pasted = "".join(reads[:-1])
    assert pasted.startswith("\x1b[200~: <<'")
    assert pasted.endswith(f'{{"text":"line one\\n\\tline two 日本 🎉;"}}\nTERMSPRAWL_TASK_{task["id"]}\x1b[201~')
    assert pasted.count("\x1b") == 2


def test_texts_and_tokens_of_agents_stand_in_no_log(pair):
    pair.send("a-secret-text", "m1")
    log = Path(pair.host.data / "host.log").read_text()
    assert "a-secret-text" not in log
    assert json.loads(Path(pair.session(pair.a)).read_text())["token"] not in log
