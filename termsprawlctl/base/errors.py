"""The one error type that commands raise for people to read, and its exit status.

Exit statuses of the whole program: 0 success, 1 the operation was refused or failed,
2 nothing was called (usage, input), 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import os

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

# The machine's or the user's limits, whatever the program does.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT)


class CtlError(Exception):
    """A failure in plain words.

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

    def __init__(self, remedy: str) -> None:
        super().__init__(
            "Launch this helper from a termsprawl agent, or provide --session /absolute/path/to/session.json"
        )
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}"


def words_for(fault: BaseException) -> str:
    """One line for an exception that nothing expected, without its own text, which may quote a secret."""
    short_of = _shortage(fault)
    if short_of:
        return f"{short_of}; nothing more was done. Free some, or raise the limit (ulimit -a)."
    if _is_without_folder(fault):
        return "the current directory was deleted. Change to one that is there, then run this again."
    return f"internal error: {_where(fault)}. This is a fault of this program; please report it."


def _shortage(fault: BaseException) -> str:
    if isinstance(fault, MemoryError):
        return "out of memory"
    # threading has no exception of its own for it.
    if isinstance(fault, RuntimeError) and "start new thread" in str(fault):
        return "no more threads are available"
    if isinstance(fault, ImportError) and fault.__context__ is not None:
        fault = fault.__context__  # a module could not be read any more
    return str(fault.strerror).lower() if isinstance(fault, OSError) and fault.errno in _SHORTAGES else ""


def _is_without_folder(fault: BaseException) -> bool:
    """Whether it says that there is no current directory: only that question names no file."""
    if not isinstance(fault, FileNotFoundError) or fault.filename is not None:
        return False
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _where(fault: BaseException) -> str:
    """The type and the place of an exception, without its text."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
    return type(fault).__name__ + place
