"""Bytes in and bytes out: lines with a cap, whole messages, private descriptors."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque

from . import log

READ_BYTES = 65536
# What fits into a pipe goes out in one write. A longer message goes in slices, so that
# the end of the process can see whether its reader still takes any.
WHOLE_BYTES = 65536
SLICE_BYTES = 16384


class TooLong:
    """Stands for a line over the cap, whose bytes were not kept."""


TOO_LONG = TooLong()


def take_over() -> tuple[int, int]:
    """Move standard input and output to private descriptors (input, output) and return them.

    Afterwards 0 and 1 are /dev/null, for this process and for children that inherit
    them, and what Python code prints goes to the log: nobody but the server can write
    a protocol line or steal one.
    """
    private = (os.dup(0), os.dup(1))  # not inheritable
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    sys.stdout = sys.stderr = log.stream()
    return private


class Lines:
    """Cuts a stream of bytes into lines at `\\n` alone; keeps at most `max_bytes` of one.

    The other separators that Python knows (U+2028, U+0085, ...) may stand in a message.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list:
        """The lines (bytes, without their end) that `data` completes, TOO_LONG for each over the cap."""
        *ended, rest = data.split(b"\n")
        found = []
        for piece in ended:
            self._keep(piece, found)
            self._end_line(found)
        self._keep(rest, found)
        return found

    def end(self) -> list:
        """What is left when the stream ends without a line end."""
        found: list = []
        if self._size:
            self._end_line(found)
        return found

    def _keep(self, piece: bytes, found: list) -> None:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        # One byte more may still be the \r of a \r\n.
        if self._size > self._max and not (self._size == self._max + 1 and piece.endswith(b"\r")):
            self._parts = []
            self._skipping = True
            found.append(TOO_LONG)
        else:
            self._parts.append(piece)

    def _end_line(self, found: list) -> None:
        if not self._skipping:
            line = b"".join(self._parts)
            found.append(line[:-1] if line.endswith(b"\r") else line)
        self._parts, self._size, self._skipping = [], 0, False


class Writer:
    """Writes whole messages to a descriptor, in order, from a thread of its own.

    So nothing else ever waits for a slow reader. `room_bytes` is how much may be unwritten
    before there is no room for more work. `news()` is called, in that thread, when
    everything is written and when the reader is gone.
    """

    def __init__(self, descriptor: int, room_bytes: int, news) -> None:
        self._descriptor = descriptor
        self._room_bytes = room_bytes
        self._news = news
        self._changed = threading.Condition()
        self._queue: deque = deque()
        self._taken_bytes = 0
        self.backlog = 0  # bytes that are not written yet
        self.broken = False
        threading.Thread(target=self._write_for_ever, name="writer", daemon=True).start()

    def put(self, message: bytes) -> None:
        """Take one message, its line end included; never blocks."""
        with self._changed:
            if not self.broken:
                self._queue.append(message)
                self.backlog += len(message)
                self._changed.notify_all()

    def has_room(self) -> bool:
        """Whether the reader is near enough for more work to make sense."""
        return self.backlog <= self._room_bytes

    def wait_for_room(self) -> None:
        """Wait until there is room, or the reader is gone."""
        if not self.has_room():
            with self._changed:
                self._changed.wait_for(self.has_room)

    def give_up(self) -> None:
        """Nobody reads any more: forget what is unwritten."""
        with self._changed:
            self.broken = True
            self._queue.clear()
            self.backlog = 0
            self._changed.notify_all()

    def finish(self, stuck_s: float, limit_s: float) -> bool:
        """Wait until all is written, while the reader keeps taking: a line must not end half.

        Gives up after `limit_s` seconds, and when nothing was taken for `stuck_s`.
        Returns whether all was written.
        """
        with self._changed:
            for _ in range(max(1, int(limit_s / stuck_s))):
                before = self._taken_bytes
                if self._changed.wait_for(lambda: self.broken or not self.backlog, stuck_s):
                    break
                if self._taken_bytes == before:
                    break
            return not self.backlog

    def _write_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                message = self._queue.popleft()
            try:
                self._write(message)
            except OSError:
                self.give_up()
            with self._changed:
                if not self.broken:
                    self.backlog -= len(message)
                self._changed.notify_all()
            if not self.backlog:
                self._news()
            if self.broken:
                return

    def _write(self, message: bytes) -> None:
        view = memoryview(message)
        size = WHOLE_BYTES if len(view) <= WHOLE_BYTES else SLICE_BYTES
        while view:
            try:
                written = os.write(self._descriptor, view[:size])
            except BlockingIOError:
                # Whoever started us may have made the pipe non-blocking for itself.
                select.select([], [self._descriptor], [])
                continue
            view = view[written:]
            self._taken_bytes += written
