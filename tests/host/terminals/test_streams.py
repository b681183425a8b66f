"""The way of a terminal's output into the host, also when the host is not there any more."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shutil
import subprocess

import pytest
from support.waiting import until

from termsprawlctl.host.terminals.directory import PlainDirectory
from termsprawlctl.host.terminals.panes import Panes
from termsprawlctl.host.terminals.server import Server
from termsprawlctl.host.terminals.streams import Streams, writer


@pytest.fixture(params=["dash", "bash"])
def shell(request) -> str:
    return shutil.which(request.param) or pytest.skip(f"{request.param} is not installed")


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "it's a #fifo %H"
    os.mkfifo(path)
    return path


@contextlib.contextmanager
def running(shell: str, fifo):
    """The writer as tmux starts it; it does not outlive a test that fails."""
    argv = [shell, "-c", writer(str(fifo))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_writer_whose_host_is_gone_before_it_opens_the_fifo_ends(shell, fifo):
    with running(shell, fifo) as process:
        process.communicate(b"x" * 1000, timeout=20)
    assert process.returncode != 0


def test_a_writer_whose_host_goes_away_later_ends_with_the_next_output(shell, fifo):
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with running(shell, fifo) as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        os.set_blocking(reader, True)
        received = b""
        while not received:  # nothing yet is an end of file as long as nobody has opened it
            received = os.read(reader, 100)
        assert received == b"one\n"
        os.close(reader)
        process.stdin.write(b"two\n")
        process.stdin.flush()
        assert process.wait(20) != 0


def test_a_fifo_that_was_removed_meanwhile_is_not_made_a_file(shell, fifo):
    fifo.unlink()
    with running(shell, fifo) as process:
        process.communicate(b"x", timeout=20)
    assert not fifo.exists()


@pytest.mark.process
def test_what_a_terminal_writes_arrives_in_a_directory_of_any_name(tmp_path_factory):
    root = tmp_path_factory.mktemp("s")
    tmux = Server(shutil.which("tmux"), "-S", str(root / "s"), "-f", "/dev/null")
    tmux.run("new-session", "-d", "-s", "ts-n-1", "cat")
    try:
        stream = Streams(PlainDirectory(str(root / "it's #S 100%H x#[y]")), Panes(tmux)).get("n-1")
        tmux.run("send-keys", "-t", "=ts-n-1:", "-l", "hello")
        received = 0
        while b"hello" not in stream.read(0).data:
            assert stream.wait_beyond(received, 20), stream.read(0)
            received = stream.end
    finally:
        tmux.run("kill-server")


@pytest.mark.process
def test_a_stream_that_the_kernel_has_no_room_for_ends_alone(tmp_path_factory, monkeypatch):
    root = tmp_path_factory.mktemp("s")
    tmux = Server(shutil.which("tmux"), "-S", str(root / "s"), "-f", "/dev/null")
    for number in "123":
        tmux.run("new-session", "-d", "-s", f"ts-n-{number}", "cat")
    streams = Streams(PlainDirectory(str(root / "fifos")), Panes(tmux))

    def assert_followed(stream, node_id: str) -> None:
        begin = stream.end
        tmux.run("send-keys", "-t", f"=ts-{node_id}:", "-l", "hello")
        until(lambda: b"hello" in stream.read(begin).data)

    try:
        first = streams.get("n-1")
        assert_followed(first, "n-1")

        def full(*_arguments):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        register = selectors.DefaultSelector.register
        monkeypatch.setattr(selectors.DefaultSelector, "register", full)
        second = streams.get("n-2")
        until(lambda: second.ended)
        monkeypatch.setattr(selectors.DefaultSelector, "register", register)
        assert_followed(first, "n-1")
        for node_id in ("n-2", "n-3"):
            assert_followed(streams.get(node_id), node_id)
    finally:
        tmux.run("kill-server")
