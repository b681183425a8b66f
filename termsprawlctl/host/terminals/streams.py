"""The output of every terminal as a numbered stream of bytes.

tmux pipes what a pane's program writes into a private fifo (`pipe-pane`), one thread
reads all fifos. Each stream keeps its last bytes only; a place in it is a cursor,
`<stream>.<offset>`, so that a reader can ask for what came after. A stream begins
when the host attaches to the terminal: a cursor from an earlier host names a stream
that is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import selectors
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...base import threads
from ...base.errors import CtlError
from ...base.files import remove_quietly
from .directory import PlainDirectory
from .foreground import size_of
from .panes import EndedError, Panes

if TYPE_CHECKING:
    from .screen.transcript import Transcript

# Kept per terminal, twice as much at most. A build's log of some 10,000 lines fits.
KEPT_BYTES = 512 << 10
MAX_SIZES = 200  # changes of a terminal's size that are remembered
# Enough for what stands on a screen, and for the prompt in which a place may lie.
CONTEXT_BYTES = 16 << 10
# As much as the pipe holds. tmux keeps in its own memory what we do not fetch in time, and
# beside a busy thread of Python the reading one gets its turn some 200 times a second.
READ_BYTES = 512 << 10
# Some milliseconds for each terminal; a tmux server that hangs must not make a stop hang.
DETACH_S = 2.0
_SET_PIPE_SIZE = 1031  # Linux's F_SETPIPE_SZ, which the fcntl module names since Python 3.10
_SUFFIX = ".out"
_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,18})")


@dataclass(frozen=True)
class Part:
    """Bytes of a stream; `start`, the place of the first, is later than asked for when older ones are gone."""

    start: int
    data: bytes


class Stream:
    """One terminal's output. Safe to use from several threads.

    `pane` is tmux's id of the pane. `end`: how many bytes there have been. `ended`: nothing
    more will come.
    """

    def __init__(self, node_id: str, pane: str = "", tty: str = "") -> None:
        self.node_id = node_id
        self.pane = pane
        self._tty = tty
        # (place, columns, rows): the terminal's size from there on, oldest first.
        self._sizes: list[tuple[int, int, int]] = []
        self.fifo = ""
        self.key = os.urandom(4).hex()
        self.end = 0
        self.ended = False
        self._last_s = time.monotonic()
        self._kept = bytearray()
        self._listeners: list[Callable[[bytes], None]] = []
        self._changed = threading.Condition()
        self._acts: dict[str, int] = {}

    def quiet_s(self) -> float:
        """Seconds since the last byte came, or since the host attached."""
        return time.monotonic() - self._last_s

    def cursor(self, offset: int | None = None) -> str:
        """The name of a place, by default of the end as it is now."""
        return f"{self.key}.{self.end if offset is None else offset}"

    def offset(self, cursor: str) -> int | None:
        """The place that a cursor names; None when it is not of this stream."""
        match = _CURSOR.fullmatch(cursor)
        if match is None or match[1] != self.key or int(match[2]) > self.end:
            return None
        return int(match[2])

    def read(self, offset: int) -> Part:
        """What came after a place, to the end."""
        with self._changed:
            start = max(offset, self.end - len(self._kept))
            with memoryview(self._kept) as kept:
                return Part(start, bytes(kept[len(kept) - (self.end - start) :]))

    def context(self, offset: int) -> bytes:
        """What came just before a place, from the beginning of a line on: where the cursor stood there follows."""
        part = self.read(max(0, offset - CONTEXT_BYTES))
        data = part.data[: max(0, offset - part.start)]
        return data if part.start == 0 else data[data.find(b"\r\n") + 2 :] if b"\r\n" in data else b""

    def feed(self, transcript: Transcript, at: int, data: bytes) -> None:
        """Have a transcript take bytes of a place, in the sizes that the terminal had when they came."""
        with self._changed:
            before = [size for size in self._sizes if size[0] <= at][-1:]
            meanwhile = [size for size in self._sizes if at < size[0] < at + len(data)]
        for place, columns, rows in (*before, *meanwhile):
            if place > at:
                transcript.feed(data[: place - at])
                data, at = data[place - at :], place
            transcript.resize(columns, rows)
        transcript.feed(data)

    def note_act(self, caller: str, offset: int | None = None) -> None:
        """A caller types here from a place on, by default the end: what it waits for next comes after that."""
        self._acts[caller] = self.end if offset is None else offset

    def last_act(self, caller: str) -> int | None:
        """The place where a caller typed last; None where it never did."""
        return self._acts.get(caller)

    def wait_beyond(self, offset: int, timeout_s: float) -> bool:
        """Wait until there is more than `offset` bytes, or the stream has ended; False when there is not."""
        with self._changed:
            return self._changed.wait_for(lambda: self.end > offset or self.ended, timeout_s) and self.end > offset

    def listen(self, listener: Callable[[bytes], None]) -> int:
        """Have `listener(bytes)` called with all that comes, in the reading thread; returns the place of the first."""
        with self._changed:
            self._listeners.append(listener)
            return self.end

    def ignore(self, listener: Callable[[bytes], None]) -> None:
        with self._changed:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def append(self, data: bytes) -> None:
        """For the reading thread: these bytes came."""
        size = size_of(self._tty)
        with self._changed:
            if size is not None and (not self._sizes or self._sizes[-1][1:] != size):
                self._sizes = [*self._sizes[1 - MAX_SIZES :], (self.end, *size)]
            self._kept += data
            if len(self._kept) > 2 * KEPT_BYTES:
                del self._kept[:-KEPT_BYTES]
            self.end += len(data)
            self._last_s = time.monotonic()
            for listener in tuple(self._listeners):
                listener(data)
            self._changed.notify_all()

    def finish(self) -> None:
        """For the reading thread: nothing more will come."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()


