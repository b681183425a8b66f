"""Fixtures for the suites that share a user's tmux; a conftest.py imports those that its suites take."""

from __future__ import annotations

import signal

import pytest
from support.chosen import plain_path
from support.command import run
from support.tui_share import RunningShare
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


@pytest.fixture
def start(ctl, tmux):
    """Start `tui share` with more words; all are ended with the test."""
    shares = []

    def start(*words: str, **environment) -> RunningShare:
        argv = [ctl, "tui", "share", "--socket-path", tmux.socket, *words]
        shares.append(RunningShare(argv, {**tmux.env, **environment}))
        return shares[-1]

    yield start
    for share in shares:
        share.stop(signal.SIGKILL)


@pytest.fixture
def share(start):
    """A share of the only client."""
    return start()


@pytest.fixture
def ids(ctl, tmux):
    """Session name to public id, as `tui sessions` prints them."""

    def ids(*words: str) -> dict[str, str]:
        words = words or ("--socket-path", tmux.socket)
        done = run([ctl, "tui", "sessions", *words], tmux.env)
        assert (done.status, done.err) == (0, b"")
        return {name: key for key, name in (row.split("\t") for row in done.out.decode().splitlines())}

    return ids
