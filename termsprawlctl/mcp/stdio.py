"""Bytes in and bytes out: lines with a cap, whole messages, private descriptors."""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
import time
from collections import deque

from ..base import log, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 65536
HEAD_BYTES = 4096  # more than stands before the long part of a request


class TooLong:
    """Stands for a line over the cap; of its bytes only the first HEAD_BYTES were kept."""

    __slots__ = ("head",)

    def __init__(self, head: bytes) -> None:
        self.head = head


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

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """The lines (bytes, without their end) that `data` completes, a TooLong for each over the cap."""
        *ended, rest = data.split(b"\n")
        found: list[bytes | TooLong] = []
        for piece in ended:
            self._keep(piece, found)
            self._end_line(found)
        self._keep(rest, found)
        return found

    def end(self) -> list[bytes | TooLong]:
        """What is left when the stream ends without a line end."""
        found: list[bytes | TooLong] = []
        if self._size:
            self._end_line(found)
        return found

    def _keep(self, piece: bytes, found: list[bytes | TooLong]) -> None:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        # One byte more may still be the \r of a \r\n.
        if self._size > self._max and not (self._size == self._max + 1 and piece.endswith(b"\r")):
            head = b"".join([*self._parts, piece])[: min(HEAD_BYTES, self._max)]
            self._parts = []
            self._skipping = True
            found.append(TooLong(head))
        else:
            self._parts.append(piece)

    def _end_line(self, found: list[bytes | TooLong]) -> None:
        if not self._skipping:
            line = b"".join(self._parts)
            found.append(line[:-1] if line.endswith(b"\r") else line)
        self._parts, self._size, self._skipping = [], 0, False


class Writer:
    """Writes whole messages to a descriptor, in order, from a thread of its own.

    So nothing else ever waits for a slow reader. `room_bytes` is how much may be unwritten
    before there is no room for more work. `news()` is called, in that thread, when
    everything is written and when the reader is gone.

    No single write blocks: it is always known how far a message has got and whether its
    reader goes on taking, which is what finish() is about.
    """

    def __init__(self, descriptor: int, room_bytes: int, news: Callable[[], object]) -> None:
        self._descriptor, self._piece_bytes = _never_blocking(descriptor)
        self._room = select.poll()
        self._room.register(self._descriptor, select.POLLOUT)
        self._room_bytes = room_bytes
        self._news = news
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._begun = False  # the reader has a part of a message, and waits for its rest
        self._ending = False
        self._taken_bytes = 0
        self.backlog = 0  # bytes that are not written yet
        self.broken = False
        threads.start(self._write_for_ever)

    def put(self, message: bytes) -> None:
        """Take one message, its line end included; never blocks."""
        with self._changed:
            if not (self.broken or self._ending):
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
        """Write no message any more, but the rest of the one that has begun: no line may end half.

        Waits for that as long as its reader takes some of it every `stuck_s` seconds, at
        most `limit_s` in all. Returns whether no half message is left behind.
        """
        end_s = time.monotonic() + limit_s
        with self._changed:
            self._ending = True
            self._queue.clear()
            while self._begun and not self.broken and time.monotonic() < end_s:
                before = self._progress()
                ended = self._changed.wait_for(lambda: self.broken or not self._begun, stuck_s)
                if not ended and self._progress() == before:
                    break
            return not self._begun

    def _progress(self) -> tuple[int, int]:
        """Something that changes whenever the reader takes more."""
        return self._taken_bytes, _untaken(self._descriptor)

    def _write_for_ever(self) -> None:
        try:
            self._write_all()
        except MemoryError:
            pass
        finally:
            # Whatever ended it, memory that ran out as well: nothing is written any more.
            self.give_up()
            self._news()

    def _write_all(self) -> None:
        while not self.broken:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                message = self._queue.popleft()
            try:
                self._write(message)
            except OSError:
                self.give_up()
            with self._changed:
                self._begun = False
                if not self.broken:
                    self.backlog -= len(message)
                self._changed.notify_all()
            if not self.backlog:
                self._news()

    def _write(self, message: bytes) -> None:
        view = memoryview(message)
        while view:
            self._room.poll()
            if not (self._begun or self._begin()):
                return
            try:
                written = os.write(self._descriptor, view[: self._piece_bytes])
            except BlockingIOError:
                continue
            view = view[written:]
            self._taken_bytes += written

    def _begin(self) -> bool:
        with self._changed:
            self._begun = not self._ending
            return self._begun


def _never_blocking(descriptor: int) -> tuple[int, int]:
    """A descriptor for the same output, and how much a write may carry that must not block.

    A pipe is opened anew, to be non-blocking for us alone: whoever else has it keeps it
    as it is. Where that is not possible, small pieces fit once poll() has seen room.
    """
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        try:
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK), sys.maxsize
        except OSError:
            pass  # no /proc, or somebody else's pipe
    return descriptor, select.PIPE_BUF if os.get_blocking(descriptor) else sys.maxsize


def _untaken(descriptor: int) -> int:
    """How much of what was written its reader has yet to take; 0 where nobody knows.

    A socket tells. It reports room only when much of it is free, so a slow reader would
    be taken for one that does nothing.
    """
    import fcntl
    import termios

    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0
