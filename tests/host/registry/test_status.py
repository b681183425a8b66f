"""What a session says of its program: one record, read and spelled in one place."""

from __future__ import annotations

import pytest

from termsprawlctl.host.registry.status import (
    CLI,
    CONNECTED,
    MCP,
    NEEDS_SETUP,
    SHELL_STATUS,
    UNVERIFIED,
    Adapter,
    Status,
)


@pytest.mark.parametrize("name", ["claude-mcp", "shell-cli", "gemini-unverified", "my-own-agent-cli", "mcp", ""])
def test_an_adapter_is_spelled_as_it_was_read(name):
    assert str(Adapter.parse(name)) == name


@pytest.mark.parametrize(
    ("name", "is_agent", "is_verified"),
    [
        ("claude-mcp", True, True),
        ("claude-cli", True, True),
        ("claude-unverified", True, False),
        ("shell-cli", False, False),
        ("mcp", True, True),
        ("", True, False),
        (7, True, False),
        (None, True, False),
    ],
)
def test_who_reads_what_is_typed_follows_from_the_adapter(name, is_agent, is_verified):
    adapter = Adapter.parse(name)
    assert (adapter.is_agent, adapter.is_verified) == (is_agent, is_verified)


@pytest.mark.parametrize("value", [None, [], "text", {}, {"state": 1, "adapter": ["x"], "version": {}, "reason": None}])
def test_what_is_no_text_counts_as_nothing(value):
    assert Status.parse(value) == Status("", Adapter("", ""))


def test_a_status_stays_the_same_over_its_file():
    for status in (SHELL_STATUS, Status(CONNECTED, Adapter("codex", MCP), "1.2", "")):
        assert Status.parse(status.as_json()) == status


@pytest.mark.parametrize(("way", "state"), [(MCP, CONNECTED), (CLI, NEEDS_SETUP), (UNVERIFIED, NEEDS_SETUP)])
def test_a_call_connects_only_what_has_a_client_of_its_own(way, state):
    assert Status(NEEDS_SETUP, Adapter("x", way), reason="waits").after_a_call().state == state
