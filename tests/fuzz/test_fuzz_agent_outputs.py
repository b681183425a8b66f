"""The other things that an agent's CLI and git print: a list of models, a log, the state of a repository."""

from __future__ import annotations

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile

from termsprawlctl.agents.clis import opencode
from termsprawlctl.agents.clis.registry import NAMES, agent_cli
from termsprawlctl.agents.model.arguments import MAX_MODEL
from termsprawlctl.agents.runs import snapshot
from termsprawlctl.agents.runs.capture import MAX_LOG_LINE, Capture
from termsprawlctl.agents.runs.raw import KEPT_BYTES, RawReader
from termsprawlctl.agents.runs.status import MAX_MESSAGE, Ending, judge, judge_raw, last_line

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

# --- the list of models ---------------------------------------------------------------------

GOOD = {"input": {"text": True}, "output": {"text": True}, "toolcall": True}
models = hostile.objects_with(
    id=hostile.values_beside("big-pickle", "gpt-5", "a\0b", "a\n", "m" * 5000),
    providerID=hostile.values_beside("opencode", "openai", "\x1b[31m"),
    capabilities=st.just(GOOD) | hostile.json_values,
    cost=hostile.objects_with(output=hostile.values_beside(1, 0.5, 10**400, True)) | hostile.json_values,
    status=hostile.values_beside("active", "deprecated"),
    release_date=hostile.values_beside("2026-01-01", 5),
)
right = st.builds(
    lambda more: {"id": "m", "providerID": "p", "capabilities": GOOD, **more},
    hostile.objects_with(cost=st.fixed_dictionaries({"output": hostile.numbers}), release_date=hostile.json_values),
)
entries = st.builds(lambda name, model: f"{name}\n{json.dumps(model, indent=2)}\n", hostile.any_text, models | right)


def check_choice(listing: str) -> None:
    chosen = opencode.best_model(listing)
    assert chosen.isprintable()
    assert len(chosen) <= MAX_MODEL
    assert not chosen or "/" in chosen


@given(st.lists(entries | hostile.json_texts, max_size=6).map("\n".join))
def test_the_model_that_is_chosen_from_any_list_can_be_given_to_a_program(listing):
    check_choice(listing)


@pytest.mark.parametrize("path", corpus.entries("model_lists"), ids=corpus.name)
def test_a_list_that_once_broke_the_choice_does_not(path):
    check_choice(path.read_text())


# --- the log --------------------------------------------------------------------------------

logs = st.lists(hostile.encoded(hostile.any_text) | hostile.binary | hostile.sharp_bytes, max_size=8)
floods = st.builds(lambda text, times: text * times, hostile.encoded(hostile.any_text), st.sampled_from([1, 40_000]))


@given(st.lists(logs.map(b"\n".join) | floods, max_size=4))
def test_a_log_of_any_bytes_is_told_in_short_lines_without_controls(tmp_path_factory, pieces):
    capture = Capture(str(tmp_path_factory.getbasetemp()), "", "mark")
    told: list[str] = []
    try:
        for piece in pieces:
            os.write(capture.files[2], piece)
            capture.read_errors(lambda line, log: told.append(line))
        capture.read_errors(lambda line, log: told.append(line), final=True)
        tail = capture.errors_tail()
    finally:
        capture.close()
    for line in told:
        assert 0 < len(line) <= MAX_LOG_LINE
        assert not CONTROLS.search(line)
    assert len(last_line(tail)) <= MAX_MESSAGE
    for cli in NAMES:
        kind = agent_cli(cli)
        for status in (
            judge(kind, kind.reader("/"), Ending(1, "", tail)),
            judge_raw(kind, Ending(1, "", tail), answered=False),
        ):
            assert status.name == "failed"
            assert not CONTROLS.search(status.message + status.remedy + status.note)


@given(st.lists(logs.map(b"\n".join) | floods, max_size=4))
def test_plain_output_of_any_bytes_is_kept_at_both_ends(pieces):
    reader = RawReader("/srv/project")
    for piece in pieces:
        reader.feed_raw(piece)
    whole = b"".join(pieces)
    text = "".join(reader.answer_parts())
    assert len(text) <= 3 * KEPT_BYTES
    if len(whole) <= KEPT_BYTES:
        assert text == whole.decode("utf-8", "replace").strip()


# --- git ------------------------------------------------------------------------------------

KINDS = [
    "1 .M N... 1 2 3 4 5 ",
    "2 R. N... 1 2 3 4 5 6 ",
    "u UU N... 1 2 3 4 5 6 7 ",
    "? ",
    "u UU ",
    "1 ",
    "# branch.oid ",
]
kinds = st.sampled_from(KINDS)
records = st.builds(
    lambda kind, name: (kind + name.replace("\0", "")).encode("utf-8", "surrogatepass"), kinds, hostile.any_text
)


@given(st.lists(records | hostile.binary, max_size=8).map(b"\0".join))
def test_a_status_of_any_bytes_is_read_as_far_as_it_is_one(output):
    commit, codes = snapshot.parse_status(output)
    assert isinstance(commit, str)
    assert all(isinstance(code, str) for code in codes.values())
    assert isinstance(snapshot.parse_name_status(output), dict)
