"""The process of a share: its parts put together, its life, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

from ...base.errors import FAILED, OK, CtlError, UsageError
from ...base.text import beginning
from ...base.tmux import Tmux
from .. import wire
from ..directory import About, ShareDirectory
from . import sign
from .ask import ask
from .clients import Client, Session
from .controller import QUIET_S, Controller, Identity
from .output import Keys, note, say, say_in_front
from .server import Share
from .view import Limits, TmuxView

# A session id may have thousands of characters, and a reader that stalls must not make us wait: see output.
_MAX_SHOWN_CHARS = 80
_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
_WHO = {"click": "a click on [Revoke]", "key": "a key", "command": "tui revoke"}
KEEP_SHOWN_S = 5.0
_ANNOUNCED_MS = "5000"
_MAX_STEPS_BACK = 100


@dataclass(frozen=True)
class Options:
    """What the user chose for a share; `lasts_s` None: until it is ended."""

    limits: Limits = field(default_factory=Limits)
    lasts_s: float | None = None
    pause_s: float = QUIET_S
    name: str | None = None
    revoke_key: str | None = None


def run(tmux: Tmux, client: Client, options: Options) -> int:
    """Share the client until something ends that; returns the exit status. Raises CtlError before it starts."""
    return asyncio.run(_Sharing(tmux, client, options).run())


class _Sharing:
    """One share from its start to its end; made inside a running event loop's main coroutine."""

    def __init__(self, tmux: Tmux, client: Client, options: Options) -> None:
        self._tmux = tmux
        self._client = client
        self._options = options
        self._status = OK
        self._left: list[Session] = []  # where the agent's switches led away from
        self._why = ""
        self._directory: ShareDirectory | None = None
        self._share: Share | None = None
        self._mark = sign.Mark("")
        self._sign: sign.Sign | None = None
        self._showing: asyncio.Future[None] | None = None

    async def run(self) -> int:
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._loop.set_exception_handler(self._fail)
        for number, name in _SIGNALS.items():
            self._loop.add_signal_handler(number, self._end_by_signal, name)
        self._loop.add_signal_handler(signal.SIGUSR1, self._go_back)
        # Only now: a signal that came between would leave the directory behind.
        self._directory = directory = ShareDirectory(name=self._options.name)
        self._view = TmuxView(
            self._tmux,
            self._client,
            self._end,
            limits=self._options.limits,
            on_switch=self._switched,
            on_refusal=self._note_why,
        )
        keys = Keys(self._loop, lambda: self._end("revoked (r)"))
        try:
            await self._start(directory)
            if not self._over.done():
                keys.take()
                self._loop.add_signal_handler(signal.SIGCONT, keys.take)
                self._announce(directory)
                self._loop.call_later(KEEP_SHOWN_S, self._keep_shown)
                if self._options.lasts_s is not None:
                    self._loop.call_later(self._options.lasts_s, self._end, "the time is over")
            say_in_front(f"TUIMCP off: {await self._over}")
        finally:
            self._end("failed")
            keys.close()
            self._view.close()
            await self._finish(directory)
        return self._status

    async def _start(self, directory: ShareDirectory) -> None:
        controller = Controller(
            self._view,
            Identity(directory.instance_id, directory.generation),
            quiet_s=self._options.pause_s,
        )
        self._share = Share(controller, directory.token, self._view.refresh, self._report)
        first = asyncio.ensure_future(self._view.start(controller))
        await asyncio.wait({first, self._over}, return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            first.cancel()
        elif first.exception():
            raise first.exception()
        if self._over.done():
            raise UsageError(f"nothing was shared: {self._over.result()}.", "Share again.")
        await self._put_sign(directory)
        if not self._over.done():
            self._share.start(directory.listener)

    async def _put_sign(self, directory: ShareDirectory) -> None:
        client, options = self._client, self._options

        def work() -> None:
            share_id = os.path.basename(directory.directory)
            mark = sign.plan(self._tmux, client.key.pid, share_id, options.revoke_key)
            self._mark = mark
            now_s = time.time()
            directory.describe(
                About(
                    client=client.key.name,
                    client_pid=client.key.pid,
                    tmux_socket=self._tmux.base[-1],
                    segment=mark.segment,
                    keys=mark.keys,
                    only=options.limits.only,
                    read_only=options.limits.read_only,
                    started_at_s=now_s,
                    ends_at_s=0.0 if options.lasts_s is None else now_s + options.lasts_s,
                )
            )
            self._sign = sign.Sign(self._tmux, mark)
            self._sign.put()

        # In a thread: a tmux that does not answer must not hold up a revocation.
        putting = self._loop.run_in_executor(None, work)
        await asyncio.wait({putting, self._over}, return_when=asyncio.FIRST_COMPLETED)
        if self._over.done():
            # The files are gone already; whatever is put meanwhile is taken away.
            await asyncio.wait({putting})
        elif putting.exception():
            raise putting.exception()

    async def _finish(self, directory: ShareDirectory) -> None:
        if self._showing:
            await asyncio.wait({self._showing})
        if self._sign:
            await self._loop.run_in_executor(None, self._sign.take_away)
        directory.remove()

    def _fail(self, _loop: asyncio.AbstractEventLoop, context: dict) -> None:
        """A fault of our own: whatever it broke, nothing is shared any more."""
        self._status = FAILED
        self._end(f"a fault of this program ({type(context.get('exception')).__name__}); please report it")

    def _end_by_signal(self, name: str) -> None:
        who = _WHO.get(self._directory.revoked_by(), "") if self._directory and name == "SIGTERM" else ""
        self._end(f"revoked ({who or name})")

    def _end(self, reason: str) -> None:
        """Fence, answer and close, all before anything else can happen."""
        if not self._over.done():
            self._over.set_result(reason)
            if self._share:
                self._share.close()
            if self._directory:
                self._directory.close()

    def _announce(self, directory: ShareDirectory) -> None:
        say(f"TUIMCP on: {directory.path}  [Revoke]")
        ways = [f"prefix {self._mark.key('revoke')}"] if self._mark.key("revoke") else []
        ways += ["a click on [Revoke] in the status line", "r or Ctrl-C here", "termsprawlctl tui revoke"]
        note(
            f"Sharing the tmux client {self._client.key.name}: an agent with this path can see which session it shows "
            "and switch it, but not while you type. It is open to every program of your user and keeps out other "
            f"users only. To revoke: {', '.join(ways)}"
        )

    # Switches.

    def _switched(self, left: Session, shown: Session) -> None:
        self._left = [*self._left, left][-_MAX_STEPS_BACK:]
        text = sign.announce(left.name, shown.name, self._mark)
        say_in_front(text)
        self._tell_client(text)
        self._show_again()

    def _show_again(self) -> None:
        """Show the sign where it is missing: a configuration was read again, a session got a status line of its own."""
        if self._sign and not self._over.done() and (self._showing is None or self._showing.done()):
            self._showing = self._loop.run_in_executor(None, _show, self._sign)

    def _keep_shown(self) -> None:
        self._show_again()
        if not self._over.done():
            self._loop.call_later(KEEP_SHOWN_S, self._keep_shown)

    def _tell_client(self, text: str) -> None:
        command = ("display-message", "-c", self._client.key.name, "-d", _ANNOUNCED_MS, _for_message(text))
        self._loop.create_task(ask(self._tmux, command))

    def _go_back(self) -> None:
        self._loop.create_task(self._step_back())

    async def _step_back(self) -> None:
        while self._left:
            session = self._left.pop()
            if session.id != self._view.session and await self._view.go_back(session):
                say_in_front(f"back: {session.name}")
                return
        self._tell_client("There is no switch of the agent's to go back over.")

    # Requests.

    def _note_why(self, why: str) -> None:
        self._why = why

    def _report(self, request: wire.GetViewContext | wire.SelectSession, answer: dict) -> None:
        """One line a request: what, from which revision, what came of it."""
        why, self._why = self._why, ""
        if isinstance(request, wire.SelectSession):
            revision = beginning(str(request.expected_revision), _MAX_SHOWN_CHARS)
            what = f"{wire.SELECT_SESSION} {beginning(request.session_id, _MAX_SHOWN_CHARS)} from revision {revision}"
        else:
            what = wire.GET_VIEW_CONTEXT
        if answer["status"] == wire.REJECTED:
            say_in_front(f"{what}: rejected, {answer['code']}" + (f" ({why})" if why else ""))
        else:
            view = answer["context"]
            shown = view.get("sessionId", view["route"])
            say_in_front(f"{what}: {answer['status']}, revision {view['revision']}, {shown}")


def _for_message(text: str) -> str:
    """Text that a message shows as it is: tmux expands formats and times, and then obeys styles while it draws."""
    return text.replace("#", "##").replace("%", "%%")


def _show(put: sign.Sign) -> None:
    with contextlib.suppress(CtlError):
        put.show()
