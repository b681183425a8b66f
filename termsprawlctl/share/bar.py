"""The bar: one line at the bottom of the shared client's window, a pane of its own.

Its process shows the line and revokes on a click on [Revoke], `r` or Ctrl-C. It ends with
the share, whatever ends that, and the pane with it. tmux passes clicks on only where its
`mouse` option is on: while a bar stands it is, in this one session.
"""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import threading
import time
import tty

from ..base import console
from ..base.errors import CtlError
from ..base.program import own_argv
from ..base.text import harmless
from ..base.tmux import Tmux, TmuxError
from . import directory

REVOKE = "[Revoke]"
# Options of our own in tmux: on the pane of each bar; and on a session with bars, how its `mouse` was.
_IS_BAR = "@termsprawlctl-bar"
_MOUSE_WAS = "@termsprawlctl-mouse-was"
_LOOK_S = 0.02
CLEANUP_S = 2.0  # a server that does not answer must not hold up the end of a share
# Screen: no cursor, no line wrap, mouse clicks with SGR coordinates.
_SET_UP = "\033[?25l\033[?7l\033[?1000h\033[?1006h"
_CLICK = re.compile(rb"\033\[<0;(\d+);\d+M")
# Any other control sequence: its letters are no keys.
_SEQUENCE = re.compile(rb"\033(\[[0-?]*[ -/]*[@-~]|.)?", re.DOTALL)


def line(path: str) -> str:
    """What the bar says, and the sharing process too."""
    return f"TUIMCP on: {path}  {REVOKE}"


def fitted(path: str, columns: int) -> str:
    """The line in at most `columns` columns: the path is cut first, [Revoke] last."""
    text = line(path)
    if len(text) > columns:
        tail = f"…  {REVOKE}"
        text = text[: columns - len(tail)] + tail if columns > len(tail) else REVOKE
    return text


class BarPane:
    """The bar as the sharing process sees it: made at once, gone with close().

    Raises CtlError where the window has no room for it.
    """

    def __init__(self, tmux: Tmux, session: str, window: str, path: str) -> None:
        self._tmux = tmux = tmux.apart()
        self._session = session
        socket_path = tmux.run("display-message", "-p", "#{socket_path}").strip()
        self._mouse = MouseOption(tmux, session)
        argv = own_argv("tui", "bar", path, "--socket-path", socket_path, "--in-session", session, *self._mouse.words())
        # -f: across the whole window, -d: without taking the user's place.
        split = ("split-window", "-d", "-f", "-v", "-l", "1", "-t", window, "-P", "-F", "#{pane_id}", *argv)
        options = (("remain-on-exit", "off"), ("synchronize-panes", "off"), (_IS_BAR, "on"))
        of_the_pane = [("set-option", "-p", "-t", f"{window}.{{bottom}}", *option) for option in options]
        try:
            # In one step: should we be killed, the bar's process finds all of it to put back, or there is no bar.
            self.pane = tmux.run_all(split, *of_the_pane, *self._mouse.turning_on()).strip()
        except TmuxError as error:
            raise CtlError(f"tmux has no room for the bar: {error.message}.", "Share without --bar.") from None

    def close(self) -> None:
        """Take the bar away once the share is over; harmless when it is gone."""
        # Its process sees that by itself and puts the mouse back, so that this needs nobody
        # else, whoever is killed. The rest is for one that cannot: in this order, so that of
        # two bars that end at once, the later one finds itself the last.
        end_s = time.monotonic() + CLEANUP_S
        while _is_there(self._tmux, self.pane) and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
        _quietly(self._tmux, "kill-pane", "-t", self.pane)
        self._mouse.restore(self.pane)


