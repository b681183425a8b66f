"""One look at a terminal's pane, keys pressed in it, and who else is typing there."""

from __future__ import annotations

import time
from collections import namedtuple

from ...base.errors import CtlError
from ...base.layout import SESSION_PREFIX, tmux_session
from ...base.tmux import Tmux, TmuxError, exact_pane

# Lines and columns count from 0. dead_status: the exit status of a dead pane's program,
# None where a signal ended it.
Pane = namedtuple("Pane", "id pid tty column line columns rows alternate dead dead_status in_mode")

# A person who typed so recently is in the middle of something.
PERSON_GRACE_S = 1.5
# tmux tells whole seconds: a key of second 7 may have been pressed at 7.99.
_CLOCK_STEP_S = 1.0

DEAD_WAIT_S = 2.0
_POLL_S = 0.01

_FORMAT = "\t".join(
    f"#{{{name}}}"
    for name in (
        "pane_id",
        "pane_pid",
        "pane_tty",
        "cursor_x",
        "cursor_y",
        "pane_width",
        "pane_height",
        "alternate_on",
        "pane_dead",
        "pane_dead_status",
        "pane_in_mode",
    )
)


class TypedByPerson(CtlError):
    """A person uses this terminal right now."""


class Panes:
    """The panes of one tmux server. All methods raise CtlError when the terminal has ended."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux

    def look(self, node_id: str) -> Pane:
        """The node's pane as it is now."""
        try:
            values = self._tmux.display(exact_pane(tmux_session(node_id)), _FORMAT).split("\t")
        except TmuxError:
            raise ended(node_id) from None
        numbers = [int(value) if value.isdigit() else None for value in values]
        return Pane(
            id=values[0],
            pid=numbers[1],
            tty=values[2],
            column=numbers[3],
            line=numbers[4],
            columns=numbers[5],
            rows=numbers[6],
            alternate=values[7] == "1",
            dead=values[8] == "1",
            dead_status=numbers[9],
            in_mode=values[10] not in ("", "0"),
        )

    def look_for_input(self, node_id: str) -> Pane:
        """Like look(), with the pane out of copy mode, where keys would be commands of that mode."""
        pane = self.look(node_id)
        if pane.dead:
            raise ended(node_id)
        if pane.in_mode:
            self._run(node_id, "send-keys", "-t", pane.id, "-X", "cancel")
        return pane

    def screen(self, node_id: str, pane: Pane) -> list[str]:
        """The rows of the screen that is shown, trailing blanks left out."""
        return self._run(node_id, "capture-pane", "-p", "-t", pane.id).split("\n")[: pane.rows]

    def press(self, node_id: str, pane: Pane, keys: list[str]) -> None:
        """Press keys by tmux's names."""
        self._run(node_id, "send-keys", "-t", pane.id, "--", *keys)

    def keep_when_dead(self, pane: Pane, *, keep: bool) -> None:
        """Whether the pane stays when its program ends, so that one can still see how; quiet when it is gone."""
        change = ("on",) if keep else ()
        try:
            self._tmux.run("set-option", "-p", *(() if keep else ("-u",)), "-t", pane.id, "remain-on-exit", *change)
        except TmuxError:
            return

    def dead_status(self, node_id: str) -> int | None:
        """The exit status of a pane whose program has ended, waiting until tmux knows it; None when it never does."""
        end_s = time.monotonic() + DEAD_WAIT_S
        while time.monotonic() < end_s:
            pane = self.look(node_id)
            if pane.dead and pane.dead_status is not None:
                return pane.dead_status
            # tmux 3.3a sometimes misses the end of a child until another one ends.
            self._run(node_id, "run-shell", "exit 0")
            time.sleep(_POLL_S)
        return None

    def tidy(self) -> None:
        """End what a host that was killed left behind: panes that stayed when their program ended."""
        try:
            listing = self._tmux.run("list-panes", "-a", "-F", "#{pane_id} #{pane_dead}").splitlines()
            for pane_id, _, is_dead in (line.partition(" ") for line in listing):
                self._tmux.run("set-option", "-p", "-u", "-t", pane_id, "remain-on-exit")
                if is_dead == "1":
                    self._tmux.run("kill-pane", "-t", pane_id)
        except TmuxError:
            return

    def clients(self) -> dict[str, tuple[str, int]]:
        """People's windows: client's name to (node id, time of its last key in seconds since 1970)."""
        try:
            listing = self._tmux.run(
                "list-clients", "-F", "#{client_control_mode} #{client_activity} #{client_session} #{client_name}"
            )
        except TmuxError:
            return {}
        found = {}
        for line in listing.splitlines():
            control, activity, session, name = (*line.split(" ", 3), "", "", "")[:4]
            if control != "1" and activity.isdigit() and session.startswith(SESSION_PREFIX):
                found[name] = (session[len(SESSION_PREFIX) :], int(activity))
        return found

    def refuse_if_person_types(self, node_id: str) -> None:
        """Raise TypedByPerson when somebody pressed a key in one of the terminal's windows just now."""
        last = max((activity for node, activity in self.clients().values() if node == node_id), default=0)
        # Nobody presses a key in the future: the clock was set back since.
        if -_CLOCK_STEP_S < time.time() - last < PERSON_GRACE_S + _CLOCK_STEP_S:
            raise TypedByPerson(
                f"A person is typing in terminal {node_id}; nothing was typed.",
                "Wait a few seconds, read the terminal again, then decide.",
            )

    def _run(self, node_id: str, *arguments: str) -> str:
        try:
            return self._tmux.run(*arguments)
        except TmuxError:
            raise ended(node_id) from None


def ended(node_id: str) -> CtlError:
    """What every operation says of a terminal that has ended."""
    return CtlError(
        f"The terminal {node_id} has ended: its tmux session is gone.",
        "Open a new one with terminal_open; terminal_close removes this one.",
    )
