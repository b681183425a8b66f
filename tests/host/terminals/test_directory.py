"""A directory whose path needs no quotes, and what a killed host leaves of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from termsprawlctl.host.terminals import directory
from termsprawlctl.host.terminals.directory import PlainDirectory


@pytest.fixture
def odd(tmp_path):
    return str(tmp_path / "it's #S 100%H x#[y]")


def test_a_plain_path_is_used_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(directory, "MAX_CHARS", 4096)
    usual = str(tmp_path / "run")
    assert PlainDirectory(usual).path() == usual


def test_the_next_host_goes_on_where_a_killed_one_was(odd):
    first = PlainDirectory(odd)
    made = Path(first.path())
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (made / "script").write_text("x")
    # It is killed: nobody calls leave().
    second = PlainDirectory(odd)
    assert second.path() == str(made)
    assert str(made / "script") in second.entries()
    (made / "script").unlink()
    second.leave()
    assert not made.exists()
    assert os.listdir(odd) == []


def test_what_a_killed_host_left_is_cleared_without_another_one(odd):
    made = Path(PlainDirectory(odd).path())
    (made / "script").write_text("x")
    PlainDirectory(odd).clear()
    assert not made.exists()
    assert os.listdir(odd) == []


@pytest.mark.parametrize("pointer", [b"", b"relative", b"/no/such/directory", b"/etc", b"\xff", b"/tmp/a b"])
def test_a_pointer_that_names_no_directory_of_ours_is_not_followed(odd, pointer):
    os.mkdir(odd, 0o700)
    Path(odd, "scripts.path").write_bytes(pointer)
    one = PlainDirectory(odd)
    made = one.path()
    assert os.fsencode(made) != pointer
    one.leave()


def test_a_pointer_that_cannot_be_written_leaves_no_directory(odd, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(directory, "MAX_CHARS", 4096)

    def full(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "write_atomically", full)
    with pytest.raises(OSError, match="No space"):
        PlainDirectory(odd).path()
    assert os.listdir(tmp_path / "t") == []
