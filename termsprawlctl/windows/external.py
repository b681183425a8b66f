"""Show a node's terminal in a window of its own: which emulator, and the report of it."""

from __future__ import annotations

import dataclasses
import os
import shlex
import time

from ..base import tmux
from ..base.errors import CtlError
from ..base.files import read_object
from ..base.processes import find_program
from . import emulators, spawn
from .displays import usable
from .node_terminal import Client, Node

# Callers may be waiting in a queue: after this, no further emulator of the list is tried.
_KEEP_TRYING_S = 12.0
_BUNDLE_FOLDERS = ("/Applications", "/System/Applications/Utilities", "/Applications/Utilities")


class Report:
    """What open_window() did, or would do.

    choice: the emulators.Choice that was started; client: the new tmux client, or None when
    none has attached yet; failures: what was tried before it; notes: what would have
    stopped a real start, for a dry run.
    """

    def __init__(self, node: Node, choice: emulators.Choice) -> None:
        self.node = node
        self.choice = choice
        self.started = False
        self.client: Client | None = None
        self.failures: list[spawn.Failure] = []
        self.notes: list[str] = []

    def as_json(self) -> dict:
        """The report as a JSON value; sizes are in characters."""
        client = self.client
        return {
            "nodeId": self.node.node_id,
            "session": self.node.session,
            "terminal": self.choice.name,
            "argv": self.choice.argv,
            "reason": self.choice.reason,
            "started": self.started,
            "attached": client is not None,
            "client": client
            and {"tty": client.tty, "width": client.width, "height": client.height, "term": client.term},
            "failed": [{"terminal": one.name, "argv": one.argv, "why": one.why} for one in self.failures],
            "notes": self.notes,
            "attach": self.node.attach_argv(),
        }


def open_window(node: Node, *, terminal: str | None = None, environment=None, wait_s: float = spawn.PROOF_S) -> Report:
    """Open a window on the node's tmux session, next to the clients that it has.

    `terminal` is the name of an emulator that wins over the preferences, `environment` what
    decides about displays and PATH and is passed on (without tmux's and our own variables).
    Waits at most `wait_s` seconds for the window; none by then is no error (the report's client
    is None). Raises CtlError when nothing could be started.
    """
    environment = os.environ if environment is None else environment
    node.check()
    preference = None if terminal is not None else read_preference(node.preferences)
    displays = usable(environment)
    no_display = _no_display(displays, node)
    if no_display and preference is None:
        raise no_display
    choices = _choose(node, terminal, preference, environment, displays.kinds)
    if no_display and choices[0].needs_display:
        raise no_display
    child = {key: value for key, value in tmux.server_environment(environment).items() if key not in displays.dead}
    return _start_first(node, choices, child, wait_s)


def plan(node: Node, *, terminal: str | None = None, environment=None) -> Report:
    """What open_window() would start, without starting it or asking for more than it needs.

    A missing session, terminal or display becomes a note of the report. Raises CtlError.
    """
    environment = os.environ if environment is None else environment
    notes = []
    try:
        node.check()
    except CtlError as error:
        notes.append(str(error))
    preference = None if terminal is not None else read_preference(node.preferences)
    displays = usable(environment)
    kinds = displays.kinds or frozenset((emulators.X11, emulators.WAYLAND))
    try:
        choice = _choose(node, terminal, preference, environment, kinds)[0]
    except CtlError as error:
        if error.message != emulators.NONE_FOUND:
            raise
        notes.append(str(error))
        choice = emulators.Choice("no terminal", node.attach_argv(), "what a terminal would run", needs_display=False)
    no_display = _no_display(displays, node)
    if no_display and choice.needs_display:
        notes.append(str(no_display))
    report = Report(node, choice)
    report.notes = notes
    return report


def read_preference(path: str) -> emulators.Preference | None:
    """The preferred emulator of a preferences file; None where there is no file or no preference.

    Raises CtlError.
    """
    try:
        value = read_object(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CtlError(f"cannot read {path}: {error.strerror}.", "Make it readable, or remove it.") from None
    except ValueError as error:
        raise CtlError(f"{path} {error}.", "Fix or remove it.") from None
    return emulators.parse_preference(value, path)


def finder(environment):
    """`find(name)` for an environment: the absolute path of an executable, or of a bundle `NAME.app`."""
    path = environment.get("PATH", os.defpath)
    home = environment.get("HOME", "/")

    def find(name: str) -> str | None:
        if name.endswith(".app"):
            bundles = [f"{folder}/{name}" for folder in (*_BUNDLE_FOLDERS, f"{home}/Applications")]
            return next(filter(os.path.isdir, bundles), None)
        return find_program(name, path)

    return find


def _choose(node: Node, terminal, preference, environment, kinds) -> list[emulators.Choice]:
    try:
        return emulators.choose(
            node.attach_argv(),
            find=finder(environment),
            displays=kinds,
            terminal=terminal,
            preference=preference,
            system=os.uname().sysname,
        )
    except CtlError as error:
        if error.message == emulators.NONE_FOUND and os.path.exists("/.flatpak-info"):
            error.remedy += " This is a Flatpak sandbox, which hides the terminals of the host."
        raise


def _no_display(displays, node: Node) -> CtlError | None:
    if displays.problem is None or os.uname().sysname == "Darwin":
        return None
    return CtlError(f"no window can be opened: {displays.problem}.", node.remedy())


def _start_first(node: Node, choices, environment, wait_s: float) -> Report:
    give_up = time.monotonic() + _KEEP_TRYING_S
    failures: list[spawn.Failure] = []
    for choice in choices:
        started = spawn.start(node, choice.argv, environment, wait_s)
        if started.failure is None:
            report = Report(node, dataclasses.replace(choice, argv=started.argv))
            report.started = True
            report.client = started.client
            report.failures = failures
            return report
        failures.append(spawn.Failure(choice.name, started.argv, started.failure))
        if time.monotonic() > give_up:
            break
    reasons = "; ".join(f"{failure.name} {failure.why} ({shlex.join(failure.argv)})" for failure in failures)
    raise CtlError(f"no terminal came up: {reasons}.", node.remedy())
