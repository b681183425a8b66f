"""Whatever programs write to their terminals, and agents to their transcripts: it is read as text, in any pieces."""

from __future__ import annotations

import contextlib
import json
import re
import string

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support import corpus, hostile

from termsprawlctl.agents.clis import claude_files
from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.messaging import context
from termsprawlctl.host.terminals.foreground import Program, runs_script, shell_of
from termsprawlctl.host.terminals.keys import tmux_keys
from termsprawlctl.host.terminals.screen.grid import MAX_CELL_CHARS
from termsprawlctl.host.terminals.screen.transcript import Transcript, whole_bytes
from termsprawlctl.host.terminals.shells.patterns import MAX_PATTERN_CHARS, Pattern
from termsprawlctl.host.terminals.shells.recording import Recording
from termsprawlctl.host.terminals.shells.scripts import begin_mark
from termsprawlctl.host.terminals.streams import Stream

COLUMNS, ROWS = 20, 5
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
parameters = st.sampled_from(
    ["", "0", "1", "2", "3", "5", "999", "9" * 30, "2;3", ";", ";;9", "?7", "?25", "?1049", ">1"]
)
sequences = st.builds(
    lambda numbers, middle, final: f"\x1b[{numbers}{middle}{final}",
    parameters,
    st.sampled_from(["", "", "", " ", "!"]),
    st.sampled_from([*"@ABCDEFGHJKLMPSTXZ`abdefghlmrsu", "\x1b", "\n", "\x7f", "é"]),
)
others = st.sampled_from(
    [
        *(
            "\x1b7",
            "\x1b8",
            "\x1bM",
            "\x1bD",
            "\x1bE",
            "\x1bc",
            "\x1b(0",
            "\x1b(B",
            "\x1b#8",
            "\x1b%G",
            "\x1b",
            "\x9b2J",
        ),
        *(
            "\x1b]0;title\x07",
            "\x1b]8;;http://x\x1b\\",
            "\x1bPq#0~\x1b\\",
            "\x1b]133;C\x1b\\",
            "\x1b]",
            "\x1b\\",
            "\x1bX\x18",
        ),
        *("\r", "\n", "\r\n", "\b", "\t", "\v", "\f", "\x0e", "\0", "\x85", "\u2028", "\x1b[?1049h", "\x1b[?1049l"),
    ]
)
words = st.text("ab `qx宽😀e\u0301\u200d\u0e33é", max_size=25) | st.sampled_from(
    ["x" * COLUMNS, "宽" * COLUMNS, "\u0301" * 9]
)
streams = (
    st.lists(hostile.encoded(sequences | others | words) | hostile.sharp_bytes | hostile.binary, max_size=25)
    .map(b"".join)
    .flatmap(lambda data: st.just(data) | hostile.damaged(st.just(data)))
)


def read(*pieces: bytes, alternate: bool = False) -> str:
    transcript = Transcript(COLUMNS, ROWS, alternate=alternate)
    for piece in pieces:
        transcript.feed(piece)
    return transcript.text()


@pytest.mark.parametrize("path", corpus.entries("terminal_output"), ids=corpus.name)
def test_output_that_once_became_too_much_is_as_long_as_a_terminal_shows_it(path):
    """Each is a piece that is written many times over."""
    piece = path.read_bytes()
    times = (64 << 10) // len(piece)
    text = Transcript(COLUMNS, ROWS)
    text.feed(piece * times)
    shown = text.text()
    assert len(shown) <= times * (COLUMNS + 1)


def test_marks_without_end_on_one_letter_stay_as_few_as_a_terminal_keeps():
    assert read(b"a" + "\u0301".encode() * 1000 + b"b") == "a" + "\u0301" * (MAX_CELL_CHARS - 1) + "b"


@given(streams, st.booleans(), st.data())
def test_output_reads_the_same_in_any_pieces_and_as_nothing_but_text(data, alternate, draw):
    text = read(data, alternate=alternate)
    assert not CONTROLS.search(text)
    assert read(*draw.draw(hostile.cuts(data)), alternate=alternate) == text
    assert read(*(data[at : at + 1] for at in range(len(data))), alternate=alternate) == text


