"""The pane of each node: its address, one look at it, and keys pressed in it.

A node is one pane, by the id that tmux gave it (%N) and never gives again: whatever is
split beside it, swapped, joined elsewhere or made active. The pane knows its node (a pane
option), and its session which pane that is (a session option).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...base.errors import CtlError
from ...base.layout import SESSION_PREFIX, tmux_session
from ...base.tmux import exact
from .server import Server, TargetGoneError

NODE_OPTION = "@termsprawl_node"  # of a pane
PANE_OPTION = "@termsprawl_pane"  # of a session
PROJECT_OPTION = "@termsprawl_project"  # of both

# A person who typed so recently is in the middle of something.
PERSON_GRACE_S = 1.5
# tmux tells whole seconds: a key of second 7 may have been pressed at 7.99.
_CLOCK_STEP_S = 1.0

DEAD_WAIT_S = 2.0
_SIGNALED = 128
_POLL_S = 0.01

_FIELDS = (
    NODE_OPTION,
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
    "pane_dead_signal",
    "pane_in_mode",
)
_FORMAT = "\t".join(f"#{{{name}}}" for name in _FIELDS)


@dataclass(frozen=True)
class Pane:
    """A pane at one moment; lines and columns count from 0.

    `alternate`: it shows the alternate screen, as editors do. `dead_status`: the exit status
    of a dead pane's program as shells count it, 128 and more for a signal; None where tmux does
    not tell (yet). `in_mode`: copy mode, for example.
    """

    id: str
    pid: int
    tty: str
    column: int
    line: int
    columns: int
    rows: int
    alternate: bool
    dead: bool
    dead_status: int | None
    in_mode: bool


@dataclass(frozen=True)
class Client:
    """A person's window on a node; `activity` is its last key, in seconds since 1970."""

    node_id: str
    activity: int


@dataclass(frozen=True)
class Listed:
    """One pane of the server; `node` and `project` are "" where none is noted, `noted` is its session's pane."""

    id: str
    session: str
    node: str
    noted: str
    project: str

    def of(self, node_id: str) -> bool:
        """Whether it is the node's pane, or what an older host left without notes."""
        return self.node == node_id or (not self.noted and self.session == tmux_session(node_id))


class TypedByPerson(CtlError):
    """A person uses this terminal right now."""


