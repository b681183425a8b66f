"""Standard input, output and error of the process, as bytes: the edge to the shell.

Independent of the locale: everything that goes out is UTF-8. A reader that went
away (`| head -1`) is not an error; a full disk is.

What came from elsewhere gets to a terminal as harmless() text only; its callers' own control
characters go by paint().
"""

from __future__ import annotations

import os
import select

from .errors import CtlError
from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STDIN, STDOUT, STDERR = 0, 1, 2
PATIENCE_S = 1.0  # people wait so long without a word


def reserve_standard_descriptors() -> None:
    """Open /dev/null on any of 0, 1, 2 that the parent closed.

    Otherwise the next socket or file would get that number, and output meant
    for the user would be written into it. Children have them, too.
    """
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened == descriptor:
                os.set_inheritable(descriptor, True)
            else:
                os.dup2(opened, descriptor)
                os.close(opened)


def out(text: str) -> None:
    """Write text to standard output, whole; silent when nobody reads any more.

    To a terminal as harmless() text, to anything else as it is. Raises CtlError when it
    could not be written for another reason.
    """
    if os.isatty(STDOUT):
        from .text import harmless

        text = harmless(text)
    out_bytes(encode(text))


def paint(text: str, descriptor: int = STDOUT) -> None:
    """Write text with control characters that a terminal is to obey; what came from elsewhere is harmless() already.

    Raises CtlError as out() does; to standard error it never fails.
    """
    if descriptor == STDOUT:
        out_bytes(encode(text))
    else:
        _write_quietly(text)


def out_bytes(data: bytes) -> None:
    """Like out(), for bytes."""
    try:
        _write_all(STDOUT, data)
    except BrokenPipeError:
        return
    except OSError as error:
        raise CtlError(f"cannot write to standard output: {error.strerror}.", "Send it elsewhere.") from None


def err(text: str) -> None:
    """Write one message line to standard error, as harmless() text; never fails."""
    from .text import harmless

    _write_quietly(harmless(text if text.endswith("\n") else text + "\n"))


def wants_colour(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Whether colours are read there by a person who has not turned them off (no-color.org)."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb" and os.isatty(descriptor)


def read_input(max_bytes: int) -> bytes:
    """All of standard input, at most max_bytes; raises CtlError beyond that."""
    chunks: list[bytes] = []
    size = 0
    while True:
        try:
            chunk = os.read(STDIN, 65536)
        except BlockingIOError:
            select.select([STDIN], [], [])
            continue
        except OSError as error:
            raise CtlError(f"cannot read standard input: {error.strerror}.", "Give it a file or a pipe.") from None
        if not chunk:
            return b"".join(chunks)
        size += len(chunk)
        if size > max_bytes:
            raise CtlError(f"standard input holds more than {max_bytes} bytes.", "Send less.")
        chunks.append(chunk)


def argument_text(argument: str) -> str:
    """A command-line argument as UTF-8, whatever the locale made of it.

    Agents and scripts write UTF-8 even where the locale says otherwise; bytes
    that are not UTF-8 are taken as the locale reads them. An argument that is
    neither keeps its surrogate escapes (see is_text).
    """
    try:
        return os.fsencode(argument).decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError):
        return argument


def is_text(argument: str) -> bool:
    """Whether the argument is valid text, free of undecodable bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def _write_quietly(text: str) -> None:
    try:
        _write_all(STDERR, encode(text))
    except OSError:
        return


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # A parent may have made the pipe non-blocking for itself.
            select.select([], [descriptor], [])


class Notice:
    """`with Notice("looking for ..."):` says so on standard error once it has taken longer than PATIENCE_S.

    `quiet`: it does not.
    """

    def __init__(self, text: str, *, quiet: bool = False) -> None:
        import threading

        self._quiet = quiet
        self._timer = threading.Timer(PATIENCE_S, err, [f"termsprawlctl: {text} …"])
        self._timer.daemon = True

    def __enter__(self) -> None:
        import contextlib

        if not self._quiet:
            with contextlib.suppress(RuntimeError):  # no thread is available: it goes without a word
                self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
