"""The sign of a share inside tmux, and the ways out of it: in the status line of the shared client alone.

A segment before the first line's own format, on whichever level that is set (for all, or for
one session), shows only in the client that it names: in every window, zoomed or not, and after
every switch, without anybody having to move it along. Nothing of the user's is replaced: the
segment is put before what stands there and cut out again. A session that has no status line
gets one meanwhile.

Keys are bound only where nothing was. All that a share puts into tmux stands in its
`about.json` first, so that whoever comes after a killed one takes it away.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ...base.errors import CtlError
from ...base.program import own_argv
from ...base.tmux import Tmux, TmuxError, for_format, quoted

_TEXT = " TUIMCP [Revoke] "
_FORMAT = "status-format[0]"
# On a session whose status line was off: how that was set, `off` or `unset`.
_STATUS_WAS = "@termsprawlctl-status-was"
_SEPARATOR = "termsprawlctl-next"
_ROOT, _PREFIX = "root", "prefix"
_CLICK = "MouseDown1StatusDefault"
REVOKE_KEY, BACK_KEY = "R", "B"
CLEANUP_S = 2.0  # a server that does not answer must not hold up the end of a share
_OURS = "--at-client"  # in the command of each of our bindings


@dataclass(frozen=True)
class Mark:
    """What a share puts into tmux: its segment, and `table key` of each binding."""

    segment: str
    keys: tuple[str, ...] = ()

    def key(self, action: str) -> str:
        """The key after the prefix that does this (revoke, back); empty when there is none."""
        found = [row.split(" ", 2) for row in self.keys]
        return next((key for table, key, what in found if table == _PREFIX and what == action), "")


def plan(tmux: Tmux, client_pid: str, share_id: str, revoke_key: str | None) -> Mark:
    """What to put into tmux for this client. Raises CtlError where a key that the user wants is taken."""
    segment = f"#{{?#{{==:#{{client_pid}} {share_id},{client_pid} {share_id}}},#[reverse]{_TEXT}#[noreverse],}}"
    keys = [f"{_ROOT} {_CLICK} revoke"] if _is_free(tmux, _ROOT, _CLICK) else []
    for key, action in ((revoke_key or REVOKE_KEY, "revoke"), (BACK_KEY, "back")):
        if _is_free(tmux, _PREFIX, key):
            keys.append(f"{_PREFIX} {key} {action}")
        elif key == revoke_key:
            raise CtlError(f"the key {key} is bound already.", "Name another one with --key.")
    return Mark(segment, tuple(keys))


class Sign:
    """A mark in one tmux server. Its calls block; run them in a thread where that matters."""

    def __init__(self, tmux: Tmux, mark: Mark) -> None:
        self._tmux = tmux.apart()
        self._mark = mark

    def put(self) -> None:
        """Show it wherever it is missing; harmless when done again. Raises CtlError."""
        for target in self._levels():
            value = self._value(target)
            if self._mark.segment not in value:
                self._set(target, _FORMAT, self._mark.segment + value)
        for session in self._sessions():
            self._turn_on(session)
        for row in self._mark.keys:
            table, key, action = row.split(" ", 2)
            if _is_free(self._tmux, table, key):
                self._run("bind-key", "-T", table, key, *_binding(self._tmux, table, action))

    def take_away(self) -> None:
        """Everything as it was but for what the user changed since; harmless when done twice, or without a server."""
        try:
            levels = self._levels()
            for target in levels:
                value = self._value(target)
                if self._mark.segment in value:
                    self._set(target, _FORMAT, value.replace(self._mark.segment, ""))
            if not any(_TEXT in self._value(target) for target in levels):
                self._put_back_what_shares_have_in_common()
        except CtlError:
            return

    def _put_back_what_shares_have_in_common(self) -> None:
        for session in self._sessions():
            was = self._own(session, _STATUS_WAS)
            if was:
                if self._own(session, "status") == "on":
                    self._set(["-t", session], "status", "" if was == "unset" else was)
                self._set(["-t", session], _STATUS_WAS, "")
        for row in self._mark.keys:
            table, key, _ = row.split(" ", 2)
            if _OURS in _bound(self._tmux, table, key):
                self._run("unbind-key", "-T", table, key)

    def _levels(self) -> list[list[str]]:
        """The targets of set-option where the first line's format is set: for all, and in sessions with their own."""
        sessions = self._sessions()
        commands: list[tuple[str, ...]] = []
        for session in sessions:
            commands += [("show-options", "-q", "-t", session, "status-format"), _separator()]
        parts = self._run_all(commands).split(f"{_SEPARATOR}\n")
        return [["-g"], *(["-t", session] for session, part in zip(sessions, parts) if part.strip())]

    def _turn_on(self, session: str) -> None:
        if self._run("show-options", "-A", "-v", "-t", session, "status").strip() != "off":
            return
        own = self._own(session, "status")
        self._set(["-t", session], _STATUS_WAS, own or "unset")
        self._set(["-t", session], "status", "on")

    def _sessions(self) -> list[str]:
        return self._run("list-sessions", "-F", "#{session_id}").split()

    def _value(self, target: list[str]) -> str:
        return self._run("show-options", "-q", "-v", *target, _FORMAT).removesuffix("\n")

    def _own(self, session: str, option: str) -> str:
        return self._run("show-options", "-q", "-v", "-t", session, option).strip()

    def _set(self, target: list[str], option: str, value: str) -> None:
        words = [option, value] if value or target == ["-g"] else ["-u", option]
        self._run("set-option", *target, *words)

    def _run(self, *command: str) -> str:
        return self._tmux.run(*command, timeout_s=CLEANUP_S)

    def _run_all(self, commands: list[tuple[str, ...]]) -> str:
        return self._tmux.run_all(*commands) if commands else ""


def announce(left: str, shown: str, mark: Mark) -> str:
    """What the user is told of a switch."""
    ways = [f"back: prefix {mark.key('back')}" if mark.key("back") else "back: termsprawlctl tui back"]
    if mark.key("revoke"):
        ways.append(f"revoke: prefix {mark.key('revoke')}")
    return f"agent → {shown} (from {left}) · {' · '.join(ways)}"


def _separator() -> tuple[str, ...]:
    return ("display-message", "-p", _SEPARATOR)


def _bound(tmux: Tmux, table: str, key: str) -> str:
    try:
        return tmux.run("list-keys", "-T", table, key, timeout_s=CLEANUP_S)
    except TmuxError:
        return ""


def _is_free(tmux: Tmux, table: str, key: str) -> bool:
    bound = _bound(tmux, table, key)
    return not bound.strip() or _OURS in bound


def _binding(tmux: Tmux, table: str, action: str) -> list[str]:
    words = own_argv("tui", action, "--socket-path", tmux.base[-1])
    if action == "revoke":
        words += ["--by", "click" if table == _ROOT else "key"]
    # run-shell expands formats; what it prints would take over the pane.
    command = for_format(shlex.join(words)) + f" {_OURS} '#{{client_pid}}' >/dev/null 2>&1"
    if table == _ROOT:
        return ["if-shell", "-F", f"#{{e|<:#{{mouse_x}},{len(_TEXT)}}}", f"run-shell -b {quoted(command)}"]
    return ["run-shell", "-b", command]
