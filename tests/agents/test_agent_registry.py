"""Each agent CLI is one file, and everything that names them follows from it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from termsprawlctl.agents import clis
from termsprawlctl.agents.clis.cli import AgentCli
from termsprawlctl.agents.clis.registry import ACP_NAMES, NAMES, TAKES_EFFORT, agent_cli, launchable

RECORDS = {
    module.stem: record
    for module in Path(clis.__file__).parent.glob("*.py")
    if (record := getattr(importlib.import_module(f"{clis.__name__}.{module.stem}"), "CLI", None)) is not None
}


def test_the_list_of_names_is_the_list_of_files():
    assert {*NAMES, *ACP_NAMES} == set(RECORDS)
    assert {name for name, record in RECORDS.items() if record.conversational} == set(ACP_NAMES)
    assert set(TAKES_EFFORT) == {name for name, record in RECORDS.items() if record.takes_effort}


@pytest.mark.parametrize("name", [*NAMES, *ACP_NAMES])
def test_a_record_says_all_that_a_person_needs(name):
    record = agent_cli(name)
    assert isinstance(record, AgentCli)
    assert record.name == name
    assert all((record.executable, record.install, record.login, record.permission, record.stop_signals))


def test_no_two_records_share_a_name_to_launch():
    names = [name for record in RECORDS.values() for name in (record.name, *record.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert (launchable(name) is None) == (name in ACP_NAMES)
    assert launchable("grok") is None
