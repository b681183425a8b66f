"""`host watch` and `host log`: what happens on a host, and what happened, for whoever looks."""

from __future__ import annotations

import select
import time

from ...base import console, jsontext
from ...base.errors import OK, CtlError
from ...base.layout import DataPaths
from .audit import Follower, describe, past
from .lock import is_held

POLL_S = 0.1


def watch(paths: DataPaths, *, as_json: bool) -> int:
    """Print events as they come until the host ends, or nobody reads any more.

    Raises CtlError when no host runs; KeyboardInterrupt ends it as usual.
    """
    # First the place, then the question: what happens in between is shown, too.
    follower = Follower(paths.audit)
    if not is_held(paths):
        raise CtlError(f"no host runs on {paths.root}.", "Start one with termsprawlctl host start.")
    reader = select.poll()
    reader.register(console.STDOUT, 0)  # tells only when the other end is closed
    while True:
        runs = is_held(paths)  # asked before reading, so that its last events are not left out
        events = follower.read()
        for event in events:
            console.out(_line(event, as_json=as_json))
        if not runs or any(state & (select.POLLERR | select.POLLHUP) for _, state in reader.poll(0)):
            return OK
        if not events:
            time.sleep(POLL_S)


def show_log(paths: DataPaths, *, as_json: bool, lines: int) -> int:
    """Print the newest events of the past."""
    events = past(paths.audit)
    if not events:
        console.err(f"termsprawlctl: nothing has been logged in {paths.root} yet.")
    for event in events[-lines:] if lines else []:
        console.out(_line(event, as_json=as_json))
    return OK


def _line(event: dict, *, as_json: bool) -> str:
    return (jsontext.compact(event) if as_json else describe(event)) + "\n"
