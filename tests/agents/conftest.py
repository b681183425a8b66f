"""A box with a scripted agent for each test."""

from __future__ import annotations

import pytest
from support.scripted_agent import Box
from support.waiting import until


@pytest.fixture
def box(ctl, tmp_path, hermetic_env):
    """Nothing that a test of this box started may outlive it."""
    made = Box(ctl, tmp_path, hermetic_env)
    yield made
    until(lambda: not made.processes(), "the end of all processes of the test")
