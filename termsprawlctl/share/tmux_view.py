"""A live tmux client as the view of a share.

tmux tells by itself when the client moves or goes; what it does not announce (the user's
last input, prompts, menus) is asked for whenever a request comes. So nothing is polled.
"""

from __future__ import annotations

import asyncio
import time

from ..base.tmux import Tmux, version
from . import clients
from .control import Control, Refused, quoted
from .controller import NOTHING, Controller, Observed

# A tmux that takes longer is stuck: the view then counts as disconnected.
ANSWER_S = 1.0
# A watcher that is thrown out (detach-client -a, its session killed) comes back, but does
# not fight for it.
MAX_RETURNS = 5
RETURN_WINDOW_S = 10.0
# Keeping a clock in step with others moves it by less than this in a quarter of an hour;
# taking such a step for a clock that was set costs no more than a rest.
_CLOCK_SET_S = 0.5
# Events after which the client may show something else, or be gone.
_CHANGES = frozenset(
    (
        "client-detached",
        "client-session-changed",
        "layout-change",
        "pane-mode-changed",
        "session-window-changed",
        "sessions-changed",
        "unlinked-window-close",
        "window-close",
        "window-pane-changed",
    )
)
# The first tmux whose command-prompt takes a prompt type; before, the question would open one.
_PROMPT_TYPES = (3, 3)
# From here on the question for menus may not tell popups (it does not in tmux 3.8), and
# list-clients may leave out a client that is suspended. A menu cannot be told from 3.8 on,
# where it belongs to the window: then there is only the pause after the key that opened it.
_APART = (3, 6)


