"""A share in this process: the real socket server and controller, over a view that the test plays."""

from __future__ import annotations

import asyncio
import threading

from support.tui_tmux import PATIENCE_S

from termsprawlctl.share.controller import Controller, Observed
from termsprawlctl.share.directory import Place
from termsprawlctl.share.server import Share


class PlayedShare:
    """Runs in a thread of its own; `view` methods of the test's making are called there."""

    def __init__(self, temp_root) -> None:
        self.place = Place(str(temp_root))
        self.path = self.place.path
        self.state = Observed(workspace="w", session_id=None, ready=True, blocked=False)
        self.reports: list[tuple] = []
        self.asked: list[str] = []
        self.shown: list[str] = []
        self.hold = threading.Event()  # while set, validations stay open
        self._held: list = []
        self._loop = asyncio.new_event_loop()
        self.controller = Controller(self, self.place.identity)
        self.controller.observe(self.state)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE_S)

    async def _start(self) -> None:
        self.share = Share(self.controller, self.place.token, self._loop.call_soon, self._report)
        self.share.start(self.place.listener)

    def _report(self, *what) -> None:
        self.reports.append(what)

    def validate(self, session_id, done) -> None:
        self.asked.append(session_id)
        if self.hold.is_set():
            self._held.append(done)
        else:
            done(session_id != "ses_unknown")

    def navigate(self, session_id, done) -> None:
        self.shown.append(session_id)
        self.state = self.state._replace(session_id=session_id)
        self.controller.observe(self.state)
        done(True)

    def settle(self) -> None:
        """Let the held validations end well."""
        self.hold.clear()
        self.run(lambda: [self._held.pop(0)(True) for _ in range(len(self._held))])

    def run(self, action):
        """Call something in the share's thread and return what it returns."""

        async def call():
            return action()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE_S)

    def revoke(self) -> None:
        self.run(lambda: (self.share.close(), self.place.remove()))

    def close(self) -> None:
        self.revoke()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
