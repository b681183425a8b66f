"""Lines for standard streams that nobody may be reading."""

from __future__ import annotations

import _thread
import os
import select

import pytest

from termsprawlctl.base import console, log
from termsprawlctl.base.waiting import readable


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def fill(reader: int, writer: int, room: int) -> int:
    """Fill a pipe up to some room; returns how much it holds."""
    os.set_blocking(writer, False)
    held = 0
    try:
        while True:
            held += os.write(writer, b"x" * select.PIPE_BUF)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return held - (len(os.read(reader, room)) if room else 0)


@pytest.mark.parametrize("size", [10, 3 * select.PIPE_BUF])
@pytest.mark.parametrize("room", [0, select.PIPE_BUF])
def test_whoever_hands_over_never_waits_for_the_reader(pipe, monkeypatch, size, room):
    reader, writer = pipe
    monkeypatch.setattr(console, "STDOUT", writer)
    monkeypatch.setattr(log, "STDOUT", writer)
    left = fill(reader, writer, room)
    log.hand_over(b"y" * size)  # a write that waits would stand here for ever
    received = b""
    while len(received) < left + size and readable([reader], 20):
        received += os.read(reader, 65536)
    assert received == b"x" * left + b"y" * size


def test_a_log_does_not_wait_for_its_own_thread(pipe, monkeypatch):
    never_begins = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda enter, _arguments: never_begins.append(enter))
    stream = log.Log(pipe[1])
    for _ in range(3):
        stream.write("a line\n")
    assert len(never_begins) == 1
