"""The server's life: the loop that reads, and what ends it.

The main thread reads and dispatches; pools of worker threads run calls; one thread
writes. So reading goes on whatever a call or a slow reader does.
"""

from __future__ import annotations

import os
import select
import signal
import time

from ..base import log
from ..base.errors import FAILED, OK
from . import stdio
from .dispatch import Dispatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from .options import Options
    from .provider import Provider

# While more than this is unwritten, nothing new is read: the client has to read first.
MAX_BACKLOG_BYTES = 64 << 20
BACKLOG_LOOK_S = 0.05
# At a signal the line that has begun is finished, as long as its reader takes some of it
# every so often; a reader that takes nothing does not hold up the end.
STUCK_S = 0.2
# Children have been ended by then, so nothing else waits; the largest answers that there
# are, some 8 MiB, get through to a reader that takes 4 KiB every 50 ms.
FINISH_LIMIT_S = 120.0
LAST_LOG_S = 0.02
# Nothing came for so long after the start: time to load what calls will need. A client
# that is about to ask for the tools asks sooner, and gets them first.
QUIET_S = 0.05
END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(provider: Provider, options: Options) -> int:
    """Serve a provider on this process' standard descriptors until it ends; returns the exit status.

    Worker threads may still be blocked in calls then: leave with os._exit().
    """
    return Server(provider, options, *stdio.take_over()).run()


class Server:
    """One client, one provider, two descriptors. run() has to be called in the main thread."""

    def __init__(self, provider: Provider, options: Options, in_fd: int, out_fd: int) -> None:
        self._provider = provider
        self._options = options
        self._in_fd, self._out_fd = in_fd, out_fd
        # Never closed: a thread that is still in a call at the end writes to it until the process is gone.
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._poll = select.poll()
        self._polling_input = False
        self._signalled = False
        self._stopped = False  # the calls are, and the provider is closed
        self._ended_at_s: float | None = None  # when the input ended
        self._lines = stdio.Lines(options.max_line_bytes)
        self._writer = stdio.Writer(out_fd, MAX_BACKLOG_BYTES, self._on_written)
        self._dispatcher = Dispatcher(provider, options, self._writer, self._wake)

    def run(self) -> int:
        """Serve until the input ends, a signal comes or the output breaks; returns the exit status.

        That is 0; 1 where a request stays without an answer, because memory ran out.
        """
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in END_SIGNALS:
            signal.signal(number, self._on_signal)
        self._poll.register(self._wake_read, select.POLLIN)
        self._poll.register(self._out_fd, 0)  # an output that breaks is reported all the same
        while not (self._signalled or self._writer.broken or self._dispatcher.work.failed or self._is_done()):
            self._poll_input(wanted=self._ended_at_s is None and self._writer.has_room())
            self._step(self._patience_s())
            if self._grace_left_s() == 0:
                self._stop()
        self._stop()
        self._writer.finish(STUCK_S, FINISH_LIMIT_S)
        log.drain(LAST_LOG_S)
        return FAILED if self._dispatcher.work.failed else OK

    def _step(self, patience_s: float | None) -> None:
        ready = self._poll.poll(None if patience_s is None else patience_s * 1000)
        if not ready and self._ended_at_s is None:
            self._dispatcher.work.prepare()
        for descriptor, _ in ready:
            if descriptor == self._wake_read:
                self._swallow_wake_ups()
                self._dispatcher.resume()
            elif descriptor == self._out_fd:
                self._writer.give_up()
            else:
                self._read()

    def _patience_s(self) -> float | None:
        """How long nothing has to be done unless a descriptor says so; None for ever."""
        waits = [self._dispatcher.work.in_flight.release_due(), self._grace_left_s()]
        if not self._writer.has_room():
            waits.append(BACKLOG_LOOK_S)
        if self._ended_at_s is None and not self._dispatcher.work.prepared:
            waits.append(QUIET_S)
        return min((wait for wait in waits if wait is not None), default=None)

    def _grace_left_s(self) -> float | None:
        limit = self._options.finish_in_flight_s
        if self._ended_at_s is None or limit is None or self._stopped:
            return None
        return max(0.0, self._ended_at_s + limit - time.monotonic())

    def _is_done(self) -> bool:
        # In this order: a call is closed when its answer is in the backlog.
        return self._ended_at_s is not None and self._dispatcher.is_idle() and not self._writer.backlog

    def _stop(self) -> None:
        """Cancel all calls and close the provider, once. Answers that are there already stay to be written."""
        if self._stopped:
            return
        self._stopped = True
        self._dispatcher.cancel_all()
        try:
            self._provider.close()
        except Exception as fault:  # noqa: BLE001 - the end comes all the same
            log.log(f"closing failed: {type(fault).__name__} {log.where(fault)}")

    def _poll_input(self, *, wanted: bool) -> None:
        if wanted and not self._polling_input:
            self._poll.register(self._in_fd, select.POLLIN)
        elif self._polling_input and not wanted:
            self._poll.unregister(self._in_fd)
        self._polling_input = wanted

    def _read(self) -> None:
        try:
            data = os.read(self._in_fd, stdio.READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal that is gone
        for line in self._lines.feed(data) if data else self._lines.end():
            self._dispatcher.take(line)
        if not data:
            self._ended_at_s = time.monotonic()
            self._dispatcher.end_of_input()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signalled = True  # the byte in the wake-up pipe ends the poll

    def _on_written(self) -> None:
        if self._ended_at_s is not None or self._writer.broken:
            self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:
            return  # it is full of wake-ups

    def _swallow_wake_ups(self) -> None:
        try:
            os.read(self._wake_read, stdio.READ_BYTES)
        except BlockingIOError:
            return
