"""Shapes on the wire: what is a frame, a request, an answer, and what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tui_endpoint import APPLIED, CONTEXT, SELECT, TOKEN, VIEW, line

from termsprawlctl.share import wire

GET = {"operation": "get_view_context"}
PICK = {"operation": "select_session", **SELECT}
GET_REQUEST = wire.GetViewContext()
PICK_REQUEST = wire.select_request(SELECT)


def without(members: dict, name: str) -> dict:
    return {key: value for key, value in members.items() if key != name}


def framed(request: object) -> bytes:
    return line({"token": TOKEN, "request": request})


def test_both_requests_survive_the_way_there():
    for request in (GET_REQUEST, PICK_REQUEST):
        frame = wire.parse_request(wire.encode_request(wire.Frame(TOKEN, request)))
        assert (frame.token, frame.request) == (TOKEN, request)


def test_a_request_is_one_compact_line_with_exactly_the_described_members():
    frame = wire.encode_request(wire.Frame(TOKEN, PICK_REQUEST))
    assert frame.endswith(b"\n")
    assert frame.count(b"\n") == 1
    assert json.loads(frame) == {"token": TOKEN, "request": PICK}
    assert json.loads(wire.encode_request(wire.Frame(TOKEN, GET_REQUEST))) == {"token": TOKEN, "request": GET}


@pytest.mark.parametrize(
    "request_",
    [
        {},
        [],
        None,
        "get_view_context",
        {"operation": "revoke"},
        {"operation": ["get_view_context"]},
        {**GET, "extra": 1},
        {**GET, "requestId": SELECT["requestId"]},
        {**PICK, "extra": None},
        without(PICK, "operation"),
        *[without(PICK, name) for name in SELECT],
        {**PICK, "requestId": "not-a-uuid"},
        {**PICK, "requestId": SELECT["requestId"] + "\n"},
        {**PICK, "requestId": None},
        {**PICK, "requestId": "44444444-4444-0444-8444-444444444444"},
        {**PICK, "requestId": "44444444-4444-9444-8444-444444444444"},
        {**PICK, "requestId": "44444444-4444-4444-7444-444444444444"},
        {**PICK, "instanceId": 7},
        {**PICK, "expectedRevision": -1},
        {**PICK, "expectedRevision": True},
        {**PICK, "expectedRevision": "3"},
        {**PICK, "expectedRevision": 3.5},
        {**PICK, "sessionId": "a"},
        {**PICK, "sessionId": "ses_"},
        {**PICK, "sessionId": "ses_a b"},
        {**PICK, "sessionId": "ses_a\n"},
        {**PICK, "sessionId": ["ses_a"]},
    ],
    ids=str,
)
def test_a_request_of_another_shape_is_no_request(request_):
    with pytest.raises(wire.InvalidFrame) as caught:
        wire.parse_request(framed(request_))
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "frame",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"{not json}\n",
        b'{"token": NaN, "request": {}}\n',
        b"\xff\xfe\n",
        line({"request": GET}),
        line({"token": TOKEN}),
        line({"token": None, "request": GET}),
        line({"token": TOKEN, "request": GET, "more": 1}),
        b"[" * 5000 + b"]" * 5000 + b"\n",
    ],
    ids=lambda frame: repr(frame[:30]),
)
def test_a_line_that_is_no_frame_is_refused(frame):
    with pytest.raises(wire.InvalidFrame):
        wire.parse_request(frame)


@pytest.mark.parametrize("revision", [3, 3.0, 1e3])
def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(revision):
    request = wire.parse_request(framed({**PICK, "expectedRevision": revision})).request
    assert (type(request.expected_revision), request.expected_revision) == (int, revision)


def test_a_frame_may_have_16384_bytes_and_not_one_more():
    frame = framed(GET)
    full = frame[:-1] + b" " * (16_384 - len(frame)) + b"\n"
    assert wire.parse_request(full).request == GET_REQUEST
    with pytest.raises(wire.InvalidFrame):
        wire.parse_request(b" " + full)


def test_answers_of_the_right_shape_are_passed_on_unchanged():
    home = {**without(VIEW, "sessionId"), "route": "home"}
    assert wire.parse_answer(line(CONTEXT), GET_REQUEST) == CONTEXT
    assert wire.parse_answer(line({**CONTEXT, "context": home}), GET_REQUEST)["context"] == home
    assert wire.parse_answer(line(APPLIED), PICK_REQUEST) == APPLIED
    for code in wire.CODES:
        for request in (GET_REQUEST, PICK_REQUEST):
            assert wire.parse_answer(line(wire.rejected(code)), request)["code"] == code


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"status": "context"},
        {"status": ["context"], "context": VIEW},
        {"status": "rejected"},
        {"status": "rejected", "code": "no_such_code"},
        {"status": "rejected", "code": ["busy"]},
        {"status": "rejected", "code": "busy", "context": VIEW},
        {"status": "applied", "context": VIEW},
        {**CONTEXT, "more": 1},
        {**CONTEXT, "context": None},
        {**CONTEXT, "context": {**VIEW, "title": "secret"}},
        *[{**CONTEXT, "context": without(VIEW, name)} for name in VIEW if name != "sessionId"],
        {**CONTEXT, "context": {**VIEW, "revision": -1}},
        {**CONTEXT, "context": {**VIEW, "revision": True}},
        {**CONTEXT, "context": {**VIEW, "route": "settings"}},
        {**CONTEXT, "context": {**VIEW, "route": ["home"]}},
        {**CONTEXT, "context": {**VIEW, "sessionId": None}},
        {**CONTEXT, "context": {**VIEW, "sessionId": "work on the budget"}},
        {**CONTEXT, "context": {**VIEW, "ready": 1}},
        {**CONTEXT, "context": {**VIEW, "blocked": "no"}},
        {**CONTEXT, "context": {**VIEW, "instanceId": "x"}},
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_no_answer(answer):
    with pytest.raises(wire.InvalidFrame):
        wire.parse_answer(line(answer), GET_REQUEST)


@pytest.mark.parametrize("answer", [CONTEXT, {**APPLIED, "more": 1}], ids=str)
def test_a_selection_is_answered_by_applied_or_a_rejection_only(answer):
    with pytest.raises(wire.InvalidFrame):
        wire.parse_answer(line(answer), PICK_REQUEST)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["status", "code", "context", "token", "request", "operation", "x"]), inner, max_size=4
            )
        ),
    )
)
def test_whatever_json_comes_is_taken_or_refused_and_never_breaks(value):
    for parse in (lambda: wire.parse_request(line(value)), lambda: wire.parse_answer(line(value), GET_REQUEST)):
        try:
            parse()
        except wire.InvalidFrame:
            continue
