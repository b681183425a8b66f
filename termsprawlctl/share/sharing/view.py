"""A live tmux client as the view of a share.

It is looked at when a request comes, by clients that attach to nothing: nobody sees us among
the user's clients, no hook of theirs fires, and no session is kept in use. In between only
the client's end is noticed at once; a heartbeat sees the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ...base.errors import UsageError
from ...base.tmux import Tmux, quoted, version
from .. import wire
from . import clients, draft
from .ask import Answer, ask
from .controller import FAILED, FENCED, NOTHING, VALIDATION_S, WENT, Controller, Observed
from .watch import KeyTimes, ProcessEnd, front_of

# The first tmux whose command-prompt takes a prompt type; before, the question would open one.
_PROMPT_TYPES = (3, 3)
# From here on the question for menus may not tell popups (it does not in tmux 3.8), and
# list-clients may leave out a client that is suspended. A menu cannot be told from 3.8 on,
# where it belongs to the window: then there is only the pause after the key that opened it.
_APART = (3, 6)
# How soon the end of a menu or prompt is seen that was open at the last look.
OVERLAY_POLL_S = 0.25
HEARTBEAT_S = 5.0
_END_POLL_S = 0.05
_SHARPENING_S = 0.2
_SHARPENINGS = 8
# Between the rows of clients and of the screen; the time is the server's own, in whole seconds.
_MARK = "termsprawlctl-look"
_JOINED = "termsprawlctl-joined"
_FENCED = "termsprawlctl-fenced"


@dataclass(frozen=True)
class Limits:
    """What the user allows: sessions whose name fits one of `only` (() for all), and whether any can be selected."""

    only: tuple[str, ...] = ()
    read_only: bool = False

    def allows(self, name: str) -> bool:
        return not self.only or any(fnmatchcase(name, pattern) for pattern in self.only)


@dataclass(frozen=True)
class Seen:
    """What one look saw: the client, the server's time then, and the pane in front, as rows and with those joined."""

    client: clients.Client
    server_time: int
    rows: list[str]
    joined: list[str] | None


