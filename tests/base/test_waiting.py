"""One deadline over many socket operations."""

from __future__ import annotations

import io
import socket

import pytest
from support.waiting import Clock

from termsprawlctl.base.waiting import MIN_TIMEOUT_S, Deadline, DeadlineReader


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_time_runs_down_from_when_it_was_set(clock):
    deadline = Deadline(45, clock)
    assert deadline.left_s() == 45
    clock.now_s += 44
    assert deadline.left_s() == 1


@pytest.mark.parametrize("late_s", [0, 0.001, 1000])
def test_a_deadline_that_has_passed_says_how_long_it_was(clock, late_s):
    deadline = Deadline(45, clock)
    clock.now_s += 45 + late_s
    with pytest.raises(TimeoutError, match=r"^more than 45 s$"):
        deadline.left_s()


def test_the_last_moment_is_never_a_time_out_of_zero_which_sockets_take_for_non_blocking(clock):
    deadline = Deadline(45, clock)
    clock.now_s += 45 - MIN_TIMEOUT_S / 10
    assert deadline.left_s() == MIN_TIMEOUT_S


def test_the_reader_reads_what_comes(pair, clock):
    ours, theirs = pair
    theirs.sendall(b"one two")
    theirs.shutdown(socket.SHUT_WR)
    with io.BufferedReader(DeadlineReader(ours, Deadline(45, clock))) as reader:
        assert reader.read(3) == b"one"
        assert reader.read() == b" two"


def test_what_was_received_before_comes_first(pair, clock):
    ours, theirs = pair
    theirs.sendall(b" and after")
    theirs.shutdown(socket.SHUT_WR)
    with io.BufferedReader(DeadlineReader(ours, Deadline(45, clock), b"before"), 4) as reader:
        assert reader.read(2) == b"be"
        assert reader.read() == b"fore and after"


def test_a_peer_that_keeps_sending_does_not_move_the_deadline(pair, clock):
    ours, theirs = pair
    with io.BufferedReader(DeadlineReader(ours, Deadline(45, clock)), 1) as reader:
        for _ in range(44):
            theirs.sendall(b"x")
            clock.now_s += 1
            assert reader.read(1) == b"x"
        theirs.sendall(b"x")
        clock.now_s += 1
        with pytest.raises(TimeoutError, match="more than 45 s"):
            reader.read(1)


def test_a_silent_peer_is_a_timeout_error_in_every_python(pair):
    ours, _theirs = pair
    with DeadlineReader(ours, Deadline(0.05)) as reader, pytest.raises(TimeoutError, match=r"more than 0\.05 s"):
        reader.readinto(bytearray(1))


def test_closing_the_reader_leaves_the_socket_open(pair, clock):
    ours, theirs = pair
    with DeadlineReader(ours, Deadline(45, clock)) as reader:
        assert reader.readable()
    theirs.sendall(b"x")
    assert ours.recv(1) == b"x"
