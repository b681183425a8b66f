"""Terminals of a running host: what goes in arrives unchanged, what comes out is what the screen says."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from support.waiting import until

# Puts its terminal into raw mode and writes every byte that it reads to a file.
RAW_READER = """\
import os, sys, termios, tty
tty.setraw(0)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, b"READY\\r\\n")
while True:
    os.write(out, os.read(0, 65536))
"""
TRICKY = {
    "a leading dash": "-l --help",
    "a trailing semicolon": "echo a;",
    "only a semicolon": ";",
    "escaped semicolon": "a\\;",
    "tabs": "a\tb\t",
    "newlines": "one\ntwo\n\nthree\n",
    "carriage return": "a\rb\r\n",
    "emoji and combining": "🎉 e\u0301 👩‍👩‍👧 日本",
    "tmux formats": "#{pane_id} #S %1 $HOME ~ `x`",
    "key names": "Enter C-c Escape",
    "control characters": "\x01\x02\x03\x04\x1b[A\x7f",
    "quotes": "'\"\\'$(touch x)",
    "64,000 characters": "0123456789abcdef" * 4000,
}


@pytest.fixture
def raw_reader(host, tmp_path):
    """(node id, path of what arrived) of a terminal whose program reads raw bytes."""
    script = tmp_path / "reader.py"
    script.write_text(RAW_READER)
    arrived = tmp_path / "arrived"
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command=f"python3 {script} {arrived}")
    host.wait_for_text(node, "READY")
    return node, arrived


def wait_for_bytes(path: Path, expected: bytes) -> bytes:
    until(lambda: len(path.read_bytes()) >= len(expected), path.read_bytes)
    return path.read_bytes()


def test_text_that_has_no_bytes_is_refused_and_nothing_of_it_is_typed(host, raw_reader):
    node, arrived = raw_reader
    for text in ("\ud800", "a\udfffb", "\udc00\ud800", "x" * 63_999 + "\udcff"):
        assert host.call("terminal_input", nodeId=node, text=text)["error"] == "Invalid text"
        assert host.call("terminal_submit", nodeId=node, command=text)["error"] == "Invalid command"
        assert host.call("terminal_run", nodeId=node, command=text)["error"] == "Invalid command"
        sent = host.call("terminal_send", nodeId=node, text=text, expectRevision="r", requestId="q")
        assert sent["error"] == "Invalid text"
    host.value("terminal_input", nodeId=node, text="é🎉")
    assert wait_for_bytes(arrived, "é🎉".encode()) == "é🎉".encode()


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY.keys())
def test_input_arrives_byte_for_byte(host, raw_reader, text):
    node, arrived = raw_reader
    assert host.value("terminal_input", nodeId=node, text=text) == {"nodeId": node, "delivered": True}
    assert wait_for_bytes(arrived, text.encode()) == text.encode()


def test_submit_sends_the_text_and_one_enter(host, raw_reader):
    node, arrived = raw_reader
    expected = b""
    for text in TRICKY.values():
        host.value("terminal_submit", nodeId=node, command=text, force=True)
        expected += text.encode() + b"\r"
        assert wait_for_bytes(arrived, expected) == expected


def test_a_shell_runs_exactly_the_submitted_command(host):
    node = host.value("terminal_open", title="work")["nodeId"]
    for number, command in enumerate(["printf '%s\\n' -n 'x;' ';' 'tab\there'", "cd /tmp\nexport KEPT=yes"]):
        host.value("terminal_submit", nodeId=node, command=f"{command}\necho done-$(({number}+70))")
        host.wait_for_text(node, f"done-{70 + number}")
    host.value("terminal_submit", nodeId=node, command='echo "at $PWD kept=$KEPT"')
    assert "at /tmp kept=yes" in host.wait_for_text(node, "at /tmp kept=")


def test_read_joins_wrapped_lines_and_strips_blanks(host):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="clear; printf 'x%.0s' $(seq 500); printf '  \\nend-%s\\n' 1")
    output = host.wait_for_text(node, "end-1")
    assert "x" * 500 + "\nend-1" in output
    assert output == output.rstrip()


def test_read_returns_the_last_max_chars(host):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="seq 30000; echo fin-$((1+1))")
    host.wait_for_text(node, "fin-2")
    read = lambda n: host.value("terminal_read", nodeId=node, maxChars=n)["output"]  # noqa: E731
    default = host.value("terminal_read", nodeId=node)["output"]
    assert len(default) == 16_000
    assert read(100_000) == read(1_000_000)
    assert len(read(100_000)) == 100_000
    assert read(100_000).endswith(read(17))
    assert len(read(17)) == 17
    assert read(0) == read(-5) == read(1)
    assert len(read(1)) == 1


def test_interrupt_stops_what_runs(host):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="cat")
    host.value("terminal_input", nodeId=node, text="ping\n")
    host.wait_for_text(node, "ping\nping")
    host.value("terminal_interrupt", nodeId=node)
    host.value("terminal_submit", nodeId=node, command="echo back-$((20+2))")
    host.wait_for_text(node, "back-22")


def test_input_reaches_a_program_whose_pane_a_person_left_in_copy_mode(host, raw_reader):
    node, arrived = raw_reader
    host.tmux("copy-mode", "-t", f"=ts-{node}:")
    host.value("terminal_submit", nodeId=node, command="qqq", force=True)
    assert wait_for_bytes(arrived, b"qqq\r") == b"qqq\r"


def test_a_closed_terminal_is_gone_with_its_token(host):
    node = host.value("terminal_open")["nodeId"]
    own_session = host.data / "agent-tools" / "sessions" / f"{node}.json"
    assert host.value("session_info", session=str(own_session))["nodeId"] == node
    copy = host.data / "agent-tools" / "sessions" / "copy-of.json"
    copy.write_bytes(own_session.read_bytes())
    assert host.value("terminal_close", nodeId=node) == {"nodeId": node, "closed": True}
    assert not own_session.exists()
    assert host.call("session_info", session=str(copy))["error"] == "Unknown or revoked session"
    assert host.call("terminal_read", nodeId=node)["error"].startswith(f"Unknown node: {node}")
    assert host.value("canvas_list") == []
    assert not (host.data / "agent-tools" / "launch" / node).exists()


def test_a_terminal_whose_shell_exits_is_reported_as_ended_and_can_be_closed(host):
    node = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=node, command="exit")
    until(lambda: not host.call("terminal_read", nodeId=node)["ok"], "the end of the shell")
    for operation, args in (("terminal_read", {}), ("terminal_submit", {"command": "ls"}), ("terminal_interrupt", {})):
        assert "has ended" in host.call(operation, nodeId=node, **args)["error"]
    assert host.value("terminal_close", nodeId=node)["closed"]
    assert host.value("canvas_list") == []


def test_when_the_tmux_server_is_killed_the_host_says_so_and_goes_on(host):
    lost = host.value("terminal_open")["nodeId"]
    host.tmux("kill-server")
    assert "has ended" in host.call("terminal_read", nodeId=lost)["error"]
    fresh = host.value("terminal_open")["nodeId"]
    host.value("terminal_submit", nodeId=fresh, command="echo alive-$((1+1))")
    host.wait_for_text(fresh, "alive-2")


def test_an_agent_may_look_at_its_own_terminal_but_not_steer_it(host):
    node = host.value("terminal_open")["nodeId"]
    own = str(host.data / "agent-tools" / "sessions" / f"{node}.json")
    assert host.value("terminal_read", session=own, nodeId=node)["nodeId"] == node
    steering = [
        ("terminal_submit", {"command": "x"}),
        ("terminal_input", {"text": "x"}),
        ("terminal_interrupt", {}),
        ("terminal_close", {}),
    ]
    for operation, args in steering:
        assert host.call(operation, session=own, nodeId=node, **args)["error"].startswith("This is your own terminal")
    assert host.value("terminal_read", nodeId=node)["nodeId"] == node


def test_a_terminal_finds_its_own_session_through_its_environment(host):
    node = host.value("terminal_open")["nodeId"]
    command = '"$TERMSPRAWL_CTL" call session_info --field value.nodeId; cat "$TERMSPRAWL_SYSTEM_PROMPT_FILE" | head -1'
    host.value("terminal_submit", nodeId=node, command=command + "; echo over-$((1+1))")
    output = host.wait_for_text(node, "over-2")
    assert f"\n{node}\n" in output
    assert host.token() not in output


def test_the_token_stands_in_no_process_and_no_log(host):
    node = host.value("terminal_open")["nodeId"]
    session = (host.data / "agent-tools" / "sessions" / f"{node}.json").read_text()
    tokens = [host.token().encode(), session.split('"token": "')[1][:64].encode()]
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            for part in ("cmdline", "environ"):
                try:
                    content = (process / part).read_bytes()
                except OSError:
                    continue
                assert not [token for token in tokens if token in content]
    log = (host.data / "host.log").read_bytes()
    assert not [token for token in tokens if token in log]


def test_two_projects_on_one_host_never_see_each_others_nodes(host, tmp_path):
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    node = host.value("terminal_open")["nodeId"]
    other = host.start(other_folder)
    assert host.value("canvas_list", session=other) == []
    for operation, args in (("terminal_read", {}), ("terminal_submit", {"command": "x"}), ("terminal_close", {})):
        assert host.call(operation, session=other, nodeId=node, **args)["error"].startswith(f"Unknown node: {node}")
    # Not even when the other project's file claims the node.
    claim = (host.project / ".termsprawl" / "project.json").read_bytes()
    (other_folder / ".termsprawl").mkdir()
    (other_folder / ".termsprawl" / "project.json").write_bytes(claim)
    for operation, args in (("terminal_read", {}), ("terminal_submit", {"command": "x"})):
        assert "or for another project" in host.call(operation, session=other, nodeId=node, **args)["error"]
    host.call("terminal_close", session=other, nodeId=node)
    assert host.value("terminal_read", nodeId=node)["nodeId"] == node


def test_a_prefix_of_a_node_id_is_another_node(host):
    node = host.value("terminal_open")["nodeId"]
    for wrong in (node[:-1], node[:3], "", ".", "=" + node, node + ":0", "*"):
        assert host.call("terminal_read", nodeId=wrong)["error"].startswith("Unknown node")


def test_a_project_file_that_is_broken_stops_terminal_open_before_anything_starts(host):
    folder = host.project / ".termsprawl"
    folder.mkdir()
    for content in ("{", "[]", '{"version": 2, "nodes": []}', '{"version": 1}'):
        (folder / "project.json").write_text(content)
        assert "project file" in host.call("terminal_open")["error"]
        assert (folder / "project.json").read_text() == content
    assert host.tmux("list-sessions").returncode != 0
    assert len(list((host.data / "agent-tools" / "sessions").iterdir())) == 1


def test_foreign_content_of_the_project_file_survives(host):
    folder = host.project / ".termsprawl"
    folder.mkdir()
    (folder / "project.json").write_text(
        textwrap.dedent("""\
        {"version": 1, "rev": 41, "theme": {"dark": true}, "nodes": [
          {"id": "w-1", "type": "whiteboard", "position": {"x": 10, "y": 0}, "style": {"width": 100, "height": 9},
           "data": {"strokes": [1.5, 2]}}, "not even a node"]}""")
    )
    node = host.value("terminal_open")["nodeId"]
    listed = host.value("canvas_list")
    assert json.loads((host.project / ".termsprawl" / "project.json").read_text())["rev"] == 42
    assert listed[:2] == [
        {
            "id": "w-1",
            "type": "whiteboard",
            "position": {"x": 10, "y": 0},
            "style": {"width": 100, "height": 9},
            "data": {"strokes": [1.5, 2]},
        },
        "not even a node",
    ]
    assert listed[2]["id"] == node
    assert listed[2]["position"]["x"] >= 110
    assert '"theme"' in (folder / "project.json").read_text()
    assert host.call("terminal_read", nodeId="w-1")["error"].startswith("Node w-1 is not a terminal")


def test_a_data_directory_that_cannot_take_a_node_is_named_and_nothing_is_left(host):
    launch = host.data / "agent-tools" / "launch"
    launch.write_text("in the way")
    error = host.call("terminal_open")["error"]
    assert error.startswith("terminal_open failed: ")
    assert str(launch) in error
    assert host.tmux("list-sessions").returncode != 0
    assert len(list((host.data / "agent-tools" / "sessions").iterdir())) == 1
    assert host.value("canvas_list") == []
    launch.unlink()
    assert host.value("terminal_open")["nodeId"]
