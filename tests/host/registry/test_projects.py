"""Which folder a project id means."""

from __future__ import annotations

import os

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.registry.projects import ProjectStore, operator_node, operator_session, project_id
from termsprawlctl.host.registry.sessions import SessionStore


@pytest.fixture
def paths(tmp_path):
    return DataPaths(str(tmp_path / "data"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return str(tmp_path / "work")


def test_a_folder_has_one_id_whatever_path_leads_to_it(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert project_id(folder) == project_id(folder + "/.") == project_id(str(tmp_path / "link"))
    assert project_id(folder) != project_id(str(tmp_path))


def test_a_folder_is_served_until_it_is_forgotten(paths, folder):
    store = ProjectStore(paths)
    identity = store.register(folder)
    assert (store.folder(identity), store.all()) == (folder, {identity: folder})
    store.forget(identity)
    store.forget(identity)
    assert store.all() == {}
    with pytest.raises(CtlError, match="Unknown project"):
        store.folder(identity)


def test_a_folder_that_is_gone_is_said_to_be_gone_and_not_unknown(paths, folder):
    store = ProjectStore(paths)
    identity = store.register(folder)
    os.rmdir(folder)
    assert (store.all(), store.without_folder()) == ({}, {identity: folder})
    with pytest.raises(CtlError, match="is gone"):
        store.folder(identity)


def test_what_is_no_directory_is_no_project(paths, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for name in ("file", "none"):
        with pytest.raises(CtlError, match="is not a directory"):
            ProjectStore(paths).register(str(tmp_path / name))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"cwd": 7}', b"\xff"])
def test_a_file_that_names_no_folder_is_an_unknown_project(paths, folder, data):
    store = ProjectStore(paths)
    identity = store.register(folder)
    with open(os.path.join(paths.projects, f"{identity}.json"), "wb") as file:
        file.write(data)
    assert (store.all(), store.without_folder()) == ({}, {})
    with pytest.raises(CtlError, match="Unknown project"):
        store.folder(identity)


def test_a_file_that_cannot_be_read_now_does_not_make_its_project_unknown(paths, folder, monkeypatch):
    store = ProjectStore(paths)
    identity = store.register(folder)

    def short_of_descriptors(*_words, **_options):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", short_of_descriptors)
    with pytest.raises(CtlError, match=r"Cannot read .*: Too many open files"):
        store.folder(identity)


def test_the_person_of_a_project_has_one_session(paths, folder):
    session = operator_session(paths, folder)
    assert operator_session(paths, folder) == session
    assert session.node_id == operator_node(project_id(folder))
    assert SessionStore(paths).find(session.token) == session
