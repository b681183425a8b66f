"""Private files: bounded reads of regular files, atomic writes, narrow modes."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from termsprawlctl.base import files, ownership

ROOT = Path(__file__).resolve().parents[2]


def mode_of(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def wide_umask():
    before = os.umask(0)
    yield
    os.umask(before)


# Reading


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
def test_a_file_is_read_whole(tmp_path, size):
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    assert files.read_small(str(tmp_path / "f")) == data


def test_a_file_may_be_exactly_as_large_as_the_limit(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    assert files.read_small(str(path), 100) == b"x" * 100
    with pytest.raises(OSError, match="larger than 99 bytes") as caught:
        files.read_small(str(path), 99)
    assert caught.value.strerror == "larger than 99 bytes"


def test_a_symbolic_link_to_a_file_is_read(tmp_path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "link").symlink_to("f")
    assert files.read_small(str(tmp_path / "link")) == b"x"


def test_a_fifo_that_nobody_writes_to_is_an_error_and_no_wait(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        files.read_small(str(tmp_path / "fifo"))


def test_a_fifo_with_a_writer_is_an_error_too(tmp_path):
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(OSError, match="not a regular file"):
            files.read_small(path)
    finally:
        os.close(keeper)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty", "/dev/stdin/", "/"])
def test_devices_and_directories_are_errors_that_say_why(path):
    with pytest.raises(OSError, match=r".") as caught:
        files.read_small(path)
    assert caught.value.strerror


def test_a_directory_and_a_missing_file_say_so(tmp_path):
    with pytest.raises(OSError, match="it is a directory"):
        files.read_small(str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        files.read_small(str(tmp_path / "none"))
    assert caught.value.strerror == "No such file or directory"


def test_a_socket_and_a_loop_of_links_are_errors(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX) as sock:
        monkeypatch.chdir(tmp_path)
        sock.bind("s")
        with pytest.raises(OSError, match=r"."):
            files.read_small("s")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        files.read_small(str(tmp_path / "loop"))


def test_reading_leaves_no_descriptor_open(tmp_path):
    before = os.listdir("/dev/fd")
    for path in (str(tmp_path), "/dev/null", __file__):
        try:
            files.read_small(path, 10)
        except OSError:
            continue
    assert len(os.listdir("/dev/fd")) == len(before)


# Writing


def test_a_new_file_is_for_its_owner_alone_whatever_the_umask_says(tmp_path, wide_umask):
    path = tmp_path / "f"
    files.write_atomically(str(path), b"data")
    assert (path.read_bytes(), mode_of(path)) == (b"data", 0o600)


def test_a_file_that_others_could_read_is_replaced_by_one_that_they_cannot(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o644)
    files.write_atomically(str(path), b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o600)


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to("target")
    files.write_atomically(str(tmp_path / "link"), b"new")
    assert (tmp_path / "target").read_text() == "kept"
    assert not (tmp_path / "link").is_symlink()


def test_a_relative_path_without_a_folder_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.write_atomically("f", b"data")
    assert (tmp_path / "f").read_bytes() == b"data"


def test_readers_see_the_old_or_the_new_bytes_and_nothing_else(tmp_path):
    path = str(tmp_path / "f")
    versions = {bytes([letter]) * 100_000 for letter in b"abc"}
    files.write_atomically(path, b"a" * 100_000)
    done = threading.Event()
    seen = set()

    def watch():
        while not done.is_set():
            seen.add(files.read_small(path))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(20):
        for version in sorted(versions):
            files.write_atomically(path, version)
    done.set()
    watcher.join()
    assert seen <= versions
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("broken", ["write", "fsync", "replace", "close"])
def test_a_write_that_fails_keeps_the_old_file_and_leaves_nothing_beside_it(tmp_path, monkeypatch, broken):
    path = tmp_path / "f"
    path.write_text("old")
    real = getattr(os, broken)

    def fail(*arguments, **options):
        if broken == "close":
            real(*arguments)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        with pytest.raises(OSError, match="No space left"):
            files.write_atomically(str(path), b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
        files.write_atomically(str(tmp_path / "f"), b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.write_atomically(str(tmp_path / "none" / "f"), b"x")


# Directories


def test_a_private_directory_is_made_with_its_parents(tmp_path, wide_umask):
    path = str(tmp_path / "a" / "b")
    assert files.private_directory(path) == path
    assert mode_of(path) == 0o700


def test_a_directory_that_others_may_enter_is_narrowed(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(0o777)
    files.private_directory(str(tmp_path / "d"))
    assert mode_of(tmp_path / "d") == 0o700


def test_a_file_in_the_place_of_the_directory_is_an_error(tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(OSError, match=r"."):
        files.private_directory(str(tmp_path / "f"))


def test_a_directory_of_another_user_is_refused_and_left_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "d").mkdir(mode=0o755)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(OSError, match="belongs to another user"):
        files.private_directory(str(tmp_path / "d"))
    assert mode_of(tmp_path / "d") == 0o755


def test_a_directory_that_the_user_named_keeps_its_mode(tmp_path, wide_umask):
    (tmp_path / "d").mkdir(mode=0o755)
    assert files.named_directory(str(tmp_path / "d")) == str(tmp_path / "d")
    assert mode_of(tmp_path / "d") == 0o755
    files.named_directory(str(tmp_path / "new"))
    assert mode_of(tmp_path / "new") == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_named_directory_that_others_may_write_to_is_refused(tmp_path, mode):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    with pytest.raises(OSError, match="other users may write to it, which `chmod go-w` ends"):
        files.named_directory(str(tmp_path / "d"))


def test_removing_what_is_gone_is_no_error(tmp_path):
    (tmp_path / "f").write_text("x")
    files.remove_quietly(str(tmp_path / "f"))
    files.remove_quietly(str(tmp_path / "f"))
    assert os.listdir(tmp_path) == []


def test_what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else_does(tmp_path):
    path = tmp_path / "f"
    dead, another_files, foreign = ".f.0123456789abcdef", ".g.0123456789abcdef", ".f.0123456789abcdef.mine"
    for name in (dead, another_files, foreign):
        (tmp_path / name).write_text("half")
    files.write_atomically(str(path), b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([another_files, foreign, "f"])


def test_of_two_writers_of_a_file_neither_takes_the_others_work_for_a_leftover(tmp_path):
    path = str(tmp_path / "f")

    def write_in_between() -> None:
        files.write_atomically(path, b"second")
        assert len(os.listdir(tmp_path)) == 2, "the first one's temporary file is there"

    files.write_atomically(path, b"first", before_replace=write_in_between)
    assert (tmp_path / "f").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_with_the_name_of_a_leftover_is_not_followed(tmp_path):
    (tmp_path / "kept").write_text("kept")
    (tmp_path / ".f.0123456789abcdef").symlink_to(tmp_path / "kept")
    files.write_atomically(str(tmp_path / "f"), b"new")
    assert (tmp_path / "kept").read_text() == "kept"


def test_signals_that_end_a_process_wait_for_the_end_of_a_write(tmp_path):
    program = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "from termsprawlctl.base import files\n"
        "files.write_atomically(sys.argv[2], b'new', before_replace=lambda: os.kill(os.getpid(), signal.SIGTERM))\n"
    )
    path = tmp_path / "f"
    done = subprocess.run([sys.executable, "-c", program, str(ROOT), str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGTERM
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


def test_writing_ever_new_files_keeps_nothing_of_them_in_memory(tmp_path):
    def write(name: str) -> None:
        files.write_atomically(str(tmp_path / name), b"new")
        (tmp_path / name).unlink()

    for number in range(20):
        write(f"warm-{number}")
    tracemalloc.start()
    try:
        write("first")
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            write(f"later-{number}")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200 * 50, "a host writes a file for each terminal that is ever opened"


def test_an_output_goes_to_a_pipe_that_has_no_path():
    reader, writer = os.pipe()
    try:
        files.write_output(f"/dev/fd/{writer}", b"picture")
        assert os.read(reader, 100) == b"picture"
    finally:
        os.close(reader)
        os.close(writer)


def test_temporary_files_are_looked_for_in_the_directory_that_is_written_in(tmp_path, monkeypatch):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    dead = ".f.0123456789abcdef"
    for folder in (ours, theirs):
        folder.mkdir()
        (folder / dead).write_bytes(b"")
    real = ownership.open_directory

    def open_and_replace(path, **options):
        descriptor = real(path, **options)
        ours.rename(tmp_path / "moved")
        theirs.rename(ours)
        return descriptor

    monkeypatch.setattr(ownership, "open_directory", open_and_replace)
    files.write_atomically(str(ours / "f"), b"x")
    assert os.listdir(tmp_path / "moved") == ["f"]
    assert os.listdir(ours) == [dead]


def test_the_last_lines_are_whole(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert files.last_lines(str(path), 100) == [b"one", b"two", b"three", b""]
    assert files.last_lines(str(path), 8) == [b"three", b""]
    assert files.last_lines(str(tmp_path / "none"), 8) == files.last_lines(str(tmp_path), 8) == []
