"""What agents may read of each other's conversations, and what not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from termsprawlctl.agents.clis import claude_files
from termsprawlctl.agents.model.turn import Turn
from termsprawlctl.host.messaging import context
from termsprawlctl.host.messaging.context import Part


def line(who: str, content, **more) -> bytes:
    return json.dumps({"type": who, "message": {"role": who, "content": content}, **more}).encode()


def said(text: str) -> list[dict]:
    return [{"type": "text", "text": text}]


def answered(text) -> list[dict]:
    return [{"type": "tool_result", "tool_use_id": "t", "content": text}]


def session_info(node: str, indent=None) -> str:
    value = {"nodeId": node, "projectId": "p-1", "instanceId": "i-1", "operations": []}
    return json.dumps({"ok": True, "value": value}, indent=indent)


def test_what_was_said_is_read_and_nothing_else():
    lines = [
        b"",
        b"{",
        b'"user"',
        b'{"type": "user"}',
        b'{"type": "user", "message": {"content": [1, null, {"type": "text"}]}}',
        line("user", "please look", timestamp="2026-01-02T03:04:05Z"),
        line(
            "assistant",
            [{"type": "thinking", "thinking": "hidden"}, *said("I look."), {"type": "tool_use", "name": "X"}],
        ),
        line("user", answered("secret output")),
        line("user", said("from a subagent"), isSidechain=True),
        line("user", "put in by the program", isMeta=True),
        line("user", "<command-name>/clear</command-name>"),
        line("user", "<system-reminder>\nrules\n</system-reminder>"),
        line("user", "<system-reminder>rules</system-reminder>\nand you?"),
        line("summary", "user"),
        line("assistant", said(" done \n")),
        b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "cut off',
    ]
    assert claude_files.turns(lines) == [
        Turn("user", "2026-01-02T03:04:05Z", "please look"),
        Turn("assistant", "", "I look."),
        Turn("user", "", "and you?"),
        Turn("assistant", "", "done"),
    ]


@pytest.mark.parametrize("content", [session_info("n-1"), said(session_info("n-1")), session_info("n-1", 2)])
def test_a_transcript_names_its_node_by_what_session_info_answered_first(content):
    lines = [line("user", "hi"), line("user", answered(content)), line("user", answered(session_info("n-2")))]
    assert claude_files.named_node(lines) == "n-1"


@pytest.mark.parametrize(
    "content",
    [
        session_info("n-1"),
        said(session_info("n-1")),
        answered(f"$ call session_info\n{session_info('n-1')}"),
        answered(json.dumps({"ok": True, "value": {"nodeId": "n-9", "output": session_info("n-1")}})),
        answered(json.dumps({"ok": False, "value": {"nodeId": "n-1", "instanceId": "i"}})),
        answered('{"instanceId" ' + "[" * 100_000),
    ],
)
def test_words_of_others_do_not_name_a_node(content):
    assert claude_files.named_node([line("user", content)]) is None


def test_the_most_recent_turns_fit_into_the_limit():
    turns = [Turn("user", "", f"turn {number:03} " + "x" * 90) for number in range(100)]
    text = context.render([Part("# a", turns)], 1000)
    assert len(text) <= 1000
    assert text.startswith("# a\n\nuser:\nturn 091")
    assert "turn 099" in text
    assert len(context.render([Part("# a", turns)], 100_000)) > 10_000


def test_room_that_one_peer_does_not_need_goes_to_the_next():
    long = Part("# long", [Turn("user", "", "y" * 95) for _ in range(100)])
    short = Part("# short", [Turn("assistant", "", "brief")])
    text = context.render([short, long], 1000)
    assert "brief" in text
    assert len(text) <= 1000
    assert text.count("y" * 95) == 9
    text = context.render([long, long], 1000)
    assert text.count("# long") == 2
    assert len(text) <= 1000


def test_of_a_turn_that_is_too_long_the_end_is_kept():
    text = context.render([Part("# a", [Turn("user", "", "old"), Turn("assistant", "", "z" * 5000 + "END")])], 300)
    assert len(text) == 300
    assert text.startswith("# a\n\nzzz")
    assert text.endswith("END")


@pytest.fixture
def claude(tmp_path) -> Path:
    """A configuration folder of Claude Code with one transcript of the folder /p/x.y in it."""
    write(tmp_path, "s-1", line("user", "hello"))
    (tmp_path / "sessions").mkdir()
    return tmp_path


def write(folder: Path, session: str, *lines: bytes, slug: str = "-p-x-y", age_s: int = 0) -> Path:
    path = folder / "projects" / slug / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + b"\n")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def find(claude: Path, node: str, pids=(), folder: str = "/p/x.y") -> str | None:
    return claude_files.find(str(claude), node, list(pids), folder)


def test_the_record_of_a_process_on_the_terminal_leads_to_its_transcript(claude):
    (claude / "sessions" / "41.json").write_text(json.dumps({"pid": 41, "sessionId": "s-2"}))
    path = write(claude, "s-2", slug="-somewhere-else")
    assert find(claude, "n-1", [40, 41]) == str(path)
    assert find(claude, "n-1", [40]) is None


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"sessionId": 1}', '{"sessionId": "../../s-1"}', '{"sessionId": "gone"}']
)
def test_a_record_that_leads_nowhere_leads_to_no_other_transcript(claude, content):
    (claude / "sessions" / "41.json").write_text(content)
    assert find(claude, "n-1", [41]) is None


def test_without_a_record_the_transcript_has_to_name_the_node(claude):
    mine = write(claude, "s-2", line("user", answered(session_info("n-1"))), age_s=50)
    write(claude, "s-3", line("user", answered(session_info("n-2"))))
    write(claude, "s-4", line("user", answered(session_info("n-1"))), age_s=100)
    os.mkfifo(mine.parent / "pipe.jsonl")
    assert find(claude, "n-1") == str(mine)
    assert find(claude, "n-3") is None
    assert find(claude, "n-1", folder="/p/other") is None
    assert find(claude / "gone", "n-1") is None


def test_the_directory_of_a_very_long_path_is_found_by_its_beginning(claude):
    folder = "/p/" + "long/" * 60
    path = write(
        claude, "s-2", line("user", answered(session_info("n-1"))), slug=claude_files.slug(folder)[:200] + "-1x"
    )
    assert find(claude, "n-1", folder=folder) == str(path)


def test_only_the_end_of_a_long_transcript_is_read(claude, monkeypatch):
    monkeypatch.setattr(claude_files, "TAIL_BYTES", 1000)
    path = write(claude, "s-2", *(line("user", f"turn {number}") for number in range(100)))
    found = claude_files.recent_turns(str(path))
    assert 5 < len(found) < 20
    assert found[-1].text == "turn 99"
    assert claude_files.recent_turns(str(path.parent)) == claude_files.recent_turns("/no/such") == []


# Acts as a Claude Code that runs in a terminal: leaves its record and its transcript.
STAND_IN = """\
import json, os, sys, time
home, session, text = sys.argv[1:]
os.makedirs(f"{home}/sessions", exist_ok=True)
folder = f"{home}/projects/" + "".join(c if c.isalnum() else "-" for c in os.getcwd())
os.makedirs(folder, exist_ok=True)
with open(f"{home}/sessions/{os.getpid()}.json", "w") as record:
    json.dump({"pid": os.getpid(), "sessionId": session, "cwd": os.getcwd()}, record)