@given(streams, streams)
def test_what_is_taken_as_whole_ends_between_characters_and_sequences(before, after):
    end = whole_bytes(before)
    assert 0 <= end <= len(before)
    assert read(before[:end], before[end:] + after) == read(before + after)
    # Nothing of it waits for more: what follows is read as itself.
    assume(not before[end:])
    assert read(before, b"\x18") == read(before)


@given(streams, streams, streams, st.integers(0, 255), st.data())
def test_a_command_is_recorded_between_its_marks_in_any_pieces(before, output, after, status, draw):
    run_id = "0123abcd"
    begin = begin_mark(run_id)
    whole = before + begin + output + begin.replace(b";C;", b";D;%d;" % status) + after
    recorded = []
    for pieces in ([whole], draw.draw(hostile.cuts(whole)), [whole[at : at + 1] for at in range(len(whole))]):
        recording = Recording(run_id)
        for piece in pieces:
            recording(piece)
        assert recording.began.is_set()
        assert recording.ended.is_set()
        assert recording.size == len(output)
        recorded.append((recording.status, recording.output(COLUMNS, ROWS, 0)))
    assert recorded[0] == recorded[1] == recorded[2]
    assert recorded[0][0] == status
    assert not CONTROLS.search(recorded[0][1].text)


@given(streams)
def test_a_recording_of_anything_else_goes_on(data):
    recording = Recording("0123abcd")
    recording(data)
    assert not recording.began.is_set()
    assert not recording.ended.is_set()


cursors = (
    st.text(string.hexdigits + ".-+ \u0661", max_size=30)
    | hostile.any_text
    | st.from_regex("[0-9a-f]{8}[.][0-9]{1,20}")
)


@given(streams, st.lists(cursors, max_size=4))
def test_a_cursor_names_a_place_of_its_own_stream_or_none(data, texts):
    stream = Stream("n-1")
    stream.append(data)
    for text in [
        *texts,
        *(f"{stream.key}.{number}" for number in (-1, 0, len(data), len(data) + 1, "9" * 19, "\u0661")),
    ]:
        offset = stream.offset(text)
        assert offset is None or (
            (text == stream.cursor(offset) or text.startswith(stream.key)) and offset <= len(data)
        )
    assert stream.offset(stream.cursor()) == len(data)


names = hostile.any_text | st.lists(
    st.sampled_from(
        ["C-", "M-", "S-", "ctrl+", "Alt-", "enter", "F12", "a", "-", "+", "\\", ";", "~", "é", " ", "Tab"]
    ),
    max_size=4,
).map("".join)


@given(st.lists(names, max_size=3))
def test_a_key_is_one_of_tmuxs_names_or_refused(given_names):
    try:
        keys = tmux_keys(given_names)
    except CtlError:
        return
    assert len(keys) == len(given_names)
    for key in keys:
        assert re.fullmatch(r"(?:[CMS]-)*(?:[A-Z][A-Za-z]{1,8}|F[0-9]{1,2}|[!-~])", key)
        # A single character without a modifier would be typed, not pressed.
        assert len(key) > 1


@given(st.sampled_from(["bash", "zsh", "fish", "dash", "sh", "busybox", "", "vim"]) | hostile.any_text, st.data())
def test_any_command_line_of_a_shell_can_be_judged(name, draw):
    options = st.sampled_from(["-i", "-l", "-c", "--", "-", "+o", "-o", "--rcfile", "sh", "--command", "-ic"])
    program = Program(1, name, tuple(draw.draw(st.lists(options | hostile.any_text, max_size=5))), sleeping=True)
    shell = shell_of(program)
    assert shell is None or (shell.pid == 1 and not runs_script(program))


