"""What killed processes left, told from what is in use."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from termsprawlctl.base.tempfiles import HeldDirectory, sweep, temporary_root

PREFIX = "kind-"


def make(root: Path) -> HeldDirectory:
    return HeldDirectory(PREFIX, os.rmdir, str(root))


def test_a_directory_is_private_and_gone_from_nobodys_hands(tmp_path):
    before = os.umask(0)
    try:
        held = make(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(held.path).st_mode) == 0o700
    assert not os.get_inheritable(held.descriptor)
    other = make(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (held.path, other.path)))
    held.release()
    held.release()
    third = make(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (other.path, third.path)))
    other.release()
    third.release()


def test_a_child_that_has_the_descriptor_holds_it_for_a_maker_that_is_gone(tmp_path):
    held = make(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held.descriptor], text=True
    )
    held.release()
    make(tmp_path).release()
    assert os.path.isdir(held.path)
    child.communicate("\n", timeout=60)
    make(tmp_path).release()
    assert not os.path.isdir(held.path)


def test_one_that_is_swept_before_it_is_held_is_made_anew(tmp_path, monkeypatch):
    real, swept = os.open, []

    def open_after_a_sweep(path, *arguments, **options):
        if PREFIX in os.path.basename(path) and not swept:
            swept.append(path)
            os.rmdir(path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", open_after_a_sweep)
    held = make(tmp_path)
    assert swept != [held.path]
    assert os.listdir(tmp_path) == [os.path.basename(held.path)]
    held.release()


def test_only_what_has_the_whole_name_is_taken_and_no_link_is_followed(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "kind-000000000001").symlink_to(target)
    for name in ("kind-", "kind-000000000002x", "akind-000000000002", "kind-00000000000g"):
        (tmp_path / name).mkdir()
    before = sorted(os.listdir(tmp_path))
    taken: list[str] = []
    sweep(str(tmp_path), re.compile("kind-[0-9a-f]{12}"), taken.append)
    assert taken == []
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of another user")
def test_what_belongs_to_another_user_is_left_to_them(tmp_path):
    path = tmp_path / "kind-000000000001"
    path.mkdir()
    os.chown(path, 65534, 65534)
    make(tmp_path).release()
    assert path.is_dir()


def test_without_locks_nothing_is_taken_for_a_leftover(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    first, second = make(tmp_path), make(tmp_path)
    first.release()
    second.release()
    make(tmp_path).release()
    assert len(os.listdir(tmp_path)) == 3


def test_a_place_that_cannot_be_written_to_is_told(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        make(tmp_path / "missing")


def test_temporary_files_have_their_place_where_the_environment_says_if_it_can_be_used(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert temporary_root({"TMPDIR": str(tmp_path / "link")}) == str(tmp_path / "real")
    assert temporary_root({"TMPDIR": str(tmp_path / "gone"), "TMP": str(tmp_path)}) == str(tmp_path)
    assert temporary_root({"TMPDIR": ""}) == os.path.realpath("/tmp")
    assert os.listdir(tmp_path / "real") == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileNotFoundError, match="no writable directory"):
        temporary_root({"TMPDIR": str(tmp_path)})


def test_one_that_cannot_be_held_leaves_neither_directory_nor_descriptor(tmp_path, monkeypatch):
    def failing(*_arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("termsprawlctl.base.tempfiles.hold", failing)
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with pytest.raises(PermissionError):
        make(tmp_path)
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert (os.listdir(tmp_path), after) == ([], before)
