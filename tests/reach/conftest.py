"""What the tests of `reach` share: an account on a real ssh server of loopback."""

from __future__ import annotations

import pytest
from support import chosen
from support.ssh_server import Box


@pytest.fixture
def stopped_box(ctl, tmp_path_factory):
    """The account, with no server yet."""
    box = Box(tmp_path_factory.mktemp("b"), ctl, chosen.plain_path())
    yield box
    box.end()


@pytest.fixture
def box(stopped_box):
    """The account with its server."""
    stopped_box.start()
    return stopped_box
