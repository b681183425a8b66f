"""What the view needs of the system beside tmux: when keys came, a process's end, a terminal's flags."""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import Callable

from . import clients, draft

# Keeping a clock in step with others moves it by less than this in a quarter of an hour;
# taking such a step for a clock that was set costs no more than a rest.
_CLOCK_SET_S = 0.5


class KeyTimes:
    """When keys came, on the clock of the controller, out of the whole seconds that tmux has for the last one."""

    def __init__(self, wall_clock: Callable[[], float], clock: Callable[[], float]) -> None:
        self._wall_clock = wall_clock
        self._clock = clock
        self._activity: int | None = None
        self._apart_s = wall_clock() - clock()

    def of(self, activity: int) -> float | None:
        """The latest time at which that key may have come; None where there was none since the last call."""
        if activity == self._activity:
            return None
        self._activity = activity
        # Whole seconds, rounded down: the input may have come as late as the end of its second.
        ago_s = self._wall_clock() - (activity + 1)
        if self._wall_clock_was_set():
            ago_s = 0.0  # what tmux noted by it says nothing about when that was
        return self._clock() - max(ago_s, -1.0)

    def _wall_clock_was_set(self) -> bool:
        """Whether that happened since the last time, or the machine slept."""
        before, self._apart_s = self._apart_s, self._wall_clock() - self._clock()
        return abs(self._apart_s - before) > _CLOCK_SET_S


class ProcessEnd:
    """Has on_end() called once when a process has ended, where the system tells that of a process not our own."""

    def __init__(self, pid: str, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._descriptor: int | None = None
        try:
            self._descriptor = os.pidfd_open(int(pid))
        except (AttributeError, OSError, ValueError):
            return  # no Linux, or it runs where we cannot see it; the heartbeat is left
        asyncio.get_running_loop().add_reader(self._descriptor, self._ended)

    def close(self) -> None:
        """Watch no longer; harmless when done twice."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _ended(self) -> None:
        self.close()
        self._on_end()


def front_of(client: clients.Client) -> draft.Front:
    """The program in front of the client, and what its terminal does with keys."""
    try:
        descriptor = os.open(client.tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return draft.Front(client.command)
    try:
        flags = termios.tcgetattr(descriptor)[3]
    except termios.error:
        return draft.Front(client.command)
    finally:
        os.close(descriptor)
    return draft.Front(client.command, bool(flags & termios.ICANON), bool(flags & termios.ECHO))
