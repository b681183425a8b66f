"""Hypothesis strategies for hostile input: text, bytes, JSON values, JSON text, damage to good input.

Everything shrinks towards the harmless. Sizes stay small, because what breaks a parser is
mostly short; a test that is about size builds its own input (or uses `nested` and `huge`).
"""

from __future__ import annotations

import json
import re

from hypothesis import strategies as st

# Every code point, lone surrogates too.
any_character = st.characters(codec=None, exclude_categories=())
# What programs trip over: ends of lines and strings, other line separators, the BOM, halves of pairs.
SHARP = [
    *('\0\x01\x08\t\n\x0b\x0c\r\x1a\x1b\x1c\x1e\x7f\x85\xa0"\\/ ' + "\u0661\u200b\u200f\u202e\u2028\u2029\ufeff\uffff"),
    *("\ud800", "\udc00", "\udfff", "\U0001f600", "\U0010ffff"),
    *("\r\n", "\\u0000", "\x1b[2J", "\x1b]0;x\x07", "${HOME}", "$(id)", "../", "%s%n", "{0}", "__class__"),
]
any_text = st.text(any_character, max_size=20) | st.lists(st.sampled_from(SHARP), max_size=4).map("".join)
# The same without what no JSON text or file name in UTF-8 can hold.
unicode_text = st.text(st.characters(codec="utf-8"), max_size=20)

odd_integers = st.sampled_from([0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400])
odd_floats = st.sampled_from([0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, 1e16])
finite_floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers() | odd_integers | finite_floats | odd_floats
scalars = st.none() | st.booleans() | numbers | any_text


def _containers(inner):
    return st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4)


# Any value that JSON can hold (keys and strings with lone surrogates, as escapes).
json_values = st.recursive(scalars, _containers, max_leaves=6)
json_objects = st.dictionaries(any_text, json_values, max_size=3)


def mostly(usual, odd, times: int = 4):
    """`usual` so many times as often as `odd`; `|` alone gives each of their alternatives the same share."""
    return st.integers(0, times).flatmap(lambda number: odd if number == times else usual)


def values_beside(*good: object):
    """Any JSON value, but mostly the good ones: a field that is right now and then lets a test get further."""
    return mostly(st.sampled_from(good), json_values)


@st.composite
def objects_with(draw, **fields) -> dict:
    """Objects in which most fields are there, each drawn from its strategy, at times among fields that nobody knows."""
    missing = draw(st.sets(st.sampled_from(sorted(fields)), max_size=2)) if draw(st.integers(0, 2)) == 2 else set()
    known = {name: draw(strategy) for name, strategy in fields.items() if name not in missing}
    return {**(draw(json_objects) if draw(st.integers(0, 4)) == 4 else {}), **known}


# --- JSON text ----------------------------------------------------------------------------

# Texts that are no strict JSON value, or one that a reader has to bound.
TRICKY_VALUES = [
    *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-0", "-0.0", "01", "+1", ".5", "1.", "0x10"),
    *("9" * 309, "9" * 1001, "9" * 5000, "1." + "0" * 5000, "1e" + "9" * 400, "1E+2", "1_0"),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x41"', '"\\', '"\t"', "'a'", '"\ufeff"'),
    *("nul", "True", "None", "undefined", "// x\n1", "/**/1", "[1,]", '{"a":1,}', "{a:1}", "{}{}", "[] []", "", " "),
    *('{"a":1,"a":2}', '{"a":{"a":1},"a":[]}', '{"":0}', '{"__proto__":{}}', "\ufeff{}", "\x00", "[\x00]"),
]


def nested(levels: int, opening: str = "[", closing: str = "]", core: str = "") -> str:
    """JSON text nested so deep; for objects `nested(n, '{"a":', "}", "1")`."""
    return opening * levels + core + closing * levels


def dump(value: object) -> str:
    """Compact JSON text with lone surrogates as escapes, and all else as it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


_escaped = st.builds(json.dumps, json_values)
_spaced = st.builds(lambda value: json.dumps(value, indent=1), json_values)
_deep = st.builds(
    nested, st.sampled_from([10, 490, 499, 500, 501, 1000, 5000]), st.just("["), st.sampled_from(["]", ""])
)
_deep_objects = st.builds(
    nested, st.sampled_from([10, 499, 500, 501, 5000]), st.just('{"a":'), st.sampled_from(["}", ""]), st.just("1")
)


def _with_repeated_keys(pairs) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in pairs) + "}"


value_texts = st.sampled_from(TRICKY_VALUES) | st.builds(dump, json_values) | _escaped
repeated_keys = st.lists(st.tuples(st.sampled_from(["", "a", "b"]), value_texts), max_size=5).map(_with_repeated_keys)
# Text that is JSON, or nearly.
json_texts = value_texts | _spaced | _deep | _deep_objects | repeated_keys


def object_texts(**fields):
    """Texts of objects whose fields' values are texts of their own (tricky ones too), maybe more than once each."""
    pair = st.sampled_from(sorted(fields)).flatmap(lambda name: st.tuples(st.just(name), fields[name] | value_texts))
    return st.lists(pair, max_size=len(fields) + 2).map(_with_repeated_keys)


# --- bytes --------------------------------------------------------------------------------

# No UTF-8: a bare continuation, an overlong slash, a surrogate, beyond Unicode, cut short, UTF-16.
BROKEN_UTF_8 = [b"\xff", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", "{}".encode("utf-16")]
binary = st.binary(max_size=60)
sharp_bytes = st.sampled_from([*BROKEN_UTF_8, b"\0", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b'"', b"\\", b"{", b"]"])


def encoded(texts):
    """UTF-8 of texts; a lone surrogate as the three bytes that it would have, which are no UTF-8."""
    return texts.map(lambda text: text.encode("utf-8", "surrogatepass"))


@st.composite
def damaged(draw, good) -> bytes:
    """Good bytes (drawn from `good`) with a few wounds: cut, doubled, swapped, overwritten, interspersed."""
    data = draw(good)
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        piece = data[start:end]
        kind = draw(st.sampled_from(["cut", "end", "double", "reverse", "insert", "replace", "flip"]))
        if kind == "cut":
            piece = b""
        elif kind == "end":
            return data[:start]
        elif kind == "double":
            piece = piece * 2
        elif kind == "reverse":
            piece = piece[::-1]
        elif kind == "insert":
            piece = draw(binary | sharp_bytes) + piece
        elif kind == "replace":
            piece = draw(binary | sharp_bytes)
        elif piece:
            piece = bytes([piece[0] ^ (1 << draw(st.integers(0, 7)))]) + piece[1:]
        data = data[:start] + piece + data[end:]
    return data


# Bytes for whoever expects JSON.
json_bytes = encoded(json_texts) | binary | damaged(encoded(json_texts))


@st.composite
def cuts(draw, data: bytes) -> list[bytes]:
    """The same bytes in pieces, as a stream may deliver them."""
    places = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=6))})
    return [data[start:end] for start, end in zip(places, places[1:])]


# --- what must not come out ----------------------------------------------------------------


def shows(secret: str, output: bytes | str) -> bool:
    """Whether an output holds a secret, as it is or behind JSON's escapes."""
    text = output if isinstance(output, str) else output.decode("utf-8", "replace")
    unescaped = re.sub(r"\\u00([0-7][0-9a-fA-F])", lambda match: chr(int(match[1], 16)), text)
    return any(secret in form for form in (text, unescaped, re.sub(r"\\(.)", r"\1", unescaped)))
