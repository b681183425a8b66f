"""Hostile text against the patterns that read it: time grows with its length, not with its square.

Each text is one that took hours; the suite's own limit ends a test that hangs.
"""

from __future__ import annotations

import io
import json

import pytest

from termsprawlctl.agents.clis import claude_files, opencode
from termsprawlctl.agents.clis.opencode import OpenCode, OpenCodeReader
from termsprawlctl.agents.model import text as texts
from termsprawlctl.agents.runs import status
from termsprawlctl.app import http1
from termsprawlctl.host.terminals.screen.transcript import Transcript, whole_bytes
from termsprawlctl.host.terminals.shells.recording import Recording
from termsprawlctl.host.terminals.shells.scripts import begin_mark
from termsprawlctl.install import jsonc
from termsprawlctl.install.dialects import JsonText, TomlText

pytestmark = pytest.mark.timeout(60)

MIB = 1 << 20
ESCAPES = ["\x1b[0", "\x1b[m", "\x1b]", "\x1b(", "\x9b0", "%\x1b[m "]


def test_a_project_file_of_blank_lines_does_not_hold_up_a_run(tmp_path):
    (tmp_path / "opencode.json").write_text("\n" * (MIB - 100))
    texts = list(opencode._configurations(str(tmp_path), {"HOME": str(tmp_path)}))
    assert max(map(len, texts)) == MIB - 100
    assert not any(opencode.NAMES_A_MODEL.search(text) for text in texts)


@pytest.mark.parametrize("text", ['\n  "model": "a/b"', '{"model":"a/b"}', '{\n\n\t"x": 1,\n "model"\n:\n"a/b"}'])
def test_a_model_is_found_wherever_blanks_and_line_ends_stand(text):
    assert opencode.NAMES_A_MODEL.search(text)


def task_event(output: str) -> bytes:
    state = {"status": "completed", "input": {"description": "look"}, "output": output}
    return json.dumps({"type": "tool_use", "part": {"tool": "task", "state": state}}).encode()


def test_an_agent_that_opens_results_and_closes_none_does_not_hold_up_its_run():
    reader = OpenCodeReader("")
    reader.feed(task_event("<task_result>" * (MIB // 13)))
    assert reader.steps(answered=False)[0]["output"].startswith("<task_result><task_result>")


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("before <task_result>in\nit</task_result> after", "in\nit"),
        ("<task_result>open", "<task_result>open"),
        ("x</task_result>", "x</task_result>"),
    ],
)
def test_the_result_of_an_inner_agent_is_what_stands_between_its_marks(output, shown):
    reader = OpenCodeReader("")
    reader.feed(task_event(output))
    assert reader.steps(answered=False)[0]["output"] == shown


def transcript_line(text: str) -> bytes:
    return json.dumps({"type": "user", "message": {"content": text}}).encode()


def test_reminders_that_never_end_do_not_hold_up_the_host():
    text = "<system-reminder>" * (4 * MIB // 17)
    (turn,) = claude_files.turns([transcript_line(text)])
    assert turn.text == text


def test_reminders_are_taken_out_however_many_there_are():
    (turn,) = claude_files.turns([transcript_line("a" + "<system-reminder>x\ny</system-reminder>" * 50_000 + "b")])
    assert turn.text == "ab"


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t"])
@pytest.mark.parametrize("ending", [b"y", b" \t", b"\x01"])
def test_blanks_in_a_field_of_a_stranger_do_not_hold_up_the_host(blank, ending):
    value = b"x" + (blank * http1.MAX_FIELDS_BYTES)[: http1.MAX_FIELDS_BYTES - 100] + ending
    stream = io.BytesIO(b"POST /call HTTP/1.1\r\na: \t " + value + b"\r\n\r\n")
    if ending == b"\x01":
        with pytest.raises(http1.BadMessage):
            http1.read_request(stream)
    else:
        assert http1.read_request(stream).first("a").encode() == value.rstrip(b" \t")


@pytest.mark.parametrize("fragment", ESCAPES)
def test_a_flood_of_escapes_in_a_terminal_does_not_hold_up_the_host(fragment):
    flood = (fragment * MIB)[: 160 << 10].encode()
    recording = Recording("0123abcd")
    recording(begin_mark("0123abcd"))
    for start in range(0, len(flood), 64 << 10):
        recording(flood[start : start + (64 << 10)])
    recording.give_up(0)
    text = recording.output(120, 32, 0).text
    assert "\x1b" not in text
    assert 0 <= whole_bytes(flood) <= len(flood)
    transcript = Transcript(120, 32)
    transcript.feed(flood)
    assert "\x1b" not in transcript.text()


@pytest.mark.parametrize("fragment", ESCAPES)
def test_a_flood_of_escapes_from_an_agent_does_not_hold_up_its_run(fragment):
    flood = (fragment * MIB)[:MIB]
    assert "\x1b" not in texts.plain(flood)
    assert len(texts.one_line(flood, 100)) <= 100


@pytest.mark.parametrize(
    "fragment", ["permission requested: ", "error ", "model ", "config file ", "connection ", " ", "\n", "at async "]
)
def test_a_flood_of_error_words_from_an_agent_does_not_hold_up_its_status(fragment):
    errors = (fragment * MIB)[: 8 << 10]  # what is kept of standard error
    assert isinstance(status.last_line(errors), str)
    assert isinstance(status.last_lines(errors), str)
    OpenCode().diagnose(errors)
    assert OpenCode().denials(OpenCodeReader(""), errors) == []


@pytest.mark.parametrize(
    "fragment", ["/*", "//", '"', '"\\', " ", "\n", "{", "[", '{"a":', "'''", '"""', "#", "a.", "=", "\\"]
)
@pytest.mark.parametrize("text", [JsonText(jsonc.JSONC), TomlText()], ids=["json", "toml"])
def test_a_flood_in_a_client_configuration_is_refused_in_time(fragment, text):
    try:
        value = text.read((fragment * MIB)[: MIB // 8], ())
    except ValueError:
        return
    assert value in ({}, None)
