"""The host's tmux server: where its answers come from, and what they mean for a terminal.

Only two answers say that a terminal is gone: tmux does not find it, or nothing listens on
the socket and the server's process is not there either. Whatever else tmux says (another
version's protocol, a socket file that was deleted, a server that stands still) says
nothing about the terminals.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time

from ...base.errors import CtlError
from ...base.files import Explained, read_small, remove_quietly, write_atomically
from ...base.ownership import server_of
from ...base.processtable import command_line_of, free_descriptors
from ...base.tmux import Tmux, TmuxError

END_WAIT_S = 5.0  # a server that is told to end takes its programs along first
_POLL_S = 0.02
# Of the files that a process may open, so many have to be free for one terminal more and for all that ends one. In
# the server: its terminal and pipe, and three for each command that comes meanwhile. Here, where clients without a
# token are dropped for it: the terminal's pipe, a tmux with its pipes, a file, and connections.
ROOM_IN_SERVER = 12
ROOM_HERE = 18
# What one tmux command takes of this process while it starts; so many wait for their turn as do not fit into what
# is left beside the rest.
DESCRIPTORS_A_COMMAND = 9
MAX_COMMANDS = 64
_RESERVED = 40
# Seen with tmux 3.3a.
_NOT_FOUND = ("can't find ", "no such ", "no current ", "no sessions")
_NOBODY_LISTENS = ("no server running", "No such file or directory", "lost server", "server exited")
_OTHER_VERSION = "protocol version mismatch"


class TargetGoneError(TmuxError):
    """The pane or session that was asked for does not exist, or its whole server does not."""


class Server(Tmux):
    """The tmux server of a data directory.

    Raises TargetGoneError where a target is gone, TmuxError with tmux's own words for any
    other refusal, and another CtlError where tmux does not answer. `record` is the file
    that keeps the server's process id, for whoever has to end it when its socket is gone.
    """

    def __init__(self, binary: str, *socket_args: str, record: str = "") -> None:
        super().__init__(binary, *socket_args)
        self._record = record
        self._pid: int | None = None
        self._turns = threading.Semaphore(commands_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))

    @property
    def socket(self) -> str:
        return self.base[self.base.index("-S") + 1]

    def pid(self) -> int | None:
        """The server's process id, once it is known to this host or an earlier one, or the system tells it."""
        if self._pid is None and self._record:
            with contextlib.suppress(OSError, ValueError):
                self._pid = int(read_small(self._record, 32))
        if self._pid is None:
            with contextlib.suppress(OSError):
                peer = server_of(self.socket)
                self._pid = peer[0] if peer and peer[1] == os.getuid() else None
        return self._pid

    def note(self, pid: str) -> None:
        """Keep the process id that tmux told."""
        if not pid.strip().isdigit() or int(pid) == self._pid:
            return
        self._pid = int(pid)
        if self._record:
            with contextlib.suppress(OSError):  # it is of use only where somebody deletes the socket
                write_atomically(self._record, pid.strip().encode())

    def look(self) -> None:
        """Note the process id of a server that runs already; never fails."""
        with contextlib.suppress(CtlError):
            self.note(self.run("display-message", "-p", "#{pid}"))

    def is_running(self) -> bool:
        """Whether the server that was noted runs; another process may have its number by now.

        Raises CtlError when that cannot be seen.
        """
        pid = self.pid()
        with Explained("cannot see whether the tmux server runs", "Try again."):
            words = command_line_of(pid) if pid else []
        return "tmux" in os.path.basename("".join(words[:1])) and self.socket in words

    def refuse_second(self) -> None:
        """Raise TmuxError where a new session would start a second server beside one that lost its socket."""
        if not os.path.exists(self.socket) and self.is_running():
            raise self._unreachable(f"error connecting to {self.socket} (No such file or directory)")

    def refuse_without_room(self) -> None:
        """Raise CtlError where one terminal more would leave too few descriptors for ending it."""
        pid = self.pid()
        with Explained("cannot start a terminal"):
            here = free_descriptors(but_sockets=True)
            there = free_descriptors(pid) if pid and self.is_running() else None
        for whose, free, needed in (("this host", here, ROOM_HERE), ("its tmux server", there, ROOM_IN_SERVER)):
            if free is not None and free < needed:
                raise CtlError(
                    f"There is no room for another terminal: {whose} may open only {max(0, free)} more files, and one "
                    f"more terminal takes {needed} to use and end. No terminal was started.",
                    "Close one with terminal_close, or end all with `termsprawlctl host stop --kill-sessions` and "
                    "start the host again with a higher limit (ulimit -n).",
                )

    def end(self) -> None:
        """End the server with all that runs in it, also where it does not listen or stands still."""
        try:
            self.run("kill-server")
        except TargetGoneError:
            pass
        except CtlError:
            if not self.is_running():
                raise
        if self.is_running():
            self.end_process()
        if self._record:
            remove_quietly(self._record)

    def end_process(self) -> None:
        """End the server by its process id, if it is there."""
        end_s = time.monotonic() + END_WAIT_S
        sent = None
        while self.is_running():
            number = signal.SIGTERM if time.monotonic() < end_s else signal.SIGKILL
            if number != sent:
                sent = number
                with contextlib.suppress(OSError):
                    os.kill(self._pid or 0, number)
                    os.kill(self._pid or 0, signal.SIGCONT)  # one that was stopped takes no signal before
            if time.monotonic() > end_s + END_WAIT_S:
                return
            time.sleep(_POLL_S)

    def display(self, target: str, template: str) -> str:
        """A format string expanded for a target, which is a pane."""
        try:
            return super().display(target, template)
        except TmuxError as error:  # tmux expands it to nothing where the pane is gone
            raise self._explained(error) from None

    def _run(self, words: list[str], stdin: bytes, timeout_s: float) -> str:
        try:
            with self._turns:
                return super()._run(words, stdin, timeout_s)
        except TmuxError as error:
            raise self._explained(error) from None

    def _explained(self, error: TmuxError) -> TmuxError:
        text = error.message
        if isinstance(error, TargetGoneError) or error.remedy:
            return error  # explained already
        if text.startswith(_NOT_FOUND):
            return TargetGoneError(text)
        if any(words in text for words in _NOBODY_LISTENS):
            return self._unreachable(text) if self.is_running() else TargetGoneError(text)
        if _OTHER_VERSION in text:
            return TmuxError(
                f"tmux said: {text}.",
                "The server was started by another version of tmux; its terminals go on. Use that tmux, or end the "
                "server and all that runs in it with `termsprawlctl host stop --kill-sessions`.",
            )
        return error

    def _unreachable(self, text: str) -> TmuxError:
        return TmuxError(
            f"tmux said: {text}; but its server (process {self._pid}) runs, and the terminals in it go on.",
            f"`kill -USR1 {self._pid}` makes it listen again.",
        )


def commands_within(descriptors: int) -> int:
    """How many tmux commands may run at once in a process that may have so many descriptors (-1: any number)."""
    if descriptors < 0:
        return MAX_COMMANDS
    return max(1, min(MAX_COMMANDS, (descriptors - _RESERVED) // DESCRIPTORS_A_COMMAND))
