"""The process that makes a connection again after it was lost, as often as it takes.

It waits for the end of a connection to the ssh process's own socket, which costs nothing, and
ends itself once its place is gone. It never asks anybody for anything.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time

from ..base.errors import OK, CtlError
from ..base.files import lock, read_small, write_atomically
from ..base.processes import environment_without, spawn_detached
from ..base.processtable import command_line_of, send
from ..base.program import own_argv, pin
from ..base.waiting import until
from .places import Place
from .ssh import SOCKET

WORD = "--keep"  # what `reach` is told to be one by
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 30.0
START_S = 10.0
LOOK_S = 1.0  # whoever only asks for it holds the lock for a moment


def have(place: Place) -> None:
    """Have a keeper running. Raises CtlError."""
    if runs(place):
        return
    try:
        child = spawn_detached(
            own_argv("reach", WORD, place.root), environment=environment_without("TERMSPRAWL_SESSION"), cwd=place.root
        )
    except OSError as error:
        raise CtlError(
            f"cannot start a process that keeps the connection: {error.strerror}.", "Check ulimit -a, then try again."
        ) from None
    until(lambda: runs(place) or child.poll() is not None, START_S, 0.01)
    child.returncode = 0  # it goes on without us


def runs(place: Place) -> bool:
    """Whether a keeper has the place."""
    descriptor = _lock_of(place)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def end(place: Place) -> None:
    """End the keeper; harmless where none runs."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(read_small(os.path.join(place.keeper, "pid")))
        words = command_line_of(pid)
        if WORD in words and place.root in words:
            send(pid, signal.SIGTERM)
            until(lambda: not runs(place), START_S, 0.02)


def keep(root: str) -> int:
    """Be the keeper of a place until it is gone; returns the exit status."""
    from . import reaching

    place = Place.at(root)
    if place is None:
        return OK
    pin()
    held = _lock_of(place, LOOK_S)
    if held is None:
        return OK
    os.chdir(root)
    write_atomically(os.path.join(place.keeper, "pid"), str(os.getpid()).encode())
    pause_s = FIRST_PAUSE_S
    while place.record():
        if _wait_for_end():
            pause_s = FIRST_PAUSE_S
        elif place.record():
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        with contextlib.suppress(CtlError, OSError), place.locked():
            reaching.renew(place)
    return OK


def _wait_for_end() -> bool:
    """Wait until the ssh process ends; False where there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as master:
        try:
            master.connect(SOCKET)
            while master.recv(4096):
                pass
        except OSError as error:
            return isinstance(error, ConnectionResetError)
    return True


def _lock_of(place: Place, timeout_s: float = 0.0) -> int | None:
    """A descriptor that holds the keeper's lock; None where a keeper holds it. Raises CtlError where it is gone."""
    try:
        descriptor = os.open(place.keeper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CtlError(
            f"cannot use {place.keeper}: {error.strerror}.", "Connect again: termsprawlctl reach DESTINATION."
        ) from None
    if lock(descriptor, timeout_s) is False:
        os.close(descriptor)
        return None
    return descriptor