@pytest.mark.process
@pytest.mark.parametrize("path", corpus.entries("patterns"), ids=corpus.name)
def test_a_pattern_that_once_was_misjudged_is_called_no_regular_expression(path):
    with pytest.raises(CtlError, match="is not a regular expression"):
        Pattern(path.read_text(encoding="utf-8"))


@pytest.mark.process
@settings(max_examples=settings.default.max_examples // 6)  # each starts a process
@given(
    st.lists(
        st.sampled_from([*"ab.*+?()[]{}|^$\\,-1PLau<>=!:#", "(?", "(?P<", "{1,", "\\x", "\\N{", "\ud800"]), max_size=14
    )
    .map("".join)
    .filter(bool)
    | hostile.any_text.filter(bool),
    hostile.any_text,
)
@example("x" * (MAX_PATTERN_CHARS + 1), "")
@example("(" * 499 + ")" * 499, "x")
def test_a_pattern_matches_or_is_refused_and_leaves_no_process(pattern, text):
    try:
        matcher = Pattern(pattern)
    except CtlError:
        return
    found = None
    with contextlib.suppress(CtlError):  # it takes too long
        found = matcher.search(text)
    matcher.close()
    assert found is None or found in text
    assert matcher._process.returncode is not None


# --- what agents write down ---------------------------------------------------------------

texts = hostile.any_text | st.sampled_from(
    ["<system-reminder>", "<system-reminder>x</system-reminder>y", "</system-reminder>", "<command-name>", "hello"]
)
blocks = st.lists(
    hostile.objects_with(
        type=hostile.values_beside("text", "tool_result"),
        text=texts | hostile.json_values,
        content=texts | hostile.json_values | st.just([{"type": "text", "text": '{"ok":true}'}]),
    )
    | hostile.json_values,
    max_size=3,
)
answers = hostile.objects_with(
    ok=hostile.values_beside(True),
    value=hostile.objects_with(instanceId=hostile.values_beside("i"), nodeId=hostile.values_beside("n-1")),
).map(hostile.dump)
entries = hostile.objects_with(
    type=hostile.values_beside("user", "assistant"),
    message=hostile.objects_with(content=texts | blocks | answers) | hostile.json_values,
    timestamp=hostile.values_beside("2026-01-02T03:04:05Z"),
    isSidechain=hostile.values_beside(False),
    isMeta=hostile.values_beside(False),
)
transcript_lines = st.lists(
    hostile.encoded(entries.map(hostile.dump))
    | hostile.json_bytes
    | hostile.damaged(hostile.encoded(entries.map(hostile.dump))),
    max_size=6,
)


@given(transcript_lines, st.integers(0, 300))
def test_any_transcript_is_read_as_what_was_said(lines, max_chars):
    turns = claude_files.turns(lines)
    assert len(turns) <= len(lines)
    for turn in turns:
        assert turn.who in ("user", "assistant")
        assert turn.text
        assert isinstance(turn.time, str)
    named = claude_files.named_node(lines)
    assert named is None or isinstance(named, str)
    shown = context.render([context.Part("# a", turns), context.Part("# b", turns)], max_chars)
    assert len(shown) <= max_chars


@given(
    hostile.json_bytes | st.sampled_from([b'{"sessionId":"../../x"}', b'{"sessionId":"s-1"}', b'{"sessionId":["s-1"]}'])
)
def test_any_record_of_a_process_leads_to_a_transcript_below_the_folder_or_to_none(tmp_path_factory, content):
    root = tmp_path_factory.getbasetemp() / "claude"
    (root / "sessions").mkdir(parents=True, exist_ok=True)
    (root / "projects" / "-p").mkdir(parents=True, exist_ok=True)
    (root / "projects" / "-p" / "s-1.jsonl").write_text(json.dumps({"type": "user", "message": {"content": "hi"}}))
    (root / "sessions" / "7.json").write_bytes(content)
    found = claude_files.find(str(root), "n-1", [7], "/p")
    assert found in (None, str(root / "projects" / "-p" / "s-1.jsonl"))
