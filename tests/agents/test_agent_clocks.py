"""When a run is stopped, and what no clock may claim."""

from __future__ import annotations

import threading
import time
import types

import pytest

from termsprawlctl.agents.clis.cli import Request
from termsprawlctl.agents.clis.registry import agent_cli
from termsprawlctl.agents.model.settings import Settings
from termsprawlctl.agents.runs import run as run_module
from termsprawlctl.agents.runs.run import Clocks, Run, _at_work
from termsprawlctl.agents.runs.status import STOP_TIMEOUT


def test_an_agent_that_cannot_be_looked_at_is_not_said_to_be_idle(monkeypatch):
    def short_of_descriptors(_pid):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(run_module, "has_command", short_of_descriptors)
    clocks = Clocks()
    assert _at_work(types.SimpleNamespace(pid=1), clocks, time.monotonic())
    monkeypatch.setattr(run_module, "has_command", lambda _pid: False)
    assert not _at_work(types.SimpleNamespace(pid=1), clocks, time.monotonic() + run_module.LOOK_AT_TREE_S + 1)


@pytest.mark.parametrize(("passed_s", "expected"), [(49.0, ""), (51.0, STOP_TIMEOUT)])
def test_a_second_attempt_has_what_is_left_of_the_time(passed_s, expected):
    settings = Settings()
    settings.timeout_s = 50.0
    run = Run(agent_cli("opencode"), Request("task", "/"), settings, lambda _line: None)
    now = time.monotonic()
    run._started = now - passed_s
    capture = types.SimpleNamespace(largest=lambda: 0)
    # The clocks of the attempt itself begin anew.
    assert run._reason(types.SimpleNamespace(pid=0), capture, threading.Event(), Clocks(), now) == expected
