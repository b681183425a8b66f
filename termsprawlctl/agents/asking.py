"""Questions for permission on the terminal of the person who started the run."""

from __future__ import annotations

import os
import termios

from ..base.text import harmless
from ..base.waiting import readable
from ..mcp.provider import Question

TERMINAL = "/dev/tty"
READ_BYTES = 4096


class TerminalQuestion(Question):
    """One question; what is typed is read when somebody looks. The number of an option chooses it, all else nothing."""

    __slots__ = ("_descriptor", "_options", "_typed")

    def __init__(self, descriptor: int, options: list[tuple[str, str]]) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._options = options
        self._typed = b""

    def look(self) -> str | None:
        if self.answer is None and _is_ours(self._descriptor) and readable([self._descriptor], 0):
            self._take()
        return self.answer

    def _take(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except OSError:
            data = b""
        self._typed += data
        if data and b"\n" not in self._typed:
            return
        word = self._typed.decode("utf-8", "replace").strip()
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 3 else 0
        self.settle(self._options[number - 1][0] if 1 <= number <= len(self._options) else "")

    def settle(self, answer: str) -> None:
        if self.answer is None:
            os.close(self._descriptor)
        super().settle(answer)


def ask(message: str, options: list[tuple[str, str]]) -> Question | None:
    """Ask on the terminal; None where there is none, or it is another job's."""
    try:
        descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    if not _is_ours(descriptor):
        os.close(descriptor)
        return None
    lines = [f"  [{number}] {title}" for number, (_, title) in enumerate(options, 1)]
    text = "\n".join(["", message, *lines, f"1 to {len(options)}, or Enter for none: "])
    try:
        # What was typed before the question is no answer to it.
        termios.tcflush(descriptor, termios.TCIFLUSH)
        os.write(descriptor, harmless(text).encode("utf-8", "replace"))
    except (OSError, termios.error):
        os.close(descriptor)
        return None
    return TerminalQuestion(descriptor, options)


def _is_ours(descriptor: int) -> bool:
    """Whether this process may read from it: a job in the background would be stopped."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