class TmuxView:
    """Watches one client and moves it; made inside a running event loop, then start()ed.

    `on_end(reason)` is called once when there is nothing left to watch. `wall_clock` and
    `clock` return seconds; the latter is the controller's.
    """

    def __init__(self, tmux: Tmux, client: clients.Client, on_end, wall_clock=time.time, clock=time.monotonic) -> None:
        self._tmux = tmux
        self._key = client.key
        self._server = client.server
        self._on_end = on_end
        self._wall_clock = wall_clock
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._controller: Controller | None = None
        self._control: Control | None = None
        self._control_answered = False
        self._shown = (client.session, client.window, client.pane)
        self._moves = 0
        self._control_session = client.session  # where the watcher is
        self._returns: list[float] = []
        self._observed = NOTHING
        self._activity: int | None = None
        self._clocks_s = wall_clock() - clock()  # how far apart they are
        self._observing = self._observe_again = False
        self._version = (0, 0)
        self._overlaid = False  # by a prompt, a menu or a popup
        self._sessions: dict[str, tuple[str, str]] = {}
        self._pane: str | None = None
        self._on_pane_closed = None
        self._ended = False

    def start(self, controller: Controller, ready) -> None:
        """Begin to watch for `controller`; ready() once the first observation is in."""
        self._controller = controller
        self._attach(self._control_session)
        self._ask(["display-message -p '#{version}'"], lambda answers: self._started(answers[0], ready))

    def close(self) -> None:
        """Stop watching; the client stays as it is. Harmless when done twice."""
        self._ended = True
        if self._control:
            self._control.close()

    def watch_pane(self, pane: str, on_closed) -> None:
        """Have on_closed() called when this pane is gone."""
        self._pane, self._on_pane_closed = pane, on_closed
        self._look_for_pane()

    # What the controller and the socket server ask for.

    def refresh(self, done) -> None:
        """Observe anew, then done(); at the latest after ANSWER_S, the view then counting as disconnected."""
        waiting = [done]

        def finish() -> None:
            timer.cancel()
            if waiting:
                waiting.pop()()

        def give_up() -> None:
            self._disconnected()
            finish()

        timer = self._loop.call_later(ANSWER_S, give_up)
        self._ask([], lambda _answers: finish())

    def validate(self, session_id: str, done) -> None:
        """done(whether the session exists), together with a new observation."""
        command = f"list-sessions -F {quoted(clients.SESSION_FORMAT)}"
        self._ask([command], lambda answers: done(self._exists(session_id, answers[0])))

    def navigate(self, session_id: str, done) -> None:
        """Show the session in the client, observe, then done(whether tmux agreed)."""
        target, _ = self._sessions[session_id]
        command = f"switch-client -c {quoted(self._key.name)} -t {quoted(target)}"
        # The look is sent only after the answer: so tmux's event of this very move comes
        # before the look's, and not after the context that the caller is given.
        self._control.ask([command], lambda answers: self._moved(answers, done))

    def _moved(self, answers: list | None, done) -> None:
        agreed = answers is not None and not isinstance(answers[0], Refused)
        self._ask([], lambda _answers: done(agreed))

    def _exists(self, session_id: str, lines: list[str] | Refused | None) -> bool:
        self._sessions = clients.parse_sessions(lines or [])
        return session_id in self._sessions

    # The watcher.

    def _attach(self, session: str | None) -> None:
        self._control_answered = False
        self._control = Control(self._tmux, session, self._event, self._lost)

    def _started(self, answer: list[str] | Refused | None, ready) -> None:
        self._version = version(answer[0]) if answer else (0, 0)
        ready()

    def _lost(self) -> None:
        self._disconnected()
        now = self._clock()
        self._returns = [then for then in self._returns if now - then < RETURN_WINDOW_S] + [now]
        if not self._control_answered:
            self._end("tmux has ended")
        elif len(self._returns) > MAX_RETURNS:
            self._end("tmux keeps detaching the client that watches")
        else:
            # The session it was in may be gone.
            self._control_session = ""
            self._return()

    def _return(self) -> None:
        try:
            self._attach(None)
        except OSError as error:
            self._end(f"tmux cannot be started any more: {error.strerror}")
        else:
            self._observe()

    def _event(self, words: list[str]) -> None:
        if words[0] == "session-changed" and len(words) > 1:
            self._control_session = words[1]
        elif words[0] in _CHANGES:
            self._note_move(*words)
            self._observe()
            self._look_for_pane()

    def _note_move(self, what: str, where: str = "", *_rest: str) -> None:
        """Count a move of the client by itself: moved there and back, it looks unmoved by the time of the next look."""
        if self._observed is not NOTHING and (what, where) in (
            ("client-session-changed", self._key.name),
            ("session-window-changed", self._shown[0]),
            ("window-pane-changed", self._shown[1]),
        ):
            self._moves += 1
            self._observed = self._observed._replace(workspace=(*self._shown, self._moves))
            self._controller.observe(self._observed)

    def _observe(self) -> None:
        """Look once more; many events in a row cost no more than two looks."""
        if self._observing:
            self._observe_again = True
            return
        self._observing = True
        self._ask([], lambda _answers: self._observed_now())

    def _observed_now(self) -> None:
        self._observing = False
        if self._observe_again:
            self._observe_again = False
            self._observe()

    def _look_for_pane(self) -> None:
        if self._pane and not self._ended:
            # For a pane that is gone this does not fail: it prints an empty line.
            self._control.ask([f"display-message -p -t {self._pane} '#{{pane_id}}'"], self._looked_for_pane)

    def _looked_for_pane(self, answers) -> None:
        if answers and answers[0] != [self._pane] and not self._ended:
            self._pane = None
            self._on_pane_closed()

    def _ask(self, commands: list[str], done) -> None:
        """Run commands, look at the client, then done(the commands' answers, None for what failed)."""
        if self._ended:
            return
        name = quoted(self._key.name)
        # All but the first are refused for what is wrong with them and change nothing. But
        # where a menu or popup (a prompt) is open, tmux is done with them before it looks that
        # close, or, where it would change the popup, finds another fault with them.
        questions = [f"list-clients -F {quoted(clients.CLIENT_FORMAT)}", f"display-menu -c {name} x"]
        if self._version >= _PROMPT_TYPES:
            questions.append(f"command-prompt -t {name} -T x")
        if self._version >= _APART:
            questions.append(f"display-popup -c {name} -h x -b x x")
            questions.append(f"display-message -p -c {name} {quoted(clients.CLIENT_FORMAT)}")

        def answered(answers) -> None:
            if answers is None:
                answers = [None] * len(commands)
            else:
                self._look(*answers[len(commands) :])
            if not self._ended:
                done(answers[: len(commands)])

        self._control.ask([*commands, *questions], answered)

    def _look(self, rows, menu, prompt=None, popup=None, alone=()) -> None:
        self._control_answered = True
        found = [client for client in clients.parse_clients(rows or []) if client.key == self._key]
        if not found and any(client.key == self._key for client in clients.parse_clients(alone or [])):
            self._observed = self._observed._replace(ready=False)
            self._controller.observe(self._observed)
            return
        if not found or found[0].server != self._server:
            self._end("the client has been detached")
            return
        client = found[0]
        self._shown = (client.session, client.window, client.pane)
        self._note_activity(client.activity)
        self._note_overlay(any(map(_is_open, (menu, prompt, popup))))
        self._observed = Observed(
            workspace=(*self._shown, self._moves),
            session_id=clients.public_id(client.server, client.session) if client.session else None,
            ready=not client.suspended,
            blocked=client.prefix or client.mode or self._overlaid,
        )
        self._controller.observe(self._observed)
        if client.session and client.session != self._control_session:
            # Where the user is not, the watcher has no business to be: it would keep the
            # session in use, and count as somebody who looks at it. -E: as for attaching.
            self._control_session = client.session
            self._control.ask([f"switch-client -E -t {quoted(client.session)}"], lambda _answers: None)

    def _note_activity(self, activity: int) -> None:
        if activity != self._activity:
            self._activity = activity
            # Whole seconds, rounded down: the input may have come as late as the end of its second.
            ago_s = self._wall_clock() - (activity + 1)
            if self._wall_clock_was_set():
                ago_s = 0.0  # what tmux noted by it says nothing about when that was
            self._controller.human_input(self._clock() - max(ago_s, -1.0))

    def _wall_clock_was_set(self) -> bool:
        """Whether that happened since the last time, or the machine slept."""
        before, self._clocks_s = self._clocks_s, self._wall_clock() - self._clock()
        return abs(self._clocks_s - before) > _CLOCK_SET_S

    def _note_overlay(self, overlaid: bool) -> None:  # noqa: FBT001 - what was seen
        if self._overlaid and not overlaid:
            # It was the user who closed it, and tmux counts no key there as activity.
            self._controller.human_input(self._clock())
        self._overlaid = overlaid

    def _disconnected(self) -> None:
        if self._observed is not NOTHING:
            self._observed = self._observed._replace(ready=False, blocked=True)
            self._controller.observe(self._observed)

    def _end(self, reason: str) -> None:
        if not self._ended:
            self.close()
            self._on_end(reason)


def _is_open(answer: list[str] | Refused | None) -> bool:
    """Whether the answer to one of the questions means that what it is about is open."""
    return "border-lines" in answer.words if isinstance(answer, Refused) else answer is not None
