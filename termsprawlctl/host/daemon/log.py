"""What a host says on its standard streams: it never waits for somebody who does not read."""

from __future__ import annotations

import os
import select
import threading

from ...base import console
from ...base.jsontext import encode
from ...base.text import harmless

_speaking = threading.Lock()  # between seeing room and using it nobody else of us may


def say(text: str) -> None:
    """Write one message line to standard error, as console.err() does; what there is no room for is left out."""
    data = encode(harmless(text) + "\n")
    with _speaking:
        for start in range(0, len(data), select.PIPE_BUF):
            # A pipe with any room takes so much at once.
            if not has_room(console.STDERR):
                return
            try:
                os.write(console.STDERR, data[start : start + select.PIPE_BUF])
            except OSError:
                return


def tell(data: bytes) -> None:
    """Write a line to standard output, in the background where its reader has to make room first.

    Raises CtlError when it cannot be written.
    """
    if has_room(console.STDOUT):
        console.out_bytes(data)
    else:
        threading.Thread(target=console.out_bytes, args=(data,), name="telling", daemon=True).start()


def has_room(descriptor: int) -> bool:
    """Whether a write of a line does not wait; where nobody reads any more it does not, either."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))
