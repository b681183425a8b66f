"""A share in this process: the real socket server and controller, over a view that the test plays."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

from termsprawlctl.share.directory import ShareDirectory
from termsprawlctl.share.sharing.controller import WENT, Controller, Identity, Observed
from termsprawlctl.share.sharing.server import Share

from .waiting import PATIENCE_S


class PlayedShare:
    """Runs in a thread of its own; `view` methods of the test's making are called there."""

    def __init__(self, temp_root) -> None:
        self.directory = ShareDirectory(str(temp_root))
        self.path = self.directory.path
        self.state = Observed(workspace="w", session_id=None, ready=True, blocked=False)
        self.reports: list[tuple] = []
        self.asked: list[str] = []
        self.shown: list[str] = []
        self.hold = threading.Event()  # while set, validations stay open
        self._held: list = []
        self._loop = asyncio.new_event_loop()
        self.controller = Controller(self, Identity(self.directory.instance_id, self.directory.generation))
        self.controller.observe(self.state)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE_S)

    async def _start(self) -> None:
        self.share = Share(self.controller, self.directory.token, self._loop.call_soon, self._report)
        self.share.start(self.directory.listener)

    def _report(self, *what) -> None:
        self.reports.append(what)

    def validate(self, session_id, done) -> None:
        self.asked.append(session_id)
        if self.hold.is_set():
            self._held.append(done)
        else:
            done("target_unavailable" if session_id == "ses_unknown" else None)

    def navigate(self, session_id, done) -> None:
        self.shown.append(session_id)
        self.state = replace(self.state, session_id=session_id)
        self.controller.observe(self.state)
        done(WENT)

    def settle(self) -> None:
        """Let the held validations end well."""
        self.hold.clear()
        self.run(lambda: [self._held.pop(0)(None) for _ in range(len(self._held))])

    def run(self, action):
        """Call something in the share's thread and return what it returns."""

        async def call():
            return action()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE_S)

    def revoke(self) -> None:
        self.run(lambda: (self.share.close(), self.directory.remove()))

    def close(self) -> None:
        self.revoke()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
