"""A project's turns: one at a time, in order, and not for ever."""

from __future__ import annotations

import threading

import pytest

from termsprawlctl.host.operations.ordering import ExpiredError, Turns


def queued(turns: Turns, key: str) -> int:
    return len(turns._queues.get(key, ()))


def spin_until(condition) -> None:
    for _ in range(10_000_000):
        if condition():
            return
    pytest.fail("the condition never came true")


def test_turns_of_one_key_come_one_at_a_time_in_order_of_arrival():
    turns, order, running = Turns(60.0), [], []

    def take(number: int) -> None:
        with turns.turn("p"):
            running.append(number)
            assert running == [number]
            order.append(number)
            running.clear()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(20)]
    with turns.turn("p"):
        for number, thread in enumerate(threads):
            thread.start()
            spin_until(lambda expected=number + 2: queued(turns, "p") == expected)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_another_key_does_not_wait():
    turns = Turns(60.0)
    with turns.turn("a"), turns.turn("b"):
        pass


def test_one_that_waited_too_long_is_dropped_and_the_next_still_comes():
    turns = Turns(0.05)
    with turns.turn("p"), pytest.raises(ExpiredError), turns.turn("p"):
        pytest.fail("it must not run")
    with turns.turn("p"):
        pass
    assert queued(turns, "p") == 0


def test_a_turn_that_came_just_too_late_is_dropped_too():
    now = iter([0.0, 16.0, 16.0, 16.0])
    turns = Turns(15.0, clock=lambda: next(now))
    with pytest.raises(ExpiredError), turns.turn("p"):
        pytest.fail("it must not run")


def test_a_turn_that_fails_lets_the_next_one_in():
    turns = Turns(60.0)
    with pytest.raises(ZeroDivisionError), turns.turn("p"):
        raise ZeroDivisionError
    with turns.turn("p"):
        pass
