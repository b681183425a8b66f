"""A repository that somebody else made: looking at it runs nothing that it says."""

from __future__ import annotations

import os
import subprocess

import pytest

from termsprawlctl.agents.runs import snapshot


def git(folder, *words, **options) -> subprocess.CompletedProcess:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True, **options)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "file.txt").write_text("one\n")
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def touch(folder) -> None:
    """The same bytes at another time: git has to look into the file."""
    os.utime(folder / "file.txt", (1, 1))


def run_by_git_itself(folder, marker) -> bool:
    """Whether `git status` starts what the repository says: else the test shows nothing."""
    touch(folder)
    subprocess.run(["git", "-C", str(folder), "status"], capture_output=True, check=False)
    return marker.exists()


@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize("name", ["evil", "e.v.il", "ü"])
def test_a_filter_of_the_repository_is_not_run(folder, tmp_path, kind, name):
    marker = tmp_path / "ran"
    git(folder, "config", f"filter.{name}.{kind}", f"touch {marker}; cat")
    git(folder, "config", f"filter.{name}.required", "true")
    (folder / ".git" / "info" / "attributes").write_text(f"*.txt filter={name}\n")
    touch(folder)
    state = snapshot.look(str(folder))
    assert not marker.exists()
    assert state is not None
    assert "file.txt" not in state.changed
    assert run_by_git_itself(folder, marker)


def test_a_filter_whose_name_could_hide_it_keeps_git_from_being_asked(folder, tmp_path):
    marker = tmp_path / "ran"
    git(folder, "config", "filter.e=vil.clean", f"touch {marker}; cat")
    (folder / ".git" / "info" / "attributes").write_text("*.txt filter=e=vil\n")
    touch(folder)
    assert snapshot.look(str(folder)) is None
    assert not marker.exists()
    assert run_by_git_itself(folder, marker)


def test_a_file_monitor_of_the_repository_is_not_run(folder, tmp_path):
    marker, monitor = tmp_path / "ran", tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {marker}\n")
    monitor.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(monitor))
    assert snapshot.look(str(folder)) is not None
    assert not marker.exists()
    assert run_by_git_itself(folder, marker)


def test_a_repository_cannot_have_missing_objects_fetched(folder, tmp_path):
    marker = tmp_path / "ran"
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(folder),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {marker}; git-upload-pack",
        "protocol.allow": "always",
    }.items():
        git(folder, "config", name, value)
    tree = git(folder, "rev-parse", "HEAD^{tree}", text=True).stdout.strip()
    (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (folder / ".git" / "index").unlink()
    assert snapshot.look(str(folder)) is None
    assert not marker.exists()
    assert run_by_git_itself(folder, marker)


def test_variables_of_git_in_the_environment_do_not_lead_it_elsewhere(folder, tmp_path, monkeypatch):
    marker = tmp_path / "ran"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "filter.evil.clean")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {marker}; cat")
    touch(folder)
    assert snapshot.look(str(folder)) is not None
    assert not marker.exists()
