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

import contextlib
import re
import shlex
from collections.abc import Callable
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
_BINDING = re.compile(r"bind-key\s+(?:-\S+\s+)*?-T\s+(?P<table>\S+)\s+(?P<key>\S+)\s+(?P<command>.*)", re.DOTALL)
_TRIES = 4
_MAX_STEP_BYTES = 8000  # tmux takes 16 KiB
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
    bound = _bindings(tmux)
    keys = []
    for table, key, action in (
        (_ROOT, _CLICK, "revoke"),
        (_PREFIX, revoke_key or REVOKE_KEY, "revoke"),
        (_PREFIX, BACK_KEY, "back"),
    ):
        if _OURS in bound.get((table, key), _OURS):
            keys.append(f"{table} {key} {action}")
        elif key == revoke_key:
            raise CtlError(f"the key {key} is bound already.", "Name another one with --key.")
    return Mark(segment, tuple(keys))


class Sign:
    """A mark in one tmux server. Its calls block; run them in a thread where that matters."""

    def __init__(self, tmux: Tmux, mark: Mark) -> None:
        self._tmux = tmux.apart()
        self._mark = mark

    def put(self) -> None:
        """Show it, and bind the keys that were free. Raises CtlError."""
        self.show()
        rows = [row.split(" ", 2) for row in self._mark.keys]
        self._run_all(
            [("bind-key", "-T", table, key, *_binding(self._tmux, table, action)) for table, key, action in rows]
        )

    def show(self) -> None:
        """Show it wherever it is missing; harmless when done again. Raises CtlError."""
        _while_sessions_end(self._show)

    def take_away(self) -> None:
        """Everything as it was but for what the user changed since; harmless when done twice, or without a server."""
        with contextlib.suppress(CtlError):
            _while_sessions_end(self._take_away)

    def _show(self) -> None:
        commands = []
        for level in self._levels():
            if level.format is not None and not level.has(self._mark.segment):
                commands.append(level.setting(_FORMAT, self._mark.segment + level.format))
            if level.is_off:
                commands += [level.setting(_STATUS_WAS, level.status or "unset"), level.setting("status", "on")]
        self._run_all(commands)

    def _take_away(self) -> None:
        levels = self._levels()
        commands = []
        for level in levels:
            if level.format is not None and level.has(self._mark.segment):
                level.format = level.format.replace(self._mark.segment, "")
                commands.append(level.setting(_FORMAT, level.format))
        if not any(level.has(_TEXT) for level in levels):
            commands += self._putting_back_what_shares_have_in_common(levels)
        self._run_all(commands)

    def _putting_back_what_shares_have_in_common(self, levels: list[_Level]) -> list[tuple[str, ...]]:
        commands = []
        for level in levels:
            if level.status_was:
                if level.status == "on":
                    commands.append(level.setting("status", "" if level.status_was == "unset" else level.status_was))
                commands.append(level.setting(_STATUS_WAS, ""))
        bound = _bindings(self._tmux)
        for row in self._mark.keys:
            table, key, _ = row.split(" ", 2)
            if _OURS in bound.get((table, key), ""):
                commands.append(("unbind-key", "-T", table, key))
        return commands

    def _levels(self) -> list[_Level]:
        """Where options can be set that decide about the first status line: for all, and in each session."""
        targets = [["-g"], *(["-t", session] for session in self._run("list-sessions", "-F", "#{session_id}").split())]
        separator = ("display-message", "-p", _SEPARATOR)
        commands = []
        for target in targets:
            for question in _QUESTIONS:
                commands += [("show-options", "-q", *question[:-1], *target, question[-1]), separator]
        answers = [part.removesuffix("\n") for part in self._run_all(commands).split(f"{_SEPARATOR}\n")]
        levels = []
        for number, target in enumerate(targets):
            own, text, status, was, effective = answers[number * len(_QUESTIONS) : (number + 1) * len(_QUESTIONS)]
            is_off = target != ["-g"] and effective == "off"
            levels.append(_Level(target, text if own else None, status, was, is_off=is_off))
        return levels

    def _run(self, *command: str) -> str:
        return self._tmux.run(*command, timeout_s=CLEANUP_S)

    def _run_all(self, commands: list[tuple[str, ...]]) -> str:
        """Run them in as few steps as tmux has room for; the outputs one after the other."""
        outputs = []
        step: list[tuple[str, ...]] = []
        size = 0
        for command in commands:
            length = sum(len(word.encode()) + 4 for word in command)
            if step and size + length > _MAX_STEP_BYTES:
                outputs.append(self._tmux.run_all(*step, timeout_s=CLEANUP_S))
                step, size = [], 0
            step.append(command)
            size += length
        if step:
            outputs.append(self._tmux.run_all(*step, timeout_s=CLEANUP_S))
        return "".join(outputs)


# What is asked of each level: flags of show-options, then the option. The first tells whether there is an own one.
_QUESTIONS = (
    ("status-format",),
    ("-v", _FORMAT),
    ("-v", "status"),
    ("-v", _STATUS_WAS),
    ("-A", "-v", "status"),
)


@dataclass
class _Level:
    """What is set for all sessions, or for one.

    `format`: of the first status line, None where another level's counts; `status`, `status_was`: empty where not
    set here; `is_off`: a session that shows no status line.
    """

    target: list[str]
    format: str | None
    status: str
    status_was: str
    is_off: bool

    def has(self, text: str) -> bool:
        return self.format is not None and text in self.format

    def setting(self, option: str, value: str) -> tuple[str, ...]:
        words = [option, value] if value or self.target == ["-g"] else ["-u", option]
        return ("set-option", *self.target, *words)


def _while_sessions_end(action: Callable[[], None]) -> None:
    """Do it, and once more where a session was gone before its turn came. Raises CtlError."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except TmuxError:
            continue
    return action()


def announce(left: str, shown: str, mark: Mark) -> str:
    """What the user is told of a switch."""
    ways = [f"back: prefix {mark.key('back')}" if mark.key("back") else "back: termsprawlctl tui back"]
    if mark.key("revoke"):
        ways.append(f"revoke: prefix {mark.key('revoke')}")
    return f"agent → {shown} (from {left}) · {' · '.join(ways)}"


def _bindings(tmux: Tmux) -> dict[tuple[str, str], str]:
    """The commands of all bindings, by table and key."""
    rows = map(_BINDING.match, tmux.run("list-keys", timeout_s=CLEANUP_S).splitlines())
    return {(row["table"], row["key"]): row["command"] for row in rows if row}


def _binding(tmux: Tmux, table: str, action: str) -> list[str]:
    words = own_argv("tui", action, "--socket-path", tmux.base[-1])
    if action == "revoke":
        words += ["--by", "click" if table == _ROOT else "key"]
    # run-shell expands formats; what it prints would take over the pane.
    command = for_format(shlex.join(words)) + f" {_OURS} '#{{client_pid}}' >/dev/null 2>&1"
    if table == _ROOT:
        return ["if-shell", "-F", f"#{{e|<:#{{mouse_x}},{len(_TEXT)}}}", f"run-shell -b {quoted(command)}"]
    return ["run-shell", "-b", command]
