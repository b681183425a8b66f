"""Whether a line was begun and not sent, told from what a pane shows. No tmux runs here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.share.sharing import draft
from termsprawlctl.share.sharing.draft import DRAFT, EMPTY, UNKNOWN, Front, Line

PROMPTS = [
    "$ ",
    "# ",
    "% ",
    "sh-5.1$ ",
    "user@host:~/src$ ",
    "[user@host ~]$ ",
    "user@host ~/src (main) % ",
    "user@host ~> ",
    "\u276f ",
    "╰─\u276f ",
    "➜  ~ ",
    "➜  termsprawl git:(main) ✗ ",
    ">>> ",
    "In [3] > ",
    "mysql> ",
]
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
SCREENS = st.lists(st.text(max_size=30), max_size=4)


def line(left: str, right: str = "", width: int = 80) -> Line:
    return Line(left, right, width)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_alone_is_empty_and_with_words_behind_it_a_draft(prompt):
    assert draft.state_of(line(prompt), None) == EMPTY
    for typed in ("r", "rm -rf bui", "echo a > ", "echo '$ ", "cost # "):
        assert draft.state_of(line(prompt + typed), None) == DRAFT, typed


@pytest.mark.parametrize("prompt", [*PROMPTS, "plain: ", "plain", "12:30:59 (base) dir "])
@given(
    typed=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20), moved=st.integers(0, 20)
)
def test_behind_a_prompt_that_is_known_everything_is_a_draft_wherever_the_cursor_is(prompt, typed, moved):
    whole = prompt + typed
    at = max(len(prompt), len(whole) - moved)
    assert draft.state_of(line(whole[:at], whole[at:]), prompt) == DRAFT
    assert draft.state_of(line(prompt), prompt) == EMPTY


def test_a_blank_behind_a_prompt_that_is_not_known_may_have_been_typed():
    assert draft.state_of(line("$  "), None) == UNKNOWN
    assert draft.state_of(line("$  "), "$ ") == DRAFT
    assert draft.state_of(line("$  "), "$  ") == EMPTY


def test_a_known_prompt_may_show_another_time_but_no_other_width():
    assert draft.state_of(line("12:30:59 dir "), "12:30:01 dir ") == EMPTY
    assert draft.state_of(line("12:30:59 dir 5"), "12:30:01 dir ") == DRAFT
    assert draft.state_of(line("12:30:59 other "), "12:30:01 dir ") == UNKNOWN


@pytest.mark.parametrize("question", ["Continue? [y/n] ", "Overwrite (yes/no)? ", "Password: ", "Really?"])
def test_a_question_is_empty_until_a_key_was_pressed(question):
    assert draft.state_of(line(question), None) == EMPTY
    assert draft.state_of(line(question + "y"), question) == DRAFT
    assert draft.state_of(line(question + "y"), None) in (UNKNOWN, DRAFT)


def test_a_prompt_at_the_right_is_none_of_what_was_typed():
    right = " " * 70 + "12:30:59"
    assert draft.state_of(line("$ ", right), "$ ") == EMPTY
    assert draft.state_of(line("$ ", "rm -rf bui"), "$ ") == DRAFT, "the cursor was moved to the beginning"
    assert draft.state_of(line("$ ", "  rm"), "$ ") == DRAFT


def test_a_line_that_has_nothing_on_it_is_empty():
    assert draft.state_of(line(""), None) == EMPTY
    assert draft.state_of(line("   "), None) == UNKNOWN


def test_a_long_line_goes_back_over_the_rows_that_it_fills():
    rows = ["output", "$ " + "x" * 18, "y" * 20, "zz"]
    assert draft.line_at(rows, 2, 3, 20) == Line("$ " + "x" * 18 + "y" * 20 + "zz", "", 20)
    assert draft.state_of(draft.line_at(rows, 2, 3, 20), "$ ") == DRAFT
    assert draft.line_at(rows, 2, 0, 20) == Line("ou", "tput", 20)


def test_a_full_row_goes_on_only_where_the_joined_screen_says_so():
    rows = ["output " + "-" * 13, "$ " + "x" * 18, "y" * 20, "", "$ z"]
    split = draft.line_at(rows, 3, 4, 20, ["output " + "-" * 13, "$ " + "x" * 18 + "y" * 20, "", "$ z"])
    assert split == Line("$ z", "", 20)
    whole = draft.line_at(rows[:3], 20, 2, 20, ["output " + "-" * 13, "$ " + "x" * 18 + "y" * 20])
    assert whole.left == "$ " + "x" * 18 + "y" * 20
    prompt = draft.line_at(["output " + "-" * 13, "$ "], 2, 1, 20, ["output " + "-" * 13, "$"])
    assert draft.state_of(prompt, "$ ") == EMPTY
    for joined in ([], ["other"], ["x" * 20], ["x" * 20, "y", "z"]):
        assert draft.line_at(["x" * 20, "y"], 1, 1, 20, joined).left == "x" * 20 + "y", "to be on the safe side"


def test_columns_are_cells_and_a_row_has_the_blanks_that_tmux_leaves_out():
    assert draft.line_at(["$"], 2, 0, 80).left == "$ "
    assert draft.line_at([], 2, 0, 80).left == "  "
    assert draft.line_at(["日本$ ab"], 6, 0, 80) == Line("日本$ ", "ab", 80)
    assert draft.line_at(["e\u0301$ ab"], 3, 0, 80) == Line("e\u0301$ ", "ab", 80)


SHELL, PROGRAM, CANONICAL = Front("-bash"), Front("vim"), Front("cat", takes_lines=True)
PASSWORD = Front("sudo", takes_lines=True, shows_keys=False)


@pytest.mark.parametrize(
    ("state", "front", "right_after", "a_minute_later"),
    [
        (DRAFT, SHELL, True, True),
        (DRAFT, PROGRAM, True, False),
        (DRAFT, CANONICAL, True, False),
        (UNKNOWN, SHELL, True, False),
        (UNKNOWN, PROGRAM, False, False),
        (UNKNOWN, CANONICAL, True, False),
        (EMPTY, SHELL, False, False),
        (EMPTY, CANONICAL, False, False),
        (EMPTY, PASSWORD, True, False),
    ],
)
def test_what_stands_there_blocks_for_as_long_as_it_may_be_a_draft(state, front, right_after, a_minute_later):
    assert draft.blocks(state, front, 2.0) == right_after
    assert draft.blocks(state, front, 61.0) == a_minute_later


@given(
    st.lists(st.text(max_size=30), max_size=4),
    st.integers(0, 200),
    st.integers(0, 8),
    st.integers(0, 90),
    st.text(max_size=9),
    st.none() | st.lists(st.text(max_size=30), max_size=4),
)
def test_whatever_a_screen_shows_has_a_state(rows, column, row, width, prompt, joined):
    assert draft.state_of(draft.line_at(rows, column, row, width, joined), prompt) in (EMPTY, DRAFT, UNKNOWN)
