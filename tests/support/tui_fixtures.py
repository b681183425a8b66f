"""Fixtures for the suites that share a user's tmux; a conftest.py imports those that its suites take."""

from __future__ import annotations

import pytest
from support.chosen import plain_path
from support.tui_tmux import Prepared


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    servers = Prepared(tmp_path_factory.mktemp, plain_path())
    yield servers
    servers.close()


@pytest.fixture
def tmux(prepared):
    """A tmux server of a user's, with a client in it."""
    server = prepared.take()
    yield server
    server.close()


@pytest.fixture
def client(tmux):
    """The client on session one; nothing was typed into it for a while."""
    return tmux.first
