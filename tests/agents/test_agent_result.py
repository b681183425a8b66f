"""Results: what is in them, and that they stay within what clients show."""

from __future__ import annotations

import json

import pytest

from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.model.reader import Reader
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.runs.render import full_text, structure_of, text_of, too_long
from termsprawlctl.agents.runs.run import Result
from termsprawlctl.agents.runs.status import COMPLETED, FAILED, TIMED_OUT, Status


def result(answer="Done.", steps=0, status=None, output="x", **fields):
    reader = Reader("/w")
    reader.events = 1
    reader.session_id = "s-1"
    for number in range(steps):
        reader.activity.end("command", number, exitCode=number % 3, command=f"echo {number}", output=output)
    reader.activity.message(answer)
    made = Result("codex", status or Status(COMPLETED), reader, Request("p", "/w"))
    made.exit_status = 0
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_result_is_the_answer_a_blank_line_and_the_summary():
    assert text_of(result("fib(10) = 55", 1, output="55"), Settings()) == (
        "fib(10) = 55\n"
        "\n"
        "--- Activity (1 step) ---\n"
        "- ran `echo 0` -> exit 0 | 55\n"
        "Session: s-1 (pass it as sessionId to continue)"
    )


def test_without_trace_there_is_only_the_answer():
    settings = Settings()
    settings.trace = False
    assert text_of(result("fib(10) = 55", 3), settings) == "fib(10) = 55"
    assert structure_of(result("a", 3), settings)["activity"] == []


@pytest.mark.parametrize("limit", [2000, 11_000, 50_000])
@pytest.mark.parametrize(
    "made",
    [
        result("word " * 40_000, 2),
        result("é🦀\n" * 40_000, 900),
        result('\\"\x01\n' * 30_000, 40),
        result("short", 999, output="long output " * 200),
        result("line\n" * 5_000, 0, changes={f"folder/{number}.txt": "added" for number in range(3000)}),
        result("line\n" * 5_000, 0, changes={f"{'d' * 200}/{number}": "modified" for number in range(300)}),
        result("x", 500, Status(FAILED, "failed", "m" * 500, "r"), errors="e" * 8000, output="o" * 8000, exit_status=1),
    ],
    ids=["words", "unicode", "escapes", "steps", "files", "long paths", "failure"],
)
def test_text_and_structure_stay_within_the_limit(made, limit):
    settings = Settings()
    settings.result_bytes = limit
    path = "/home/user/.local/state/termsprawlctl/agent-outputs/run-0123456789abcdef.txt"
    text, structure = text_of(made, settings, path), structure_of(made, settings, path)
    # A tenth more: the lines that say what was left out are not counted.
    assert len(text.encode()) <= limit * 1.1 + 400
    assert len(json.dumps(structure, ensure_ascii=False).encode()) <= limit * 1.1 + 1500
    if made.changes:
        listed = sum(len(structure["files"][name]) for name in ("added", "modified", "deleted"))
        assert listed + structure["files"]["more"] == len(made.changes)
    if made.status.name == COMPLETED:
        assert text[:1] == structure["answer"][:1] == "".join(made.reader.answer_parts())[:1]


def test_what_was_left_out_is_counted_and_named():
    made = result("begin " + "x" * 100_000 + " end")
    settings = Settings()
    assert too_long(made, settings)
    for answer in (text_of(made, settings, "/out.txt"), structure_of(made, settings, "/out.txt")["answer"]):
        assert answer.startswith("begin xxx")
        assert "characters left out; the whole is in /out.txt" in answer
    assert "Full output: /out.txt" in text_of(made, settings, "/out.txt")
    assert "".join(full_text(made, ["begin", " end"])).startswith("begin end\n\n--- Activity")


def test_a_short_result_is_not_too_long():
    assert not too_long(result("a" * 5000, 10), Settings())


def test_a_failure_is_one_line_that_says_what_to_do_and_the_tails():
    made = result("Partial.", 1, Status(FAILED, "not_logged_in", "401 Unauthorized.", "Log in."), exit_status=1)
    made.errors, made.output = "the end of stderr", "the end of stdout"
    text = text_of(made, Settings())
    assert text.splitlines()[0] == "codex failed (exit 1): 401 Unauthorized. Log in."
    assert "- Partial." in text
    assert "--- end of stderr ---\nthe end of stderr" in text
    assert "--- end of stdout ---\nthe end of stdout" in text
    structure = structure_of(made, Settings())
    assert structure["status"] == "failed"
    assert structure["answer"] == ""
    assert structure["error"] == {
        "code": "not_logged_in",
        "message": "401 Unauthorized.",
        "remedy": "Log in.",
        "stderr": "the end of stderr",
        "stdout": "the end of stdout",
    }


def test_a_run_that_ran_out_of_time_says_so():
    made = result("Partial.", 0, Status(TIMED_OUT, "timed_out", "it was ended after 5 s", "Raise it."), exit_status=-2)
    assert text_of(made, Settings()).startswith("codex timed out: it was ended after 5 s. Raise it.")


def test_an_empty_answer_is_said_in_words_in_the_text_only():
    made = result("")
    assert text_of(made, Settings()).startswith("(The agent ended without a final message.)")
    assert structure_of(made, Settings())["answer"] == ""
