"""Hostile JSON text: what is read is exactly what the grammar and the bounds allow, and can be written again."""

from __future__ import annotations

import contextlib
import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile

from termsprawlctl.base import jsontext

SECRET = "5ecre7-and-l0ng"

# --- the grammar of RFC 8259, read a second time ------------------------------------------

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
      (?P<punctuation>[\[\]{}:,])
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")
    | (?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?)
    | (?P<word>true|false|null)
    )""",
    re.VERBOSE,
)


def tokens(text: str) -> list[str] | None:
    """ "v" for a value that is no container, "s" for a string, and the punctuation; None where there is none of it."""
    found, position = [], 0
    end = len(text.rstrip(" \t\n\r"))
    while position < end:
        match = _TOKEN.match(text, position, end)
        if match is None or not _is_bounded(match):
            return None
        found.append(match["punctuation"] or ("s" if match["string"] else "v"))
        position = match.end()
    return found


def _is_bounded(match: re.Match) -> bool:
    number = match["number"]
    if number is None:
        return True
    if match["fraction"] is None and match["exponent"] is None:
        return len(number) <= jsontext.MAX_DIGITS
    return abs(float(number)) != float("inf")


def is_json(text: str) -> bool:
    """Whether a text is one JSON value of bounded depth and bounded numbers."""
    found = tokens(text.removeprefix("\ufeff"))
    if not found:
        return False
    open_ones: list[str] = []
    expected = "value"  # or: first (value or end), name (or: first name), colon, next (comma or end)
    for token in found:
        if expected in ("value", "first") and token in "[{":
            open_ones.append(token)
            if len(open_ones) > jsontext.MAX_DEPTH:
                return False
            expected = "first" if token == "[" else "first name"
        elif (expected in ("value", "first") and token in "sv") or (
            (expected in ("first", "first name") or (expected == "next" and open_ones))
            and token == {"[": "]", "{": "}"}[open_ones[-1]]
        ):
            if token in "]}":
                open_ones.pop()
            expected = "next"
        elif expected in ("name", "first name") and token == "s":
            expected = "colon"
        elif expected == "colon" and token == ":":
            expected = "value"
        elif expected == "next" and token == "," and open_ones:
            expected = "value" if open_ones[-1] == "[" else "name"
        else:
            return False
    return expected == "next" and not open_ones


def is_json_in_utf_8(data: bytes) -> bool:
    try:
        return is_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def check(data: bytes) -> None:
    """Read and write one text."""
    if not is_json_in_utf_8(data):
        with pytest.raises(ValueError, match=r"\S") as caught:
            jsontext.loads(data)
        assert len(str(caught.value)) < 100
        assert not hostile.shows(SECRET, str(caught.value))
        return
    value = jsontext.loads(data)
    assert value == jsontext.loads(data.decode())
    if len(data) < 100_000:
        assert value == json.loads(data.decode().removeprefix("\ufeff"))  # the last of equal keys counts
    # Pairs of surrogates that were two escapes are one character afterwards, so twice.
    once = jsontext.loads(jsontext.wire(value))
    assert jsontext.wire(once) == jsontext.wire(value)
    assert jsontext.loads(jsontext.compact(value)) == jsontext.loads(jsontext.pretty(value)) == once
    for text in (jsontext.pretty(value), jsontext.compact(value)):
        jsontext.loads(jsontext.encode(text))


pieces = st.sampled_from([*'[]{},:"0', "-", ".", "e", "1", "true", "nul", "\\u", "d800", " ", '"a"', "\\", SECRET])
near = st.lists(pieces, max_size=12).map("".join)


@given(st.one_of(hostile.json_bytes, hostile.encoded(near), hostile.encoded(hostile.json_texts)))
def test_what_is_read_is_what_the_grammar_allows(data):
    check(data)


@given(st.builds(hostile.dump, hostile.json_values), st.integers(0, 10**6))
def test_a_secret_anywhere_in_a_text_is_never_quoted(text, place):
    place %= len(text) + 1
    for secret in (SECRET, f'"{SECRET}"', f'"{SECRET}', f'\\{SECRET}"', f'{{"{SECRET}": {SECRET}'):
        check((text[:place] + secret + text[place:]).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("path", corpus.entries("json_texts"), ids=corpus.name)
def test_the_corpus_is_read_or_refused_as_the_grammar_says(path):
    check(path.read_bytes())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 200_000,
        "1" * 1_000_000,
        "1." + "0" * 1_000_000,
        "1e" + "9" * 1_000_000,
        '"' + "\\ud800" * 150_000,
        '"' + "\\u0000" * 150_000 + '"',
        "-" * 1_000_000,
        " " * 1_000_000,
        "[" + "[]," * 300_000,
    ],
    ids=lambda text: text[:6] + "…",
)
def test_a_megabyte_of_anything_costs_a_bounded_amount_of_memory(text):
    data = text.encode()
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            jsontext.loads(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 48 << 20
