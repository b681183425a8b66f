"""A CLI that builds a database in its home at the first run must do so alone.

Two first runs at once: one of them dies within a second. So the first run of a home
holds a lock until it has said something; it is a lock on a directory, so that no file
is left behind, and it holds between servers, too.
"""

from __future__ import annotations

import os
import threading

from ...base.files import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .heartbeat import Heartbeat


RETRY_S = 0.1
WAITING = "Waiting: another first run in this home"


class FirstRun:
    """A context: inside it, the run is alone, or not the first. release() lets the others go on."""

    def __init__(self, directory: Callable[[], str], cancelled: threading.Event, report: Heartbeat) -> None:
        """`directory()` tells what to lock; it is empty when there is nothing to wait for.

        `report` hears that it waits.
        """
        self._directory = directory
        self._cancelled = cancelled
        self._report = report
        self._descriptor = -1

    def __enter__(self) -> FirstRun:  # noqa: PYI034 - Self would import typing
        directory = self._directory()
        if directory:
            try:
                self._descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return self  # the CLI itself will say what is wrong with its home
            reported = False
            # A file system may have no locks: then nobody is waited for.
            while not self._cancelled.is_set() and lock(self._descriptor) is False:
                if not reported:
                    reported = True
                    self._report(WAITING)
                self._report.beat()
                self._cancelled.wait(RETRY_S)
            if not self._directory():
                self.release()  # the one that was waited for was the first
        return self

    def release(self) -> None:
        """The first run is under way."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __exit__(self, *_exception: object) -> None:
        self.release()
