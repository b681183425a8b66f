"""A word on standard error while something takes longer than people wait without one."""

from __future__ import annotations

import contextlib
import threading

from . import console

PATIENCE_S = 1.0


class Notice:
    """`with Notice("looking for ..."):` says so once it has taken longer than a second.

    `quiet`: it does not.
    """

    def __init__(self, text: str, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._timer = threading.Timer(PATIENCE_S, console.err, [f"termsprawlctl: {text} …"])
        self._timer.daemon = True

    def __enter__(self) -> None:
        if not self._quiet:
            with contextlib.suppress(RuntimeError):  # no thread is to be had: it goes without a word
                self._timer.start()

    def __exit__(self, *_) -> None:
        self._timer.cancel()
