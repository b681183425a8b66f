"""Text on its way to people: nothing in it that a terminal obeys or that nobody sees; too long, head and tail."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from termsprawlctl.base import text as text_module
from termsprawlctl.base.text import HeadAndTail, beginning, harmless, head_and_tail, shorten, visible

EVERY = [chr(number) for number in range(sys.maxunicode + 1) if not 0xD800 <= number <= 0xDFFF]
# Format characters that are seen: signs of Arabic, Syriac and Kaithi that enclose numbers, Egyptian hieroglyphs'.
SEEN_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
JOINING = "\u200c\u200d\ufe0e\ufe0f"
# Not of the category Cf, but without any shape all the same (Default_Ignorable_Code_Point).
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"


def is_unseen(character: str) -> bool:
    """By the tables of Python's own unicodedata, which the module's list was not made of."""
    if character in "\t\n" or ord(character) in SEEN_FORMATS:
        return False
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")
        or unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        or character in FILLERS
        or 0xFE00 <= ord(character) <= 0xFE0F
        or 0xE0000 <= ord(character) <= 0xE0FFF
    )


def test_no_character_that_nobody_sees_gets_through_as_it_is():
    assert [hex(ord(one)) for one in EVERY if is_unseen(one) and harmless(f"a{one}b") == f"a{one}b"] == []


def test_every_character_that_is_seen_gets_through_as_it_is():
    # Unassigned ones among the ignorables may be anything one day.
    kept = [one for one in EVERY if unicodedata.category(one) != "Cn" and not is_unseen(one)]
    assert [hex(ord(one)) for one in kept if harmless(one) != one] == []


def test_json_stays_the_same_json():
    title = "".join(f"x{one}y" for one in EVERY if is_unseen(one))
    shown = harmless(json.dumps({"title": title}, ensure_ascii=False))
    assert json.loads(shown) == {"title": title}


@pytest.mark.parametrize(
    "text",
    [
        "naïve 文件 🚀",
        "👩\u200d👩\u200d👧",
        "❤\ufe0f\u200d🔥",
        "\u0645\u06cc\u200c\u062e\u0648\u0627",
        "क\u094d\u200dष",
        "1\ufe0f\u20e3",
        "#\ufe0f\u20e3",
    ],
)
def test_scripts_and_emoji_keep_what_they_are_written_with(text):
    assert harmless(text) == text


@pytest.mark.parametrize(
    "text", ["rm\u200d -rf", "\u200dx", "e\u200c\u200cx", "🚀\u200d\u200d", "🚀\ufe0f\ufe0f", "a\ufe0f"]
)
def test_a_joiner_with_nothing_to_join_is_shown(text):
    assert harmless(text) != text


def test_one_line_for_a_title():
    assert visible("\x1b[31mred\u2028\u202etwo\n\tthree\ud800\uffff ") == "[31mred two three"


def test_what_is_too_long_loses_its_middle_or_its_end(monkeypatch):
    assert shorten("0123456789", 10) == beginning("0123456789", 10) == "0123456789"
    assert (shorten("0123456789abcdef", 12), beginning("0123456789", 4)) == ("012345 … def", "012…")
    monkeypatch.setattr(text_module, "KEPT_CHARS", 4)
    kept = HeadAndTail()
    for part in ("ab", "cd", "ef", "gh", "ij"):
        kept.add(part)
    assert kept.parts() == ["ab", "cd", "[… 1 parts left out: too long to keep …]", "gh", "ij"]
    assert (len(kept), kept.omitted) == (5, 1)
    kept = HeadAndTail()
    for part in ("the head", "ef", "gh", "ij", "kl"):
        kept.add(part)
    assert kept.parts() == ["the head", "[… 2 parts left out: too long to keep …]", "ij", "kl"]
    assert head_and_tail(iter(["0123456789"] * 3), 5) == ("0123456789", 20)
