"""Strict JSON in, clean UTF-8 out."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.base import jsontext

ROOT = Path(__file__).resolve().parents[2]
SECRET = "5e551011"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "é", null, true]}', {"a": [1, 2.5, "é", None, True]}),
        (b'"\xc3\xa9"', "é"),
        (bytearray(b"[1]"), [1]),
        ("\ufeff{}", {}),
        (b"\xef\xbb\xbf{}", {}),
        (" \t\r\n7 ", 7),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\ud83d"', "\ud83d"),
        ("1e308", 1e308),
        ("1e-999", 0.0),
        ("-0", 0),
        ("9" * 1000, int("9" * 1000)),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('"\x7f\u2028"', "\x7f\u2028"),
    ],
)
def test_json_is_read(text, value):
    assert jsontext.loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "}",
        "nul",
        "'a'",
        "{a: 1}",
        "[1,]",
        '{"a": 1,}',
        "01",
        "+1",
        ".5",
        "1.",
        "0x10",
        "1_000",
        "// x\n1",
        "1 2",
        '"\t"',
        '"a',
        '"\\x41"',
        "NaN",
        "Infinity",
        "-Infinity",
        '{"a": NaN}',
        "1e309",
        "-1e999",
        "9" * 1001,
        "-" + "9" * 1001,
        "9" * 100_000,
        "\ufeff\ufeff1",
        "\ufeff",
        "\x00",
        b"\xff",
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32"),
    ],
)
def test_what_is_not_strict_json_is_a_value_error_with_a_short_reason(text):
    with pytest.raises(ValueError, match=r"\S") as caught:
        jsontext.loads(text)
    assert len(str(caught.value)) < 100
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "text", [f'"{SECRET}', f"{SECRET}", f'{{"token": "{SECRET}" x', f'"{SECRET}"\xff'.encode("latin-1")]
)
def test_a_reason_never_quotes_the_text(text):
    with pytest.raises(ValueError, match=r"\S") as caught:
        jsontext.loads(text)
    assert SECRET not in str(caught.value)


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + ("1" if opening != "[" else "") + closing * levels


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_ends_at_the_limit(opening, closing):
    deepest = jsontext.loads(nested(jsontext.MAX_DEPTH, opening, closing))
    # What is let in can be put out again, in both forms.
    assert jsontext.loads(jsontext.pretty(deepest)) == deepest
    assert jsontext.loads(jsontext.wire(deepest)) == deepest
    for levels in (jsontext.MAX_DEPTH + 1, 5000, 100_000, 1_000_000):
        with pytest.raises(ValueError, match="nested too deep"):
            jsontext.loads(nested(levels, opening, closing))


def test_nesting_that_is_never_closed_is_an_error_too():
    for levels in (10, 100_000):
        with pytest.raises(ValueError, match=r"nested too deep|Expecting"):
            jsontext.loads("[" * levels)


def test_many_siblings_are_not_depth():
    wide = [[[]]] * 10_000
    assert jsontext.loads(json.dumps(wide)) == wide


def test_people_get_two_spaces_and_real_characters():
    assert jsontext.pretty({"ok": True, "value": {"text": "é😀", "none": {}}}) == (
        '{\n  "ok": true,\n  "value": {\n    "text": "é😀",\n    "none": {}\n  }\n}'
    )


def test_machines_get_no_white_space():
    assert jsontext.compact({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    assert jsontext.wire({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()


def test_a_lone_surrogate_crosses_the_wire_as_an_escape():
    assert jsontext.wire(["\ud800", "é"]) == b'["\\ud800","\\u00e9"]'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"a": [math.nan]}])
def test_the_wire_carries_no_nan(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        jsontext.wire(value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("é😀", "é😀".encode()),
        ("a\ud800b", b"a\xef\xbf\xbdb"),
        ("\udc80", b"\xef\xbf\xbd"),
        ("\ude00\ud83d", b"\xef\xbf\xbd\xef\xbf\xbd"),
        ("\ud83d\ude00", "😀".encode()),
    ],
)
def test_output_is_valid_utf_8_whatever_the_text_holds(text, data):
    assert jsontext.encode(text) == data


any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


def joined(value):
    """With surrogate pairs as the one character that they are in JSON."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if isinstance(value, list):
        return [joined(item) for item in value]
    if isinstance(value, dict):
        return {joined(key): joined(item) for key, item in value.items()}
    return value


@given(any_json)
def test_everything_survives_the_wire(value):
    assert joined(jsontext.loads(jsontext.wire(value))) == joined(value)


@given(any_text)
def test_everything_can_be_encoded(text):
    jsontext.encode(text).decode("utf-8")


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_input_is_read_or_refused_with_a_value_error(text):
    try:
        jsontext.loads(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - any other exception fails the test


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.dictionaries(st.integers(), inner),
)


@given(VALUES)
def test_what_is_written_is_what_json_writes(value):
    assert jsontext.pretty(value) == json.dumps(value, ensure_ascii=False, indent=2)
    assert jsontext.compact(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("write", [jsontext.pretty, jsontext.compact, jsontext.wire])
def test_what_is_no_json_is_not_written(write):
    with pytest.raises(TypeError):
        write({"a": object()})


def test_the_first_text_of_a_process_may_be_wrong():
    # CPython's scanner raises an error of a module that nobody has loaded by then.
    program = "from termsprawlctl.base import jsontext\ntry: jsontext.loads('[1,')\nexcept ValueError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "Expecting value at line 1 column 4\n"
