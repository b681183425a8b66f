"""Keeps an eye on all terminals: follows their output, notes ends, and what people do there."""

from __future__ import annotations

import contextlib
import threading
import time

from ...base import threads
from ...base.errors import CtlError
from ..terminals.panes import Client

OUTPUT_INTERVAL_S = 1.0  # one event per terminal
# How often people's windows are looked at; tmux tells whole seconds anyway.
LOOK_INTERVAL_S = 2.0
MIN_PAUSE_S = 0.05


class Monitor:
    """One thread of a host. `note_output` and `note_end` may be called from any thread."""

    def __init__(self, host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._written: dict[str, int] = {}  # node id: bytes that no event has told of
        self._reported_s: dict[str, float] = {}
        self._ended: list[str] = []
        # Their pipes have ended, but their panes are kept for now: newer tmuxes (3.8) end the pipe first.
        self._dying: list[str] = []
        self._known_ended: frozenset[str] = frozenset()
        self._trouble = ""  # what keeps it from watching, as the log tells it already
        self._clients: dict[str, Client] = {}
        self._thread: threads.Running | None = None

    def start(self) -> None:
        self._clients = self._host.panes.clients()
        self._thread = threads.start(self._run)

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(LOOK_INTERVAL_S)

    def note_output(self, node_id: str, size: int) -> None:
        with self._lock:
            self._written[node_id] = self._written.get(node_id, 0) + size
        self._wake.set()

    def note_end(self, node_id: str) -> None:
        with self._lock:
            self._ended.append(node_id)
        self._wake.set()

    def ended(self) -> frozenset[str]:
        """The nodes whose terminals are known to have ended."""
        return self._known_ended

    def note_ended(self, nodes: set[str]) -> None:
        with self._lock:
            self._known_ended |= nodes

    def forget_ended(self, nodes: set[str]) -> None:
        """They are no more, or run after all."""
        with self._lock:
            self._known_ended -= nodes

    def _run(self) -> None:
        look_s = time.monotonic()
        while not self._stopping:
            try:
                self._report_output()
                self._report_ends()
                if time.monotonic() >= look_s:
                    look_s = time.monotonic() + LOOK_INTERVAL_S
                    with self._lock:
                        self._ended += self._dying
                    self._dying.clear()
                    self._attach_all()
                    self._report_people()
                    self._note_trouble("")
            except CtlError as trouble:  # tmux does not answer, for example
                look_s = time.monotonic() + LOOK_INTERVAL_S
                self._note_trouble(str(trouble))
            except Exception as fault:  # noqa: BLE001 - watching must not end with one fault
                look_s = time.monotonic() + LOOK_INTERVAL_S
                self._note_fault(fault)
            time.sleep(MIN_PAUSE_S)
            with self._lock:
                pause_s = OUTPUT_INTERVAL_S if self._written else LOOK_INTERVAL_S
            self._wake.wait(min(pause_s, max(0.0, look_s - time.monotonic())))
            self._wake.clear()

    def _report_output(self, *, everything: bool = False) -> None:
        now_s = time.monotonic()
        with self._lock:
            due = {
                node_id: size
                for node_id, size in self._written.items()
                if everything or now_s - self._reported_s.get(node_id, -OUTPUT_INTERVAL_S) >= OUTPUT_INTERVAL_S
            }
            for node_id in due:
                del self._written[node_id]
                self._reported_s[node_id] = now_s
        for node_id, size in due.items():
            self._event("output", node_id, bytes=size)

    def _report_ends(self) -> None:
        while self._ended:
            # Removed once it is reported: where tmux does not answer, the next round tells it.
            node_id = self._ended[0]
            self._host.commands.note_end(node_id)
            # Without its pipe only: somebody else uses it; the next look attaches again.
            if self._host.terminals.project_of(node_id) is None:
                self._report_output(everything=True)
                self._reported_s.pop(node_id, None)
                self._event("exit", node_id)
                self.note_ended({one.node_id for one in self._host.sessions.all() if one.node_id == node_id})
            elif self._host.panes.look(node_id).dead:
                self._dying.append(node_id)
            with self._lock:
                self._ended.pop(0)

    def _attach_all(self) -> None:
        alive = self._host.terminals.alive()
        self.forget_ended(set(alive))
        for node_id in alive:
            with contextlib.suppress(CtlError):
                self._host.streams.get(node_id)

    def _report_people(self) -> None:
        before, self._clients = self._clients, self._host.panes.clients()
        for name, client in self._clients.items():
            known = before.get(name)
            if known is None or known.node_id != client.node_id:
                self._event("person", client.node_id, what="attached")
            elif known.activity != client.activity:
                self._event("person", client.node_id, what="typed")
        for name, client in before.items():
            if name not in self._clients:
                self._event("person", client.node_id, what="detached")

    def _note_trouble(self, text: str) -> None:
        """One line for a trouble however long it lasts, and one for its end."""
        if text == self._trouble:
            return
        self._trouble = text
        self._host.log(f"terminals cannot be watched: {text}" if text else "terminals are watched again")

    def _note_fault(self, fault: Exception) -> None:
        """The same once only, for a fault of this program."""
        name = type(fault).__name__
        if name != self._trouble:
            self._trouble = name
            self._host.log_fault()

    def _event(self, kind: str, node_id: str, **fields: object) -> None:
        project = next((one.project_id for one in self._host.sessions.all() if one.node_id == node_id), None)
        self._host.audit.event(kind, project=project, node=node_id, **fields)
