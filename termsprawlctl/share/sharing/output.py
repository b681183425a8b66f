"""What the sharing process says and hears in its own terminal, while that is its own."""

from __future__ import annotations

import asyncio
import os
import termios
import tty
from collections.abc import Callable

from ...base import console, log


def say(text: str) -> None:
    """A line to standard output, if somebody takes it: a reader that stalls must not hold up a revocation."""
    log.say(text, console.STDOUT)


def note(text: str) -> None:
    """Like say(), to standard error."""
    log.say(text)


def say_in_front(text: str) -> None:
    """say() unless another program has the terminal."""
    if not os.isatty(console.STDOUT) or in_foreground(console.STDOUT):
        say(text)


def in_foreground(descriptor: int) -> bool:
    """Whether this terminal is ours at the moment."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


class Keys:
    """`r` in our own terminal, while we are in its foreground."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_revoke: Callable[[], None]) -> None:
        self._loop = loop
        self._on_revoke = on_revoke
        self._saved: list | None = None

    def take(self) -> None:
        """Have each key at once from here on, if they are ours; anew after a pause, when a shell has changed that."""
        if not os.isatty(console.STDIN) or not in_foreground(console.STDIN):
            return
        if self._saved is None:
            self._saved = termios.tcgetattr(console.STDIN)
        tty.setcbreak(console.STDIN)
        self._loop.add_reader(console.STDIN, self._read)

    def close(self) -> None:
        """Give the terminal back as it was."""
        if self._saved is None:
            return
        self._loop.remove_reader(console.STDIN)
        if in_foreground(console.STDIN):
            try:
                termios.tcsetattr(console.STDIN, termios.TCSADRAIN, self._saved)
            except termios.error:
                return

    def _read(self) -> None:
        # In the background the keys are the shell's, and reading them would stop us.
        try:
            keys = os.read(console.STDIN, 1024) if in_foreground(console.STDIN) else b""
        except OSError:
            keys = b""
        if not keys:
            self._loop.remove_reader(console.STDIN)
        elif b"r" in keys:
            self._on_revoke()
