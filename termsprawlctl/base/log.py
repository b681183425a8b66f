"""Lines for the standard streams that never block their writer.

Some MCP clients never read their server's stderr: a plain write would hang the whole
session once the pipe is full. Here one thread does the writing; what it cannot get rid
of is dropped and counted. The thread exists only once there is something to write.
"""

from __future__ import annotations

import os
import select
import threading

from . import threads
from .console import STDERR, STDOUT, out_bytes
from .errors import CtlError
from .jsontext import encode
from .text import harmless
from .waiting import writable

MAX_WAITING_BYTES = 256 << 10  # a traceback or two fit many times; a flood does not


class Log:
    """A text stream (for sys.stderr) over a descriptor that nobody may be reading."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._dropped = 0
        self._has_begun = False

    def write(self, text: str) -> int:
        """Take text for writing; returns at once."""
        data = encode(text)
        with self._changed:
            if self._waiting_bytes + len(data) > MAX_WAITING_BYTES or not self._has_thread():
                self._dropped += 1
                return len(text)
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()
        return len(text)

    def _has_thread(self) -> bool:
        if not self._has_begun:
            try:
                threads.start_unawaited(self._write_for_ever)  # here nobody may be held up, not even for its start
            except RuntimeError:
                return False  # none is available; whoever has something to say next tries again
            self._has_begun = True
        return True

    def flush(self) -> None:
        """Nothing to do: write() hands over at once."""

    def isatty(self) -> bool:
        """No colours, no questions."""
        return False

    def drain(self, timeout_s: float | None) -> None:
        """Wait until everything is written, at most timeout_s seconds where given."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting_bytes, timeout_s)

    def _write_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data, self._waiting = b"".join(self._waiting), []
                dropped, self._dropped = self._dropped, 0
            self._write(data)
            if dropped:
                self._write(f"({dropped} messages dropped: nobody read standard error)\n".encode())
            with self._changed:
                self._waiting_bytes -= len(data)
                self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            return  # closed, or full and non-blocking: it is only a log


def say(text: str, descriptor: int = STDERR) -> None:
    """Write one message line, as harmless() text, before this returns; what there is no room for is left out."""
    data = encode(harmless(text) + "\n")
    with _speaking:
        for start in range(0, len(data), select.PIPE_BUF):
            try:
                # A pipe with any room takes so much at once.
                if not writable(descriptor, 0):
                    return
                os.write(descriptor, data[start : start + select.PIPE_BUF])
            except OSError:
                return


def hand_over(data: bytes) -> None:
    """Write it to standard output, in the background where its reader has to make room first.

    Raises CtlError when it cannot be written at once, RuntimeError when no thread is available for it.
    """
    # A pipe with any room takes so much at once; of more it may take a part, and then wait.
    if len(data) <= select.PIPE_BUF and writable(STDOUT, 0):
        out_bytes(data)
    else:
        threads.start(lambda: _write_out(data))


def _write_out(data: bytes) -> None:
    try:
        out_bytes(data)
    except CtlError as error:
        say(f"termsprawlctl: {error}")


_speaking = threading.Lock()  # between seeing room and using it nobody else of us may
_the_log = Log(STDERR)


def log(text: str) -> None:
    """Write one message line to standard error; never blocks, never fails."""
    _the_log.write(text if text.endswith("\n") else text + "\n")


def stream() -> Log:
    """The log as a text stream, to stand in for sys.stderr."""
    return _the_log


def drain(timeout_s: float) -> None:
    """Give the log's last lines a chance before the process ends."""
    _the_log.drain(timeout_s)


def where(fault: BaseException) -> str:
    """The place in the code where an exception came from, for a log without its text."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "somewhere"
    return f"in {trace.tb_frame.f_code.co_name} ({trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})"
