"""Arguments as models send them: taken where the declared type makes the meaning certain, else explained."""

from __future__ import annotations

import pytest

from termsprawlctl.operations.arguments import coerced, explained
from termsprawlctl.operations.schema import InvalidCall, validate
from termsprawlctl.operations.table import OPERATIONS


@pytest.mark.parametrize(
    ("operation", "sent", "meant"),
    [
        ("terminal_read", {"nodeId": "n-1", "maxChars": "2000"}, {"nodeId": "n-1", "maxChars": 2000}),
        ("terminal_read", {"nodeId": "n-1", "maxChars": " 2000.5 "}, {"nodeId": "n-1", "maxChars": 2000.5}),
        ("terminal_read", {"nodeId": "n-1", "maxChars": None}, {"nodeId": "n-1"}),
        ("canvas_move", {"nodeId": "n-1", "x": "-5", "y": 0}, {"nodeId": "n-1", "x": -5, "y": 0}),
        ("terminal_wait", {"nodeId": "n-1", "exit": "true"}, {"nodeId": "n-1", "exit": True}),
        ("terminal_wait", {"nodeId": "n-1", "exit": "False"}, {"nodeId": "n-1", "exit": False}),
        ("canvas_select", {"nodeIds": '["n-1", "n-2"]'}, {"nodeIds": ["n-1", "n-2"]}),
        ("canvas_select", {"nodeIds": "n-1"}, {"nodeIds": ["n-1"]}),
        ("terminal_run", {"nodeId": 7, "command": "ls"}, {"nodeId": "7", "command": "ls"}),
        ("session_info", {}, {}),
    ],
)
def test_what_is_certain_is_taken(operation, sent, meant):
    before = dict(sent)
    assert coerced(OPERATIONS[operation], sent) == meant
    assert sent == before
    validate(operation, coerced(OPERATIONS[operation], sent))


@pytest.mark.parametrize(
    ("operation", "sent"),
    [
        ("terminal_read", {"nodeId": "n", "maxChars": "many"}),
        ("terminal_read", {"nodeId": "n", "maxChars": "0x10"}),
        ("terminal_read", {"nodeId": "n", "maxChars": "1_000"}),
        ("terminal_read", {"nodeId": "n", "maxChars": "010"}),
        ("terminal_read", {"nodeId": "n", "maxChars": True}),
        ("terminal_read", {"nodeId": "n", "maxChars": [5]}),
        ("terminal_read", {"nodeId": "n", "maxChars": "1e999"}),
        ("terminal_wait", {"nodeId": "n", "exit": 1}),
        ("terminal_wait", {"nodeId": "n", "exit": "yes"}),
        ("canvas_select", {"nodeIds": "n-1, n-2"}),
        ("canvas_select", {"nodeIds": "[n-1"}),
        ("canvas_select", {"nodeIds": ""}),
        ("sticky_open", {"text": True}),
        ("sticky_open", {"text": {"a": 1}}),
        ("sticky_open", {"text": 1.5}),
        ("agent_launch", {"agent": "Claude"}),
        ("terminal_read", {"nodeId": "n", "more": None}),
    ],
)
def test_what_is_not_certain_stays_as_it_came_and_is_refused_with_what_came_and_what_is_expected(operation, sent):
    declared = OPERATIONS[operation]
    assert coerced(declared, sent) == sent
    with pytest.raises(InvalidCall) as refused:
        validate(operation, coerced(declared, sent))
    text = explained(declared, sent, str(refused.value))
    assert text.startswith(str(refused.value))
    assert operation in text
    assert "expected" in text or "takes" in text


LONG = (
    "Invalid text: sticky_open got a string of 70,000 characters (70,000 bytes), "
    "expected a string of at most 64,000 characters (256,000 bytes) without NUL."
)


@pytest.mark.parametrize(
    ("operation", "sent", "error", "text"),
    [
        (
            "terminal_read",
            {"nodeId": "n", "maxChars": "many"},
            "Invalid maxChars",
            'Invalid maxChars: terminal_read got "many", expected a number from -1,000,000 to 1,000,000.',
        ),
        (
            "sticky_open",
            {"text": "x" * 70_000},
            "Invalid text",
            LONG,
        ),
        (
            "agent_reply",
            {"taskId": "t", "text": "x", "state": "done"},
            "Invalid state",
            'Invalid state: agent_reply got "done", expected one of completed, failed.',
        ),
        (
            "terminal_read",
            {"node": "n"},
            "Missing argument: nodeId",
            "Missing argument: nodeId. terminal_read takes nodeId, maxChars (optional).",
        ),
        (
            "session_info",
            {"x": 1},
            "Unknown argument: x",
            "Unknown argument: x. session_info takes no arguments.",
        ),
        ("terminal_read", {"nodeId": "n"}, "Unknown node: n.", "Unknown node: n."),
    ],
)
def test_a_refusal_names_the_argument_what_came_and_what_is_expected(operation, sent, error, text):
    assert explained(OPERATIONS[operation], sent, error) == text
