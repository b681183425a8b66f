"""Children, and the signals that end whoever started them."""

from __future__ import annotations

import signal

import pytest

from termsprawlctl.base.processes import Interruptible


def test_a_block_inside_another_gives_the_signals_back_to_it():
    outer, inner = Interruptible(), Interruptible()
    before = signal.getsignal(signal.SIGTERM)
    with outer:
        ours = signal.getsignal(signal.SIGTERM)
        with inner:
            assert Interruptible.in_force is inner
        assert Interruptible.in_force is outer
        assert signal.getsignal(signal.SIGTERM) == ours
    assert Interruptible.in_force is None
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_signals_are_given_back_after_a_failure_too():
    with pytest.raises(ValueError, match="why"), Interruptible():
        raise ValueError("why")
    assert Interruptible.in_force is None
