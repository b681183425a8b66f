"""The foreground process of a share: its parts put together, its life, its output."""

from __future__ import annotations

import asyncio
import os
import select
import signal

from ..base import console
from ..base.errors import FAILED, OK, UsageError
from ..base.jsontext import encode
from ..base.text import beginning, harmless
from ..base.tmux import Tmux
from . import bar, wire
from .clients import Client
from .controller import Controller
from .directory import Place
from .server import Share
from .tmux_view import TmuxView

# A session id may have thousands of characters, and a reader that stalls must not make us wait: see _write().
_MAX_SHOWN_CHARS = 80
_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def run(tmux: Tmux, client: Client, *, with_bar: bool) -> int:
    """Share the client until something ends that; returns the exit status. Raises CtlError before it starts."""
    return asyncio.run(_Sharing(tmux, client).run(with_bar=with_bar))


class _Sharing:
    def __init__(self, tmux: Tmux, client: Client) -> None:
        self._tmux = tmux
        self._client = client
        self._place: Place | None = None
        self._share: Share | None = None
        self._over: asyncio.Future | None = None
        self._status = OK

    async def run(self, *, with_bar: bool) -> int:
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        loop.set_exception_handler(self._fail)
        for number, name in _SIGNALS.items():
            loop.add_signal_handler(number, self._end, f"revoked ({name})")
        # Only now: a signal that came between would leave the directory behind.
        self._place = Place()
        view = TmuxView(self._tmux, self._client, self._end)
        controller = Controller(view, self._place.identity)
        self._share = Share(controller, self._place.token, view.refresh, _report)
        shown = keys = None
        try:
            started = loop.create_future()
            self._over.add_done_callback(lambda over: started.done() or started.set_result(over))
            view.start(controller, lambda: started.done() or started.set_result(None))
            await started
            if self._over.done():
                raise UsageError(f"nothing was shared: {self._over.result()}.")
            self._share.start(self._place.listener)
            if with_bar:
                place = (self._client.session, self._client.window, self._place.path)
                # In a thread: a tmux that does not answer must not hold up a revocation.
                shown = await loop.run_in_executor(None, bar.BarPane, self._tmux, *place)
                view.watch_pane(shown.pane, lambda: self._end("revoked (the bar was closed)"))
            if not self._over.done():
                keys = _Keys(loop, self._end)
                keys.take()
                loop.add_signal_handler(signal.SIGCONT, keys.take)
                self._announce()
            say(f"TUIMCP off: {await self._over}")
        finally:
            self._end("failed")
            if keys:
                keys.close()
            if shown:
                shown.close()
            view.close()
        return self._status

    def _fail(self, _loop, context: dict) -> None:
        """A fault of our own: whatever it broke, nothing is shared any more."""
        self._status = FAILED
        self._end(f"a fault of this program ({type(context.get('exception')).__name__}); please report it")

    def _end(self, reason: str) -> None:
        """Fence, answer, close and remove, all before anything else can happen."""
        if not self._over.done():
            self._over.set_result(reason)
            self._share.close()
            self._place.remove()

    def _announce(self) -> None:
        say(bar.line(self._place.path))
        note(
            f"Sharing the tmux client {self._client.key.name}: an agent with this path can see which session it shows "
            "and switch it, but not while you type. It is open to every program of your user and keeps out other "
            f"users only. To revoke: r, Ctrl-C, or termsprawlctl tui revoke {self._place.path}"
        )


def _report(request, revision: int | None, answer: dict) -> None:
    """One line a request: what, from which revision, what came of it."""
    if isinstance(request, wire.SelectSession):
        session, base = (beginning(one, _MAX_SHOWN_CHARS) for one in (request.session_id, str(revision)))
        what = f"{wire.SELECT_SESSION} {session} from revision {base}"
    else:
        what = wire.GET_VIEW_CONTEXT
    if answer["status"] == wire.REJECTED:
        say(f"{what}: rejected, {answer['code']}")
    else:
        view = answer["context"]
        say(f"{what}: {answer['status']}, revision {view['revision']}, {view.get('sessionId', view['route'])}")


def say(text: str) -> None:
    """A line to standard output, if somebody takes it: a reader that stalls must not hold up a revocation."""
    _write(console.STDOUT, text)


def note(text: str) -> None:
    """Like say(), to standard error."""
    _write(console.STDERR, text)


def _write(descriptor: int, text: str) -> None:
    try:
        _, writable, _ = select.select([], [descriptor], [], 0)
        if writable:
            # Less than PIPE_BUF: goes out whole and at once.
            os.write(descriptor, encode(harmless(text) + "\n"))
    except OSError:
        return


class _Keys:
    """`r` in our own terminal, while we are in its foreground."""

    def __init__(self, loop, on_revoke) -> None:
        self._loop = loop
        self._on_revoke = on_revoke
        self._saved = None

    def take(self) -> None:
        """Have each key at once from here on, if they are ours; anew after a pause, when a shell has changed that."""
        if not os.isatty(console.STDIN) or not self._in_foreground():
            return
        import termios
        import tty

        if self._saved is None:
            self._saved = termios.tcgetattr(console.STDIN)
        tty.setcbreak(console.STDIN)
        self._loop.add_reader(console.STDIN, self._read)

    def close(self) -> None:
        """Give the terminal back as it was."""
        if self._saved is None:
            return
        import termios

        self._loop.remove_reader(console.STDIN)
        if self._in_foreground():
            try:
                termios.tcsetattr(console.STDIN, termios.TCSADRAIN, self._saved)
            except termios.error:
                return

    def _read(self) -> None:
        # In the background the keys are the shell's, and reading them would stop us.
        try:
            keys = os.read(console.STDIN, 1024) if self._in_foreground() else b""
        except OSError:
            keys = b""
        if not keys:
            self._loop.remove_reader(console.STDIN)
        elif b"r" in keys:
            self._on_revoke("revoked (r)")

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(console.STDIN) == os.getpgrp()
        except OSError:
            return False