class TmuxView:
    """Watches one client and moves it; made inside a running event loop, then start()ed.

    `on_end(reason)` is called once when there is nothing left to watch, `on_switch(left, shown)` after
    each switch that an agent asked for, with the two sessions. `wall_clock` and `clock` return
    seconds; the latter is the controller's.
    """

    def __init__(
        self,
        tmux: Tmux,
        client: clients.Client,
        on_end: Callable[[str], None],
        *,
        limits: Limits | None = None,
        on_switch: Callable[[clients.Session, clients.Session], None] | None = None,
        on_refusal: Callable[[str], None] | None = None,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tmux = tmux
        self._client = client
        self._on_end = on_end
        self._limits = limits or Limits()
        self._on_switch = on_switch
        self._on_refusal = on_refusal
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._controller: Controller | None = None
        self._observed = NOTHING
        self._seen: Seen | None = None
        self._key_times = KeyTimes(wall_clock, clock)
        self._overlaid = False  # by a prompt, a menu or a popup
        self._overlay_poll: asyncio.TimerHandle | None = None
        self._prompts: dict[str, str] = {}  # by pane
        self._sessions: dict[str, clients.Session] = {}
        self._running: asyncio.Task | None = None
        self._queued: asyncio.Task | None = None
        self._tasks: set[asyncio.Task] = set()
        self._process: ProcessEnd | None = None
        self._ended = False

    async def start(self, controller: Controller) -> None:
        """Begin to watch for `controller`. Raises UsageError where the client is gone."""
        self._controller = controller
        await self.look()
        if self._seen is None and not self._ended:
            raise UsageError("nothing was shared: tmux does not answer.", "Check that it runs: tmux ls.")
        self._process = ProcessEnd(self._client.key.pid, lambda: self._spawn(self._await_end()))
        self._spawn(self._heartbeat())

    def close(self) -> None:
        """Stop watching; the client stays as it is. Harmless when done twice."""
        self._ended = True
        # Whoever finds out during a look that this is the end has that look finished.
        current = asyncio.current_task()
        for task in [*self._tasks, self._running, self._queued]:
            if task and task is not current:
                task.cancel()
        if self._process:
            self._process.close()

    @property
    def session(self) -> str:
        """The session that the client shows, as last seen, by the id that tmux has for it."""
        return self._client.shown.session

    # What the controller and the socket server ask for.

    def refresh(self, done: Callable[[], None]) -> None:
        """Observe anew, then done()."""

        async def work() -> None:
            await self.look()
            done()

        self._spawn(work())

    def validate(self, session_id: str, done: Callable[[str | None], None]) -> None:
        """done(None) when the session can be shown now, else done(code); together with a new observation."""

        async def work() -> None:
            done(await self._refusal(session_id))

        self._spawn(work())

    def navigate(self, session_id: str, done: Callable[[str], None]) -> None:
        """Show the session in the client unless a key comes first, observe, then done(how it ended)."""
        target = self._sessions[session_id]

        async def work() -> None:
            left = self._client.shown.session
            names = {session.id: session for session in self._sessions.values()}
            end = await self._switch(target)
            await self.look()
            done(end)
            if end == WENT and self._on_switch and target.id != left:
                self._on_switch(names.get(left, clients.Session(left, left)), target)

        self._spawn(work())

    async def go_back(self, session: clients.Session) -> bool:
        """Show a session because the user wants it; whether tmux agreed."""
        name = self._client.key.name
        answer = await self._ask(("switch-client", "-c", name, "-t", session.id))
        if self._controller:
            self._controller.human_input(self._clock())
        await self.look()
        return answer is not None and answer.agreed

    async def look(self) -> None:
        """Observe anew. Who asks while a look is under way gets the next one, with all others who ask then."""
        if self._ended:
            return
        if self._queued is None:
            self._queued = self._loop.create_task(self._look_after(self._running))
        await asyncio.shield(self._queued)

    # Validation and navigation.

    async def _refusal(self, session_id: str) -> str | None:
        # Longer than the controller waits: it is the one to say that this took too long.
        answer = await ask(self._tmux, ("list-sessions", "-F", clients.SESSION_FORMAT), timeout_s=2 * VALIDATION_S)
        self._sessions = clients.parse_sessions(answer.lines if answer else [])
        target = self._sessions.get(session_id)
        if target is None or not self._limits.allows(target.name):
            await self.look()
            return wire.TARGET_UNAVAILABLE
        # tmux counts whole seconds: before a key can be told from the last one, that one's second has to be over.
        for _ in range(_SHARPENINGS):
            await self.look()
            if self._seen is None or self._seen.server_time > self._seen.client.session_activity:
                break
            await _sleep(_SHARPENING_S)
        else:
            return wire.USER_ACTIVE  # somebody is at work in this session, in another client
        if target.id != self.session and clients.would_end(self._client):
            if self._on_refusal:
                self._on_refusal("its option destroy-unattached would end the session that is left")
            return wire.NOT_READY
        return None

    async def _switch(self, target: clients.Session) -> str:
        shown, name = self._client.shown, self._client.key.name
        # In one step inside tmux: no key can come between this look and the switch.
        unchanged = (
            f"#{{==:#{{session_activity}} #{{window_id}} #{{pane_id}},"
            f"{self._client.session_activity} {shown.window} {shown.pane}}}"
        )
        switch = f"switch-client -c {quoted(name)} -t {quoted(target.id)}"
        fence = ("if-shell", "-F", "-t", f"{shown.session}:", unchanged, switch, f"display-message -p {_FENCED}")
        answer = await self._ask(fence)
        if answer is None or not answer.agreed:
            return FAILED
        return FENCED if _FENCED in answer.lines else WENT

    # Looking.

    async def _look_after(self, before: asyncio.Task | None) -> None:
        if before:
            await asyncio.wait({before})
        self._running, self._queued = self._queued, None
        await self._look_now()

    async def _look_now(self) -> None:
        for _ in range(3):  # until the screen is that of the pane in front
            pane = self._client.shown.pane
            main, *overlays = await asyncio.gather(
                self._ask(*self._looking(pane)), *map(self._ask, _questions(self._client))
            )
            if main is None:
                self._disconnected()
                return
            if main.is_from_nobody():
                self._end("tmux has ended")
                return
            client = await self._found(main.lines)
            if client is None or client.shown.pane == pane:
                break
            self._client = client
        if client is None:
            self._end("the client has been detached")
            return
        self._take(_seen(client, main.lines), overlaid=any(map(_is_open, overlays)))

    def _looking(self, pane: str) -> list[tuple[str, ...]]:
        return [
            ("list-clients", "-F", clients.CLIENT_FORMAT),
            ("display-message", "-p", f"{_MARK} %s"),
            ("capture-pane", "-p", "-N", "-t", pane),
            ("display-message", "-p", _JOINED),
            ("capture-pane", "-p", "-J", "-t", pane),
        ]

    async def _found(self, lines: list[str]) -> clients.Client | None:
        """Our client out of the rows, or asked for by its name where list-clients leaves it out."""

        def ours(rows: list[str]) -> clients.Client | None:
            return next((row for row in clients.parse_clients(rows) if self._is_ours(row)), None)

        client = ours(lines)
        if client is None and version(self._client.version) >= _APART:
            name = self._client.key.name
            answer = await self._ask(("display-message", "-p", "-c", name, clients.CLIENT_FORMAT))
            client = ours(answer.lines) if answer else None
            client = client and replace(client, suspended=True)
        return client

    def _is_ours(self, row: clients.Client) -> bool:
        return row.key == self._client.key and row.server == self._client.server

    def _take(self, seen: Seen, *, overlaid: bool) -> None:
        if self._ended or self._controller is None:
            return
        self._seen, self._client = seen, seen.client
        client = seen.client
        self._note_activity(client.activity)
        self._note_overlay(overlaid)
        shown = client.shown
        self._observed = Observed(
            workspace=(shown, client.moves),
            session_id=clients.public_id(client.server, shown.session) if shown.session else None,
            ready=not client.suspended and not self._limits.read_only,
            blocked=client.prefix or client.mode or self._overlaid or self._holds_draft(seen),
        )
        self._controller.observe(self._observed)

    def _holds_draft(self, seen: Seen) -> bool:
        """Whether the pane in front has a line that was begun and not sent."""
        client = seen.client
        pane = client.shown.pane
        line = draft.line_at(seen.rows, client.cursor_column, client.cursor_row, client.width, seen.joined)
        state = draft.state_of(line, self._prompts.get(pane))
        since_key_s = seen.server_time - client.activity
        if line.left and (state == draft.EMPTY or (state == draft.UNKNOWN and since_key_s >= draft.UNCERTAIN_S)):
            self._prompts[pane] = line.left
        return draft.blocks(state, front_of(client), since_key_s)

    def _note_activity(self, activity: int) -> None:
        at_s = self._key_times.of(activity)
        if at_s is not None and self._controller:
            self._controller.human_input(at_s)

    def _note_overlay(self, overlaid: bool) -> None:  # noqa: FBT001 - what was seen
        if self._overlaid and not overlaid and self._controller:
            # It was the user who closed it, and tmux counts no key there as activity.
            self._controller.human_input(self._clock())
        self._overlaid = overlaid
        if overlaid and self._overlay_poll is None:
            # So that its end is seen when it comes, and not when somebody asks the next time.
            self._overlay_poll = self._loop.call_later(OVERLAY_POLL_S, self._look_at_overlay)

    def _look_at_overlay(self) -> None:
        self._overlay_poll = None
        self._spawn(self.look())

    def _disconnected(self) -> None:
        if self._observed is not NOTHING and self._controller:
            self._observed = replace(self._observed, ready=False, blocked=True)
            self._controller.observe(self._observed)

    # The client's end.

    async def _await_end(self) -> None:
        # tmux may see it a moment later than we do.
        for _ in range(round(1.0 / _END_POLL_S)):
            await self.look()
            await asyncio.sleep(_END_POLL_S)
        self._end("the client is gone")

    async def _heartbeat(self) -> None:
        while not self._ended:
            await asyncio.sleep(HEARTBEAT_S)
            answer = await self._ask(("list-clients", "-F", clients.CLIENT_FORMAT))
            if answer is not None and not any(map(self._is_ours, clients.parse_clients(answer.lines))):
                await self.look()

    def _end(self, reason: str) -> None:
        if not self._ended:
            self.close()
            self._on_end(reason)

    # tmux.

    async def _ask(self, *commands: tuple[str, ...]) -> Answer | None:
        return await ask(self._tmux, *commands)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        if self._ended:
            work.close()
            return
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            self._loop.call_exception_handler({"message": "a share's work failed", "exception": task.exception()})


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def _questions(client: clients.Client) -> list[tuple[str, ...]]:
    # All are refused for what is wrong with them and change nothing. But where a menu or popup
    # (a prompt) is open, tmux is done with them before it looks that close, or, where it
    # would change the popup, finds another fault with them.
    name, numbers = client.key.name, version(client.version)
    questions: list[tuple[str, ...]] = [("display-menu", "-c", name, "x")]
    if numbers >= _PROMPT_TYPES:
        questions.append(("command-prompt", "-t", name, "-T", "x"))
    if numbers >= _APART:
        questions.append(("display-popup", "-c", name, "-h", "x", "-b", "x", "x"))
    return questions


def _seen(client: clients.Client, lines: list[str]) -> Seen:
    at = next((number for number, line in enumerate(lines) if line.startswith(_MARK)), len(lines))
    time_s = lines[at][len(_MARK) :].strip() if at < len(lines) else ""
    screen = lines[at + 1 :]
    # The last one: the screen may show the same words.
    between = max((number for number, line in enumerate(screen) if line == _JOINED), default=None)
    if between is None:
        return Seen(client, clients.number(time_s), screen, None)
    return Seen(client, clients.number(time_s), screen[:between], screen[between + 1 :])


def _is_open(answer: Answer | None) -> bool:
    """Whether the answer to one of the questions means that what it is about is open."""
    return answer is not None and (answer.agreed or "border-lines" in answer.words)
