"""Output of any size and shape as lines of bounded size."""

from __future__ import annotations

import json
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termsprawlctl.agents.runs import stream

MARK = "0123456789abcdef"
# What breaks naive splitting and cutting: separators, escapes, characters of several bytes.
ATOMS = ["a", "\\", '"', "\n", "é", "🦀", "\u2028", "\x85", "\t", "\x07", "\\u0041", "x" * 40, "word "]


def fed(lines: stream.Lines, data: bytes, step: int) -> list[bytes]:
    found = []
    for start in range(0, len(data), step):
        found += lines.feed(data[start : start + step])
    return [*found, lines.end()]


@given(st.lists(st.binary(max_size=60), max_size=8), st.integers(1, 50))
def test_lines_end_at_newlines_alone_however_the_output_arrives(pieces, step):
    data = b"\n".join(pieces)
    assert fed(stream.Lines(MARK), data, step) == data.split(b"\n")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=40),
    st.integers(30_000, 60_000),
    st.booleans(),
    st.sampled_from([997, 65_536, 300_000]),
)
def test_a_long_string_is_shortened_and_can_be_had_whole_again(atoms, repeats, ascii_only, step):
    long = "".join(atoms) * (1 + repeats // len(atoms)) * 3
    event = {"type": "x", "item": {"text": long, "numbers": [1, {"q": '\\"'}]}, "last": "\\"}
    line = json.dumps(event, ensure_ascii=ascii_only).encode()
    data = b'{"type":"first"}\n' + line + b'\n{"type":"last"}'
    lines = stream.Lines(MARK)
    first, short, last = fed(lines, data, step)
    assert (first, last) == (b'{"type":"first"}', b'{"type":"last"}')
    read = json.loads(short)
    assert read["last"] == "\\"
    assert read["item"]["numbers"] == [1, {"q": '\\"'}]
    assert len(short) <= max(len(line), 4 * stream.KEPT_BYTES) or len(line) <= stream.WHOLE_LINE_BYTES
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        whole = "".join(stream.expanded(read["item"]["text"], MARK, lines.cuts, file.fileno()))
    assert whole == long


@pytest.mark.slow
def test_a_line_with_a_million_short_strings_does_not_fill_memory():
    lines = stream.Lines(MARK)
    data = b"[" + b'"ab",' * 2_000_000 + b"1]\n"
    (line,) = list(lines.feed(data))
    assert len(line) < 2 * stream.KEPT_BYTES
    assert list(lines.feed(b"next\n")) == [b"next"]


def test_a_long_line_that_ends_inside_a_string_is_no_event():
    lines = stream.Lines(MARK)
    assert list(lines.feed(b'{"a":"' + b"x" * (1 << 20))) == []
    line = lines.end()
    assert line.startswith(b'{"a":"xxx')
    assert len(line) < 4 * stream.KEPT_BYTES