with open(f"{folder}/{session}.jsonl", "w") as transcript:
    json.dump({"type": "user", "timestamp": "T1", "message": {"content": text}}, transcript)
print("writ" + "ten", flush=True)
time.sleep(600)
"""


def test_agents_read_what_linked_peers_said_and_nobody_else(host, tmp_path):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    home = Path(host.env["HOME"]) / ".claude"
    sessions = host.data / "agent-tools" / "sessions"
    names = ("asker", "peer", "stranger", "silent")
    nodes = {name: host.value("terminal_open", title=name.title())["nodeId"] for name in names}
    for name in names[:3]:
        command = f"python3 {script} {home} s-{name} 'the words of {name}'"
        host.value("terminal_submit", nodeId=nodes[name], command=command)
        host.wait_for_text(nodes[name], "written")
    # The newest one of all: somebody works in the folder outside the canvas.
    write(home, "s-outside", line("user", "the words of an outsider"), slug=claude_files.slug(str(host.project)))

    def read(name: str) -> dict:
        return host.value("context_read", session=str(sessions / f"{nodes[name]}.json"))

    def link(sender: str, recipient: str) -> None:
        done = host.run("host", "link", "--context", nodes[sender], nodes[recipient], "--data", str(host.data))
        assert done.returncode == 0, done.stderr

    def found(text: str, **more: str) -> dict:
        return {"text": text, "reader": "claude-jsonl", **more}

    nobody = "No agent is linked to you for reading (host link --context)."
    assert read("asker") == found("", reason=nobody)
    # Sending work is another link: it lets nobody read.
    assert host.run("host", "link", nodes["asker"], nodes["peer"], "--data", str(host.data)).returncode == 0
    assert read("asker") == found("", reason=nobody)
    link("asker", "silent")
    reason = f"No transcript that can be read and told apart: {nodes['silent']} (shell)."
    assert read("asker") == found("", reason=reason)
    link("asker", "peer")
    assert read("asker") == found(f"# {nodes['peer']} (shell) Peer\n\nuser, T1:\nthe words of peer")
    assert read("peer") == found(f"# {nodes['asker']} (shell) Asker\n\nuser, T1:\nthe words of asker")
    assert read("stranger")["text"] == host.value("context_read")["text"] == ""
