"""A private directory whose path needs no quotes: not in any shell, nor in tmux's formats.

What lies there is named to shells and in tmux commands, whose ways to quote differ: tmux
leaves `##[` as it stands, for example, though `##` is a `#` everywhere else.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading

from ...base.files import private_directory, read_small, remove_quietly, write_atomically
from ...base.ownership import is_ours
from ...base.tempfiles import new_directory, temporary_root

MAX_CHARS = 80
_PREFIX = "termsprawlctl-"
_PLAIN = re.compile(r"[A-Za-z0-9_./+@-]+")


class PlainDirectory:
    """The usual directory where its path is plain, else one of its own below the temporary folder.

    `usual` then holds a pointer to that one, for the next host where this one is killed.
    """

    def __init__(self, usual: str) -> None:
        self._usual = usual
        self._elsewhere: str | None = None
        self._lock = threading.Lock()

    def path(self) -> str:
        """The directory, made where it is missing. Raises OSError, CtlError."""
        private_directory(self._usual)
        if _is_plain(self._usual):
            return self._usual
        with self._lock:
            # A shell will read what lies there: it has to be the directory that was made.
            if self._elsewhere is None or not is_ours(self._elsewhere):
                self._elsewhere = self._recorded() or self._made()
            return self._elsewhere

    def entries(self) -> list[str]:
        """The paths of what lies there, of an earlier host's, too."""
        self._elsewhere = self._elsewhere or self._recorded()
        found = []
        for directory in filter(None, (self._usual, self._elsewhere)):
            with contextlib.suppress(OSError):
                found += [os.path.join(directory, name) for name in os.listdir(directory)]
        return found

    def leave(self) -> None:
        """The host ends: take away the other directory, unless something is still needed there."""
        if self._elsewhere is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._elsewhere)
                remove_quietly(self._pointer())

    def clear(self) -> None:
        """No terminal of any host uses it any more: take all away."""
        for path in self.entries():
            remove_quietly(path)
        self.leave()

    def _made(self) -> str:
        """A new directory, with the pointer to it."""
        root = temporary_root(os.environ)
        made = new_directory(root if _is_plain(os.path.join(root, _PREFIX + "0" * 12)) else "/tmp", _PREFIX)  # noqa: S108
        try:
            write_atomically(self._pointer(), os.fsencode(made))
        except BaseException:
            os.rmdir(made)
            raise
        return made

    def _pointer(self) -> str:
        return os.path.join(self._usual, "scripts.path")

    def _recorded(self) -> str | None:
        try:
            path = os.fsdecode(read_small(self._pointer()))
        except OSError:
            return None
        return path if os.path.basename(path).startswith(_PREFIX) and _is_plain(path) and is_ours(path) else None


def _is_plain(directory: str) -> bool:
    return len(directory) <= MAX_CHARS and _PLAIN.fullmatch(directory) is not None
