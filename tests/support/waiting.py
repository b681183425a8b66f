"""Waiting for something to become true: the one way to do it in a test."""

from __future__ import annotations

import time

PATIENCE_S = 30.0  # far more than anything takes, even on a busy machine
PAUSE_S = 0.02


def until(condition, what="", patience_s: float = PATIENCE_S):
    """The first true value of condition().

    Fails after patience_s with `what`, a text or a function that gives one at that time.
    """
    end_s = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end_s, (
            f"not within {patience_s:g} s: {what() if callable(what) else what or condition}"
        )
        time.sleep(PAUSE_S)


class Clock:
    """A clock that moves when a test moves it; calling it gives seconds."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
