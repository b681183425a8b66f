"""The session files are the truth: who may call is what they say now."""

from __future__ import annotations

import json
import os
import stat

import pytest

from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.registry.sessions import SessionStore
from termsprawlctl.host.registry.status import SHELL_STATUS


@pytest.fixture
def paths(tmp_path):
    return DataPaths(str(tmp_path / "data"))


def test_a_session_is_private_and_found_by_its_token_alone(paths):
    store = SessionStore(paths)
    session = store.provision("n-1", "p-1", SHELL_STATUS)
    assert stat.S_IMODE(os.stat(paths.session("n-1")).st_mode) == 0o600
    assert store.find(session.token) == session
    for wrong in ("", session.token[:-1], session.token + "0", "\udcff" * 40):
        assert store.find(wrong) is None
    assert session.token not in repr(session)


def test_a_node_keeps_its_token_in_a_project_and_gets_another_elsewhere(paths):
    store = SessionStore(paths)
    first = store.provision("n-1", "p-1", SHELL_STATUS)
    assert store.provision("n-1", "p-1", SHELL_STATUS) == first
    assert store.provision("n-1", "p-2", SHELL_STATUS).token != first.token
    assert store.find(first.token) is None


def test_a_revoked_session_opens_nothing_and_only_its_project_revokes_it(paths):
    store = SessionStore(paths)
    session = store.provision("n-1", "p-1", SHELL_STATUS)
    assert not store.revoke("n-1", "p-2")
    assert store.find(session.token) == session
    assert store.revoke("n-1", "p-1")
    assert store.find(session.token) is None
    assert not store.revoke("n-1", "p-1")


def test_what_another_process_writes_and_removes_counts_from_the_next_question_on(paths):
    ours, theirs = SessionStore(paths), SessionStore(paths)
    session = theirs.provision("n-1", "p-1", SHELL_STATUS)
    assert ours.find(session.token) == session
    theirs.revoke("n-1", "p-1")
    assert ours.all() == []


@pytest.mark.parametrize(
    "change",
    [
        {"token": "short"},
        {"token": 7},
        {"token": "with blanks " * 8},
        {"nodeId": "n-2"},
        {"nodeId": "../n-1"},
        {"projectId": None},
    ],
    ids=json.dumps,
)
def test_a_file_that_is_no_session_opens_nothing(paths, change):
    SessionStore(paths).provision("n-1", "p-1", SHELL_STATUS)
    path = paths.session("n-1")
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**content, **change}, file)
    assert SessionStore(paths).all() == []


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"7"])
def test_a_file_that_holds_no_object_opens_nothing(paths, data):
    SessionStore(paths).provision("n-1", "p-1", SHELL_STATUS)
    with open(paths.session("n-1"), "wb") as file:
        file.write(data)
    assert SessionStore(paths).all() == []
