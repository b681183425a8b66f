"""What others wrote and a person reads: nothing of it is obeyed by their terminal, or typed into their shell."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest
from support.scripted_server import ScriptedServer, answer
from support.session_files import SessionFiles

from termsprawlctl.base.text import harmless

# Sets the title, hides what follows, the same with one byte instead of two, and turns the line around.
EVIL = "a\x1b]0;owned\x07b\x1b[8mc\x9b8md\x9d0;owned\x9ce\x7f\u202ef\u2066g\rh"
EVIL += "\u061ci\u200bj\u200ek\u2028l\u2029m\ufeffn\U000e0041o\U000e0100p"  # what nobody sees
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e0fff]"
)
# What this program itself paints: colours, another screen, the cursor's place.
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?1049[hl]|\?25[hl]|H|2J)")


def at_a_terminal(argv: list[str], env: dict, cwd=None) -> str:
    """Everything that a program prints to its terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, env={**env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    with contextlib.suppress(OSError):  # Linux's way of saying that nobody has the other end any more
        while select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
            data = os.read(ours, 65536)
            if not data:
                break
            shown += data
    os.close(ours)
    assert process.wait(10) in (0, 1, 2)
    # The terminal's driver makes \r\n of each \n.
    return shown.decode().replace("\r\n", "\n")


def app(answers: dict):
    """An app that gives these answers (operation -> ToolResult)."""

    def script(connection):
        request = connection.read_request().json
        connection.send(answer(json.dumps(answers.get(request["operation"], {"ok": False, "error": EVIL})).encode()))

    return ScriptedServer(script)


NODE = {"id": "n-1", "type": "terminal", "position": {"x": 0, "y": 0}, "data": {"title": EVIL, "kind": EVIL}}
ANSWERS = {
    "session_info": {"ok": True, "value": {"nodeId": EVIL, "projectId": EVIL, "instanceId": EVIL, "appVersion": EVIL}},
    "terminal_read": {"ok": True, "value": {"output": EVIL}},
    "canvas_list": {"ok": True, "value": [NODE, {**NODE, "id": EVIL, "type": "sticky"}]},
}


@pytest.mark.parametrize(
    "words",
    [
        ("call", "terminal_read"),
        ("call", "terminal_read", "--field", "value.output"),
        ("call", "canvas_list"),
        ("call", "other"),
        ("doctor", "--explain"),
        ("map",),
        ("map", "--svg", "-"),
        ("call", "terminal_read", EVIL),
        (EVIL,),
        ("host", "status", "--data", f"/nowhere/{EVIL}"),
        ("tui", "context", "--endpoint", f"/nowhere/{EVIL}"),
    ],
    ids=lambda words: " ".join(words).encode("unicode-escape").decode()[:50],
)
def test_a_terminal_gets_no_control_character_of_anybody_else(ctl, tmp_path, hermetic_env, words):
    with app(ANSWERS) as server:
        files = SessionFiles(tmp_path, server.port)
        env = {**hermetic_env, "HOME": str(tmp_path), "TERMSPRAWL_SESSION_FILE": str(files.session)}
        shown = at_a_terminal([ctl, *words], env)
    assert shown.strip()
    assert not OBEYED.search(OWN.sub("", shown)), shown
    assert "\x1b[8m" not in shown


def test_a_pipe_gets_an_answer_as_it_is(ctl, tmp_path, hermetic_env):
    with app(ANSWERS) as server:
        files = SessionFiles(tmp_path, server.port)
        argv = [ctl, "call", "terminal_read", "--field", "value.output", "--session", str(files.session)]
        done = subprocess.run(argv, env=hermetic_env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout == EVIL.encode() + b"\n"


def test_harmless_json_is_the_same_json():
    assert json.loads(harmless(json.dumps(EVIL, ensure_ascii=False))) == EVIL
    assert harmless("tab\tline\nnaïve 文件 🚀\u200d") == "tab\tline\nnaïve 文件 🚀\u200d"


@pytest.mark.parametrize("node_id", ["$(touch ran)", ";touch ran", "-x", "a\nb", "é"])
def test_completion_offers_no_id_that_a_shell_would_run(ctl, tmp_path, hermetic_env, node_id):
    canvas = {"ok": True, "value": [{**NODE, "id": node_id}, NODE]}
    with app({"canvas_list": canvas}) as server:
        files = SessionFiles(tmp_path, server.port)
        argv = [ctl, "completion", "--candidates", "--", "--session", str(files.session), "attach", ""]
        done = subprocess.run(argv, env=hermetic_env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    lines = done.stdout.decode().split("\n")
    assert [line.partition("\t")[0] for line in lines] == ["n-1", ""]
    assert not OBEYED.search(lines[0])