class Panes:
    """The panes of one tmux server. All methods raise CtlError; one with `ended`'s text where the pane is gone."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ids: dict[str, str] = {}

    def run(self, node_id: str, *arguments: str, stdin: bytes = b"", timeout_s: float | None = None) -> str:
        """One tmux command about a node's pane."""
        try:
            if timeout_s is None:
                return self._server.run(*arguments, stdin=stdin)
            return self._server.run(*arguments, stdin=stdin, timeout_s=timeout_s)
        except TargetGoneError:
            raise ended(node_id) from None

    def run_all(self, node_id: str, *commands: tuple[str, ...], stdin: bytes = b"") -> str:
        """Several tmux commands about a node's pane in one step."""
        try:
            return self._server.run_all(*commands, stdin=stdin)
        except TargetGoneError:
            raise ended(node_id) from None

    def describe(self, node_id: str, template: str) -> str:
        """A tmux format, expanded for the node's pane."""
        owner, _, text = self._display(node_id, f"#{{{NODE_OPTION}}} {template}").partition(" ")
        if owner != node_id:
            raise ended(node_id)
        return text

    def address(self, node_id: str) -> str:
        """The id of the node's pane, for commands that take a target."""
        known = self._ids.get(node_id)
        return known if known is not None else self._find(node_id)

    def project_of(self, node_id: str) -> str | None:
        """The project that a node's pane belongs to; None where the terminal has ended."""
        try:
            return self._server.display(self.address(node_id), self._project_if(node_id)) or None
        except (TargetGoneError, EndedError):
            return None

    def claim(self, node_id: str, project: str, pane_id: str | None = None) -> None:
        """Note on a pane, by default the first of the node's session, whose it is."""
        pane_id = pane_id or self.address(node_id)
        self._ids[node_id] = pane_id
        session = f"{exact(tmux_session(node_id))}:"
        self._server.run_all(
            ("set-option", "-p", "-t", pane_id, NODE_OPTION, node_id),
            ("set-option", "-p", "-t", pane_id, PROJECT_OPTION, project),
            ("set-option", "-t", session, PROJECT_OPTION, project),
            ("set-option", "-t", session, PANE_OPTION, pane_id),
        )

    def listing(self) -> list[Listed]:
        """Every pane of the server; [] where none runs."""
        names = ("pane_id", "session_name", NODE_OPTION, PANE_OPTION, PROJECT_OPTION)
        template = "\t".join(f"#{{{name}}}" for name in names)
        try:
            rows = self._server.run("list-panes", "-a", "-F", template).splitlines()
        except TargetGoneError:
            return []
        return [Listed(*cells) for cells in (row.split("\t") for row in rows) if len(cells) == len(names)]

    def forget(self, node_id: str) -> None:
        """The node is no more."""
        self._ids.pop(node_id, None)

    def look(self, node_id: str) -> Pane:
        """The node's pane as it is now."""
        values = dict(zip(_FIELDS, self._display(node_id, _FORMAT).split("\t")))
        if values[NODE_OPTION] != node_id:  # a new server gives its numbers anew
            self.forget(node_id)
            raise ended(node_id)
        signal = _number(values["pane_dead_signal"])  # since tmux 3.3
        return Pane(
            id=values["pane_id"],
            pid=_number(values["pane_pid"]) or 0,
            tty=values["pane_tty"],
            column=_number(values["cursor_x"]) or 0,
            line=_number(values["cursor_y"]) or 0,
            columns=_number(values["pane_width"]) or 0,
            rows=_number(values["pane_height"]) or 0,
            alternate=values["alternate_on"] == "1",
            dead=values["pane_dead"] == "1",
            dead_status=_number(values["pane_dead_status"]) if signal is None else _SIGNALED + signal,
            in_mode=values["pane_in_mode"] not in ("", "0"),
        )

    def look_for_input(self, node_id: str) -> Pane:
        """Like look(), with the pane out of copy mode, where keys would be commands of that mode."""
        pane = self.look(node_id)
        if pane.dead:
            raise ended(node_id)
        if pane.in_mode:
            self.run(node_id, "send-keys", "-t", pane.id, "-X", "cancel")
        return pane

    def screen(self, node_id: str, pane: Pane) -> list[str]:
        """The rows of the screen that is shown, trailing blanks left out."""
        return self.run(node_id, "capture-pane", "-p", "-t", pane.id).split("\n")[: pane.rows]

    def press(self, node_id: str, pane: Pane, keys: list[str]) -> None:
        """Press keys by tmux's names."""
        self.run(node_id, "send-keys", "-t", pane.id, "--", *keys)

    def keep_when_dead(self, pane: Pane, *, keep: bool) -> None:
        """Whether the pane stays when its program ends, so that one can still see how; quiet when it is gone."""
        change = ("on",) if keep else ()
        try:
            self._server.run("set-option", "-p", *(() if keep else ("-u",)), "-t", pane.id, "remain-on-exit", *change)
        except TargetGoneError:
            return

    def dead_status(self, node_id: str) -> int | None:
        """The exit status of a pane whose program has ended, waiting until tmux knows it; None when it never does."""
        end_s = time.monotonic() + DEAD_WAIT_S
        while time.monotonic() < end_s:
            pane = self.look(node_id)
            if pane.dead and pane.dead_status is not None:
                return pane.dead_status
            # tmux 3.3a sometimes misses the end of a child until another one ends.
            self.run(node_id, "run-shell", "exit 0")
            time.sleep(_POLL_S)
        return None

    def tidy(self) -> None:
        """End what a host that was killed left behind: panes that stayed when their program ended."""
        try:
            listing = self._server.run("list-panes", "-a", "-F", "#{pane_id} #{pane_dead}").splitlines()
            for pane_id, _, is_dead in (line.partition(" ") for line in listing):
                self._server.run("set-option", "-p", "-u", "-t", pane_id, "remain-on-exit")
                if is_dead == "1":
                    self._server.run("kill-pane", "-t", pane_id)
        except CtlError:
            return

    def clients(self) -> dict[str, Client]:
        """People's windows by the client's name."""
        try:
            listing = self._server.run(
                "list-clients", "-F", "#{client_control_mode} #{client_activity} #{client_session} #{client_name}"
            )
        except TargetGoneError:
            return {}
        found = {}
        for line in listing.splitlines():
            control, activity, session, name = [*line.split(" ", 3), "", "", ""][:4]
            if control != "1" and activity.isdigit() and session.startswith(SESSION_PREFIX):
                found[name] = Client(session[len(SESSION_PREFIX) :], int(activity))
        return found

    def person_types(self, node_id: str) -> bool:
        """Whether somebody pressed a key in one of the terminal's windows just now."""
        last = max((client.activity for client in self.clients().values() if client.node_id == node_id), default=0)
        # Nobody presses a key in the future: the clock was set back since.
        return -_CLOCK_STEP_S < time.time() - last < PERSON_GRACE_S + _CLOCK_STEP_S

    def refuse_if_person_types(self, node_id: str) -> None:
        """Raise TypedByPerson when somebody pressed a key in one of the terminal's windows just now."""
        if self.person_types(node_id):
            raise TypedByPerson(
                f"A person is typing in terminal {node_id}; nothing was typed.",
                "Wait a few seconds, read the terminal again, then decide.",
            )

    def _find(self, node_id: str) -> str:
        mine = [pane for pane in self.listing() if pane.of(node_id)]
        if not mine:
            raise ended(node_id)
        found = next((pane for pane in mine if pane.node == node_id), mine[0])
        self._ids[node_id] = found.id
        if not found.node:
            self.claim(node_id, found.project, found.id)
        return found.id

    def _display(self, node_id: str, template: str) -> str:
        try:
            return self._server.display(self.address(node_id), template)
        except TargetGoneError:
            self.forget(node_id)
            raise ended(node_id) from None

    @staticmethod
    def _project_if(node_id: str) -> str:
        return f"#{{?#{{==:#{{{NODE_OPTION}}},{node_id}}},#{{{PROJECT_OPTION}}},}}"


class EndedError(CtlError):
    """A terminal has ended."""


def ended(node_id: str) -> EndedError:
    """What every operation says of a terminal that has ended."""
    return EndedError(
        f"The terminal {node_id} has ended: its pane in tmux is gone.",
        "Open a new one with terminal_open; terminal_close removes this one.",
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
