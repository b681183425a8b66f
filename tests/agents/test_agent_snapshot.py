"""What changed in a repository, by git's account before and after."""

from __future__ import annotations

import os
import subprocess

import pytest
from support.processes import is_alive
from support.waiting import until

from termsprawlctl.agents.runs import snapshot


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path):
    git(tmp_path, "init", "-q")
    for name in ("kept.txt", "edited.txt", "deleted.txt", "dirty.txt", "staged.txt"):
        (tmp_path / name).write_text("one\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def changed(folder, work):
    root = snapshot.root_of(str(folder))
    before = snapshot.look(root)
    work()
    return snapshot.compare(before, snapshot.look(root))


def test_added_modified_and_deleted_files_are_told(folder):
    def work():
        (folder / "sub").mkdir()
        (folder / "sub" / "naïve 文件 🚀.txt").write_text("new\n")
        (folder / "edited.txt").write_text("two\n")
        (folder / "deleted.txt").unlink()
        (folder / "build.log").write_text("ignored\n")

    assert changed(folder, work) == {
        "sub/naïve 文件 🚀.txt": "added",
        "edited.txt": "modified",
        "deleted.txt": "deleted",
    }


def test_what_was_already_changed_counts_only_if_it_changed_again(folder):
    (folder / "dirty.txt").write_text("two\n")
    (folder / "staged.txt").write_text("two\n")
    (folder / "loose.txt").write_text("loose\n")
    (folder / "gone.txt").write_text("loose\n")
    (folder / "deleted.txt").unlink()

    def work():
        (folder / "dirty.txt").write_text("three, longer\n")
        git(folder, "add", "staged.txt")
        (folder / "gone.txt").unlink()
        (folder / "deleted.txt").write_text("back again\n")

    assert changed(folder, work) == {"dirty.txt": "modified", "gone.txt": "deleted", "deleted.txt": "added"}


def test_work_that_the_agent_committed_is_told_too(folder):
    (folder / "loose.txt").write_text("loose\n")

    def work():
        (folder / "new.txt").write_text("new\n")
        (folder / "edited.txt").write_text("two\n")
        (folder / "deleted.txt").unlink()
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "second")
        (folder / "edited.txt").write_text("three\n")

    assert changed(folder, work) == {"new.txt": "added", "edited.txt": "modified", "deleted.txt": "deleted"}


def test_a_renamed_file_is_one_added_and_one_deleted(folder):
    def work():
        git(folder, "mv", "edited.txt", "moved.txt")

    assert changed(folder, work) == {"moved.txt": "added", "edited.txt": "deleted"}


def test_a_repository_without_a_commit_can_be_compared(tmp_path):
    git(tmp_path, "init", "-q")

    def work():
        (tmp_path / "a.txt").write_text("a\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "first")
        (tmp_path / "b.txt").write_text("b\n")

    assert changed(tmp_path, work)["b.txt"] == "added"


def test_the_root_is_found_from_below_and_a_folder_without_git_has_none(folder, tmp_path_factory):
    (folder / "a" / "b").mkdir(parents=True)
    assert snapshot.root_of(str(folder / "a" / "b")) == os.path.realpath(folder)
    assert snapshot.root_of(str(tmp_path_factory.mktemp("plain"))) == ""


def test_looking_runs_no_program_that_the_repository_names(folder, tmp_path):
    witness = tmp_path / "ran"
    git(folder, "config", "core.fsmonitor", f"touch {witness}; false")
    assert snapshot.look(str(folder)) is not None
    assert not witness.exists()


@pytest.mark.process
def test_a_folder_that_git_cannot_read_gives_nothing(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /no/such/place\n")
    assert snapshot.look(str(tmp_path)) is None


def test_a_git_that_hangs_is_ended_with_what_it_started(folder, tmp_path, monkeypatch):
    script, child = tmp_path / "bin" / "git", tmp_path / "child"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {child}\nwait\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(snapshot, "TIMEOUT_S", 2.0)
    assert snapshot.look(str(folder)) is None
    until(lambda: not is_alive(int(child.read_text())), "the end of its child")
