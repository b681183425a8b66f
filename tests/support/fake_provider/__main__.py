"""python -m support.fake_provider SCRIPT_OR_FOLDER [PORT]: serve until it is ended; prints the URL."""

from __future__ import annotations

import contextlib
import sys
import threading

from . import FakeProvider

with FakeProvider(sys.argv[1], int((sys.argv[2:] or ["0"])[0])) as provider:
    print(provider.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