class MouseOption:
    """tmux's `mouse` of one session: turned on if it was off, and put back as it was with the last bar there."""

    def __init__(self, tmux: Tmux, session: str, was: str | None = None) -> None:
        # In the bar's pane it works while the pane, and with it our process group, is told to end.
        self._tmux = tmux = tmux.apart()
        self._session = session
        if was is None:
            inherited = tmux.run("show-options", "-A", "-v", "-t", session, "mouse").strip()
            was = "on" if inherited == "on" else self._own("mouse")
            # Another bar may have turned it on.
            was = {"": was, "unset": ""}.get(self._own(_MOUSE_WAS), "off")
        self._was = was  # on: nothing to do; off: set so for this session; empty: not set

    def words(self) -> list[str]:
        """What the bar's own process has to know to put it back."""
        return ["--mouse-was", self._was or "unset"]

    def turning_on(self) -> list[tuple[str, ...]]:
        """The commands that do it; none where it is on."""
        if self._was == "on":
            return []
        return [self._setting(_MOUSE_WAS, self._was or "unset"), self._setting("mouse", "on")]

    def restore(self, pane: str | None) -> None:
        """As it was, unless somebody has changed it since, or a bar in another pane than `pane` needs it.

        Harmless when done twice.
        """
        if self._was == "on":
            return
        try:
            if self._other_bars(pane) or not self._own(_MOUSE_WAS):
                return
            if self._own("mouse") == "on":
                self._set("mouse", self._was)
            self._set(_MOUSE_WAS, "")
        except CtlError:
            return

    def _other_bars(self, pane: str | None) -> bool:
        rows = self._run("list-panes", "-s", "-t", self._session, "-F", f"#{{pane_id}} #{{{_IS_BAR}}}").splitlines()
        return any(row.endswith(" on") and row != f"{pane} on" for row in rows)

    def _set(self, option: str, value: str) -> None:
        self._run(*self._setting(option, value))

    def _setting(self, option: str, value: str) -> tuple[str, ...]:
        return ("set-option", "-t", self._session, *([option, value] if value else ["-u", option]))

    def _own(self, option: str) -> str:
        return self._run("show-options", "-q", "-v", "-t", self._session, option).strip()

    def _run(self, *command: str) -> str:
        return self._tmux.run(*command, timeout_s=CLEANUP_S)


def _is_there(tmux: Tmux, pane: str) -> bool:
    try:
        tmux.run("list-panes", "-t", pane, timeout_s=CLEANUP_S)
    except CtlError:
        return False
    return True


def _quietly(tmux: Tmux, *command: str) -> None:
    try:
        tmux.run(*command, timeout_s=CLEANUP_S)
    except CtlError:
        return


def run(path: str, tmux: Tmux, pane: str | None, mouse: MouseOption) -> int:
    """The process in the bar's pane; returns when the share is over."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGWINCH, *_ENDING):
        signal.signal(number, _noted_by_the_wakeup_descriptor)
    threading.Thread(target=_wait, args=(path, writer), daemon=True).start()
    try:
        tty.setraw(console.STDIN)
        console.paint(_SET_UP)
        while True:
            text = _draw(path, tmux, pane)
            ready, _, _ = select.select([console.STDIN, reader], [], [])
            events = os.read(reader, 1024) if reader in ready else b""
            if _OVER in events:
                break
            keys = os.read(console.STDIN, 1024) if console.STDIN in ready else None
            if keys == b"":
                raise OSError("the pane is gone")
            if _ENDING.intersection(events) or (keys and asks_to_revoke(keys, text)):
                _revoke(path)
    except (OSError, termios.error, CtlError):
        # No pane, no bar; and nothing is shared behind the user's back. Alone, it would hold
        # a window open whose last shell the user has left.
        _revoke(path)
    mouse.restore(pane)
    return 0


_ENDING = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
_OVER = 0xFF  # no signal has this number


def _noted_by_the_wakeup_descriptor(_number, _frame) -> None:
    return


def _draw(path: str, tmux: Tmux, pane: str | None) -> str:
    columns, lines = os.get_terminal_size(console.STDOUT)
    if lines > 1 and pane:
        if _is_alone(tmux, pane):
            raise CtlError("the bar is alone in its window.")
        _quietly(tmux, "resize-pane", "-t", pane, "-y", "1")
    text = fitted(harmless(path), columns)
    console.paint(f"\033[H\033[7m{text.ljust(columns)}\033[0m")
    return text


def _is_alone(tmux: Tmux, pane: str) -> bool:
    try:
        return tmux.run("display-message", "-p", "-t", pane, "#{window_panes}", timeout_s=CLEANUP_S).strip() == "1"
    except CtlError:
        return False


def _wait(path: str, writer: int) -> None:
    directory.wait_for_owner(path)
    os.write(writer, bytes((_OVER,)))


def _revoke(path: str) -> None:
    try:
        directory.revoke(path)
    except CtlError:
        return  # over already; or the waiting thread will tell when it is


def asks_to_revoke(keys: bytes, text: str) -> bool:
    """Whether what was typed or clicked into the bar, which shows `text`, means to revoke."""
    start = text.index(REVOKE) + 1
    for click in _CLICK.finditer(keys):
        if start <= int(click.group(1)) < start + len(REVOKE):
            return True
    typed = _SEQUENCE.sub(b"", keys)
    return b"r" in typed or b"\x03" in typed
