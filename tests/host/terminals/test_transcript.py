"""What a program's bytes read like, where a command's output begins and ends, and where bytes may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termsprawlctl.host.terminals.screen.transcript import Transcript, whole_bytes
from termsprawlctl.host.terminals.shells.recording import Output, Recording
from termsprawlctl.host.terminals.shells.scripts import begin_mark


def read(data: bytes | str, columns: int = 20, rows: int = 6, **options) -> str:
    transcript = Transcript(columns, rows, **options)
    transcript.feed(data.encode() if isinstance(data, str) else data)
    return transcript.text()


CASES = {
    "lines": ("one\r\ntwo\r\n\r\nfour", "one\ntwo\n\nfour"),
    "a progress bar": ("10%\r 50%\r100%\r\ndone", "100%\ndone"),
    "colours, a title and a link": (
        "\x1b[1;31mred\x1b[0m\x1b]0;t\x07 \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        "red link",
    ),
    "a wrapped line": ("x" * 50 + "\r\ny", "x" * 50 + "\ny"),
    "a line that just fits": ("x" * 20 + "\r\ny", "x" * 20 + "\ny"),
    "wide and combining characters": ("日本e\u0301" * 9, "日本e\u0301" * 9),
    "an edited command line": ("$ lx\x08s -l\x1b[2D\x1b[K\x1b[2Cx", "$ ls   x"),
    "inserted and deleted characters": ("abcdef\x1b[4D\x1b[2@XY\x1b[1P\x1b[2X", "abXY  f"),
    "a cleared screen keeps what was output": ("a\r\nb\r\n\x1b[H\x1b[2Jc", "a\nb\nc"),
    "a reset keeps it, too": ("a\r\n\x1bcb", "a\nb"),
    "the alternate screen": ("a\r\n\x1b[?1049h\x1b[Hvi\x1b[?1049lb", "a\nb"),
    "scrolled away": ("\r\n".join("0123456789"), "\n".join("0123456789")),
    "a scroll region with a status line": (
        "\x1b[6;1Hbar\x1b[1;5r" + "\r\n".join("0123456789"),
        "\n".join("0123456789") + "\nbar",
    ),
    "moves": ("\x1b[3;5Hx\x1b[A\x1b[2Dy\x1b[2;1Hz", "\nz  y\n    x"),
    "lines put in and taken out": ("a\r\nb\r\nc\x1b[2;1H\x1b[Lnew\x1b[1;1H\x1b[M", "new\nb\nc"),
    "a repeated character": ("-\x1b[9b", "-" * 10),
    "line drawing": ("\x1b(0lqk\x1b(B lqk", "┌─┐ lqk"),
    "bytes that are no text": (b"a\xff\xfeb\x00\x07c", "a\ufffd\ufffdbc"),
    "a sequence that never ends": ("a\x1b]0;" + "x" * 5000 + "\r\nb", None),
}


@pytest.mark.parametrize(("data", "text"), CASES.values(), ids=CASES.keys())
def test_output_reads_as_it_looks(data, text):
    assert text is None or read(data) == text


@given(
    st.lists(st.sampled_from([case[0] for case in CASES.values() if isinstance(case[0], str)]), max_size=4), st.data()
)
@settings(max_examples=60, deadline=None)
def test_it_does_not_matter_how_the_bytes_arrive(parts, data):
    whole = "".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    transcript = Transcript(20, 6)
    for start, end in zip([0, *cuts], [*cuts, len(whole)]):
        transcript.feed(whole[start:end])
    assert transcript.text() == read(whole)


@given(st.binary(max_size=400), st.integers(-5, 2000), st.integers(-5, 2000), st.integers(0, 50))
@settings(max_examples=150, deadline=None)
def test_nothing_that_a_program_writes_breaks_it(data, columns, rows, line):
    for junk in (data, data.replace(b"a", b"\x1b[").replace(b"b", b"\x1b]").replace(b"c", b";999999999999")):
        read(junk, columns, rows, line=line)
        assert 0 <= whole_bytes(junk) <= len(junk)


@pytest.mark.slow
def test_memory_stays_bounded_however_much_is_written():
    transcript = Transcript(80, 24)
    for _ in range(20):
        transcript.feed(b"\n" * 10_000)
    assert len(transcript._main.rows) < 50_000


@pytest.mark.parametrize(
    "unfinished", ["ü", "日", "🎉", "\x1b[31m", "\x1b]0;title\x07", "\x1b]133;D;0\x1b\\", "\x1b(0", "\x1bM"]
)
def test_bytes_are_never_cut_inside_a_character_or_a_sequence(unfinished):
    before, rest = b"before", unfinished.encode()
    for end in range(1, len(rest)):
        assert whole_bytes(before + rest[:end]) == len(before)
    assert whole_bytes(before + rest) == len(before + rest)
    assert whole_bytes(before) == len(before)


MARKED = b"prompt" + begin_mark("1234abcd") + b"out\r\n\x1b[1mput" + b"\x1b]133;D;42;termsprawl=1234abcd\x07" + b"$ "


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40, 1000])
def test_a_recording_finds_its_marks_however_they_arrive(size):
    ends = []
    recording = Recording("1234abcd", on_end=lambda: ends.append(1))
    for start in range(0, len(MARKED), size):
        recording(MARKED[start : start + size])
    assert recording.began.is_set()
    assert recording.ended.is_set()
    assert ends
    assert recording.status == 42
    assert recording.output(80, 24, 3) == Output("out\nput", truncated=False, full_screen=False)
    assert recording.size == len(b"out\r\n\x1b[1mput")


def test_marks_of_others_are_output_like_any_other():
    recording = Recording("1234abcd")
    recording(begin_mark("1234abcd") + b"a\x1b]133;D;0\x1b\\b\x1b]133;D;1;termsprawl=other000\x1b\\c")
    assert not recording.ended.is_set()
    assert recording.output(80, 24, 0).text == "abc"


def test_long_output_keeps_its_beginning_and_its_end():
    recording = Recording("1234abcd")
    recording(begin_mark("1234abcd"))
    for start in range(0, 1_000_000, 1000):
        recording(b"".join(b"%07d\r\n" % number for number in range(start, start + 1000)))
    output = recording.output(80, 24, 0)
    lines = output.text.splitlines()
    middle = next(place for place, line in enumerate(lines) if line.startswith("["))
    assert output.truncated
    assert lines[:middle] == [f"{number:07d}" for number in range(middle)]
    last = len(lines) - middle - 1
    assert lines[middle + 1 :] == [f"{number:07d}" for number in range(1_000_000 - last, 1_000_000)]
    assert "9000000 bytes" in lines[middle]
    assert len(recording._tail) < 1 << 20
