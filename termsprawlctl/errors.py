"""The one error type that commands raise for people to read, and its exit status.

Exit statuses of the whole program: 0 success, 1 the other side said no or the
work failed, 2 it never started (usage, input), 130 Ctrl-C.
"""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130


class CtlError(Exception):
    """A failure told in plain words.

    `message` says what was wrong, `remedy` (may be empty) what to do about it.
    Neither ever holds a token.
    """

    exit_status = FAILED
    named = True  # whether the program's name goes before the message

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class UsageError(CtlError):
    """The command line or its input cannot be acted on; nothing was done."""

    exit_status = USAGE


class CommandLineError(UsageError):
    """The words of the command line are wrong; the message is a whole usage text."""

    named = False


class NoSession(UsageError):
    """No session file was named, in words that agents know from the app."""

    named = False

    def __init__(self) -> None:
        super().__init__(
            "Launch this helper from a termsprawl agent, or provide --session /absolute/path/to/session.json"
        )
