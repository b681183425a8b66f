"""A fifo that a shell's script opens first: whether it was taken up, and whether it may go on.

Opening a fifo to read waits for somebody who writes; opening it to write, without waiting,
fails as long as nobody reads. So the host knows for certain: a script that has come to its
first line waits for a word, and one that has not will never get it once the fifo has
another name.
"""

from __future__ import annotations

import contextlib
import errno
import os

from ....base.files import remove_quietly

SUFFIX = ".latch"
_GO, _NO = b"go\n", b"no\n"


class Latch:
    """One fifo, made at `path`. Raises OSError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._writer = -1
        os.mkfifo(path, 0o600)

    def is_taken(self) -> bool:
        """Whether the script waits; it does so until go() or cancel()."""
        if self._writer < 0:
            self._writer = _open(self.path)
        return self._writer >= 0

    def go(self) -> None:
        """Let the script go on. Raises OSError where it waits no longer; it has run nothing then."""
        try:
            os.write(self._writer, _GO)
        finally:
            self.close()

    def cancel(self) -> None:
        """Whatever happens, the script runs nothing from now on."""
        if self._writer < 0:
            aside = self.path + "-"
            with contextlib.suppress(OSError):
                # From now on nobody can begin to wait; who does already is told.
                os.rename(self.path, aside)
                self.path = aside
                self._writer = _open(aside)
        if self._writer >= 0:
            with contextlib.suppress(OSError):
                os.write(self._writer, _NO)
        self.close()

    def close(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        remove_quietly(self.path)


def release(path: str) -> None:
    """Let go of a script that waits at the latch of a host that was killed: it runs nothing."""
    with contextlib.suppress(OSError):
        writer = _open(path)
        if writer >= 0:
            os.write(writer, _NO)
            os.close(writer)
    remove_quietly(path)


def _open(path: str) -> int:
    """A descriptor to write to, -1 while nobody reads. Raises OSError."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return -1
        raise