class Streams:
    """The streams of one tmux server's terminals; `directory` is for their fifos.

    `on_output(node_id, size)` and `on_end(node_id)` are called in the reading thread and
    must not block.
    """

    def __init__(
        self,
        directory: PlainDirectory,
        panes: Panes,
        on_output: Callable[[str, int], None] = lambda _node_id, _size: None,
        on_end: Callable[[str], None] = lambda _node_id: None,
    ) -> None:
        self._directory = directory
        self._panes = panes
        self._on_output = on_output
        self._on_end = on_end
        self._lock = threading.Lock()
        self._streams: dict[str, Stream] = {}
        self._selector: selectors.BaseSelector | None = None
        self._arrivals: list[tuple[int, Stream]] = []
        self._wake = -1

    def get(self, node_id: str) -> Stream:
        """The stream of a terminal, attached if it was not. Raises CtlError when the terminal has ended."""
        with self._lock:
            known = self._streams.get(node_id)
            if known is not None and not known.ended:
                return known
            stream = self._attach(node_id)
            self._streams[node_id] = stream
            return stream

    def tidy(self) -> None:
        """Before anything is attached: remove the fifos of a host that was killed."""
        for path in self._directory.entries():
            if path.endswith(_SUFFIX):
                remove_quietly(path)

    def detach_all(self) -> None:
        """End tmux's pipes; the streams end with them. Their fifos are gone afterwards.

        Only a courtesy, for which no stop waits: a pipe that nobody reads ends with the next output.
        """
        end_s = time.monotonic() + DETACH_S
        if not self._lock.acquire(timeout=DETACH_S):
            return
        try:
            for stream in self._streams.values():
                left_s = max(0.1, end_s - time.monotonic())
                with contextlib.suppress(EndedError):
                    self._panes.run(stream.node_id, "pipe-pane", "-t", stream.pane, timeout_s=left_s)
        except CtlError:
            return  # tmux does not answer, or cannot be run
        finally:
            for stream in self._streams.values():  # the reading thread may come too late: the process ends
                remove_quietly(stream.fifo)
            self._lock.release()

    def _attach(self, node_id: str) -> Stream:
        pane, descriptor, fifo = self._panes.look(node_id), -1, ""
        try:
            # A name of its own: that of an earlier stream may still be open, and not yet removed.
            stream = Stream(node_id, pane.id, pane.tty)
            stream.fifo = fifo = os.path.join(self._directory.path(), f"{node_id}.{stream.key}{_SUFFIX}")
            os.mkfifo(fifo, 0o600)
            descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with contextlib.suppress(OSError):  # not Linux, or too many pipes of this user are large already
                fcntl.fcntl(descriptor, _SET_PIPE_SIZE, READ_BYTES)
            self._panes.run(node_id, "pipe-pane", "-t", pane.id, writer(fifo))
            self._read_in_background(descriptor, stream)
        except CtlError:
            self._undo(descriptor, fifo)
            raise
        except (OSError, RuntimeError) as error:
            self._undo(descriptor, fifo)
            why = error.strerror if isinstance(error, OSError) else error
            raise CtlError(f"The terminal's output cannot be followed: {why}.", "Try again.") from None
        return stream

    @staticmethod
    def _undo(descriptor: int, fifo: str) -> None:
        if descriptor >= 0:
            os.close(descriptor)
        if fifo:
            remove_quietly(fifo)

    def _read_in_background(self, descriptor: int, stream: Stream) -> None:
        if self._selector is None:
            self._start_reading()
        arrival = (descriptor, stream)
        self._arrivals.append(arrival)
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            return  # a full pipe wakes it as well
        except OSError:
            with contextlib.suppress(ValueError):  # the thread has taken it already, woken for another one
                self._arrivals.remove(arrival)
                raise

    def _start_reading(self) -> None:
        """Start the thread that reads. Raises OSError, RuntimeError where no thread is available; as before then."""
        woken, wake = os.pipe()
        selector = None
        try:
            for end in (woken, wake):
                os.set_blocking(end, False)
            selector = selectors.DefaultSelector()
            selector.register(woken, selectors.EVENT_READ, None)
            threads.start(partial(self._read_all, selector))
        except (OSError, RuntimeError):
            if selector is not None:
                selector.close()
            os.close(woken)
            os.close(wake)
            raise
        self._selector, self._wake = selector, wake

    def _read_all(self, selector: selectors.BaseSelector) -> None:
        while True:
            for key, _ in selector.select():
                if key.data is None:
                    os.read(key.fd, READ_BYTES)
                    while self._arrivals:
                        self._begin(selector, *self._arrivals.pop(0))
                elif not self._read_one(key.fd, key.data):
                    selector.unregister(key.fd)
                    self._end(key.fd, key.data)

    def _begin(self, selector: selectors.BaseSelector, descriptor: int, stream: Stream) -> None:
        try:
            selector.register(descriptor, selectors.EVENT_READ, stream)
        except OSError:  # no memory, or no watch left (epoll_ctl): this stream ends, not all the others
            self._end(descriptor, stream)

    def _read_one(self, descriptor: int, stream: Stream) -> bool:
        """Take what came; False when nothing more will."""
        try:
            data = os.read(descriptor, READ_BYTES)
            if data:
                stream.append(data)
                self._on_output(stream.node_id, len(data))
        except BlockingIOError:
            return True
        except Exception:  # noqa: BLE001 - out of memory, for example: this stream ends, not all the others
            return False
        return bool(data)

    def _end(self, descriptor: int, stream: Stream) -> None:
        os.close(descriptor)
        stream.finish()
        with self._lock:
            if self._streams.get(stream.node_id) is stream:
                del self._streams[stream.node_id]
        remove_quietly(stream.fifo)
        self._on_end(stream.node_id)


def writer(fifo: str) -> str:
    """The shell command that copies its input into a fifo, and ends when nobody reads there any more.

    Opening a fifo for writing only waits for a reader: for ever, if the host was killed
    meanwhile. One that is open for both never waits, and is a reader for the second opening.
    """
    path = shlex.quote(fifo)
    return f"[ -p {path} ] && exec 3<>{path} 1>{path} 3<&- && exec cat"
