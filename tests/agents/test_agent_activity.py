"""Steps, labels and the summary."""

from __future__ import annotations

import pytest

from termsprawlctl.agents.model import steps as account
from termsprawlctl.agents.model.steps import Activity, summary
from termsprawlctl.agents.model.text import clip, one_line, plain, shorten, unwrapped


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("/bin/bash -lc 'python3 fib.py'", "python3 fib.py"),
        ('/bin/bash -lc "echo \\"hi\\" | cat"', 'echo "hi" | cat'),
        ("bash -lc ls", "ls"),
        ("/usr/bin/zsh -lc 'a b'", "a b"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("/bin/bash -lc 'unbalanced", "/bin/bash -lc 'unbalanced"),
        ("/bin/bash script.sh one", "/bin/bash script.sh one"),
        ("", ""),
    ],
)
def test_a_command_is_shown_without_the_shell_that_was_put_around_it(command, meant):
    assert unwrapped(command) == meant


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("bell\x07 null\x00 tab\t", "bell null tab\t"),
        ("\x9b31mcsi", "csi"),
        ("🦀 hé 文件", "🦀 hé 文件"),
    ],
)
def test_terminal_escapes_and_controls_are_taken_out(raw, clean):
    assert plain(raw) == clean


@pytest.mark.parametrize("limit", [10, 11, 50, 200])
def test_a_shortened_text_keeps_both_ends_and_the_limit(limit):
    text = shorten("start" + "x" * 500 + "end", limit)
    assert len(text) <= limit
    assert text.startswith("start"[: limit // 2])
    assert text.endswith("nd")
    assert len(one_line("start " + "é\n" * 100_000 + "end", limit)) <= limit
    assert len(clip("x" * 1_000_000)) <= 2000


def test_steps_stand_in_the_order_in_which_they_began():
    told = Activity()
    told.begin("command", 1, command="slow")
    told.begin("command", 2, command="quick")
    told.end("command", 2, exitCode=0, output="two")
    told.end("command", 1, exitCode=1, status="failed", output="one")
    assert summary(told.steps(answered=True)) == [
        "--- Activity (2 steps) ---",
        "- ran `slow` -> exit 1 | one",
        "- ran `quick` -> exit 0 | two",
    ]


def test_what_is_said_last_is_the_answer_and_what_was_said_before_a_step():
    told = Activity()
    told.message("First.")
    told.begin("command", 1, command="ls")
    told.message("Second, part one.", group="m")
    told.message("Part two.", group="m")
    assert told.answer_parts() == ["Second, part one.", "Part two."]
    assert [step["kind"] for step in told.steps(answered=True)] == ["message", "command"]
    assert [step["kind"] for step in told.steps(answered=False)] == ["message", "command", "message", "message"]
    assert told.take_labels() == ["Said: First.", "Running: ls"]


def test_a_message_played_again_after_a_broken_stream_counts_once():
    told = Activity()
    told.message("Half")
    told.note("Reconnecting... 1/5")
    told.message("Half")
    assert told.answer_parts() == ["Half"]
    assert len([step for step in told.steps(answered=False) if step["kind"] == "message"]) == 1


def test_retries_are_one_step_and_each_a_label():
    told = Activity()
    for attempt in range(1, 4):
        told.note(f"Reconnecting... {attempt}/3")
    assert [step["text"] for step in told.steps(answered=True)] == ["Reconnecting... 3/3"]
    assert len(told.take_labels()) == 3


def test_files_are_counted_by_what_they_were_before_the_run():
    told = Activity("/srv/project")
    told.edit("add", "/srv/project/new.txt")
    told.edit("modify", "/srv/project/new.txt")
    told.edit("modify", "/srv/project/old.txt")
    told.edit("delete", "/srv/project/old.txt")
    told.edit("add", "/srv/project/gone.txt")
    told.edit("delete", "/srv/project/gone.txt")
    told.edit("modify", "/etc/other")
    told.edit("add", "/srv/project/refused.txt", status="declined")
    assert told.files == {"new.txt": "added", "old.txt": "deleted", "/etc/other": "modified"}


def test_a_run_of_very_many_steps_keeps_its_beginning_and_its_end():
    told = Activity()
    total = account.FIRST_STEPS + account.LAST_STEPS + 500
    for number in range(total):
        told.end("command", number, exitCode=0, command=f"step {number}")
    lines = summary(told.steps(answered=True), told.omitted)
    assert lines[0] == f"--- Activity ({total} steps) ---"
    assert lines[1].startswith("- ran `step 0`")
    assert lines[1 + account.FIRST_STEPS] == "- … 500 steps left out …"
    assert lines[-1].startswith(f"- ran `step {total - 1}`")


def test_the_summary_of_each_kind_is_one_line():
    told = Activity("/w")
    told.begin("command", 1, command="make\ttest &&\n echo ok")
    told.edit("delete", "/w/a b.txt", status="failed")
    told.end("search", 2, query="TODO", output="one\ntwo")
    told.end("read", 3, path="/w/x")
    told.end("tool", 4, "failed", name="echo.say", input='{"text":"hi"}', output="no")
    told.end("agent", 5, prompt="list the files", output="done")
    told.plan([("look", True), ("write", False)])
    told.thought("**Title**\n\nwhy")
    told.printed("plain\tline")
    assert summary(told.steps(answered=True))[1:] == [
        "- ran `make test && echo ok` -> not finished",
        "- edited delete a b.txt -> failed",
        "- searched TODO | one two",
        "- read x",
        '- called echo.say {"text":"hi"} -> failed | no',
        "- delegated list the files | done",
        "- plan: [x] look; [ ] write",
        "- thought: **Title** why",
        "- printed: plain line",
    ]


def test_a_file_name_cannot_forge_a_line_nor_colour_nor_flood_one():
    told = Activity("/w")
    told.edit("add", "/w/a\n- ran `rm -rf /` -> exit 0\x1b[31m")
    told.edit("add", "/w/" + "d" * 100_000)
    lines = summary(told.steps(answered=True))
    assert lines[1] == "- edited add a - ran `rm -rf /` -> exit 0"
    for text in (*lines, *told.take_labels()):
        assert len(text) < 400
        assert "\n" not in text
        assert "\x1b" not in text


def test_calls_that_never_end_do_not_fill_memory():
    told = Activity("/w")
    for number in range(5000):
        told.begin("command", number, command=f"sleep {number}")
        told.take_labels()
    assert not told.is_open(0)
    assert told.is_open(4999)
    told.end("command", 0, command="sleep 0", exitCode=0)
    assert told.steps(answered=True)[-1] == {
        "kind": "command",
        "command": "sleep 0",
        "exitCode": 0,
        "status": "completed",
    }
