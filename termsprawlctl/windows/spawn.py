"""Start an emulator on a node's session, and prove that its window came up.

Neither the launched program's exit nor its life says whether there is a window: some
hand over to a running instance and exit, some stay and show nothing. A client of tmux
that was not there before does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import namedtuple

from ..base import tmux
from ..base.errors import CtlError
from ..base.files import remove_quietly
from ..base.processes import spawn_detached
from . import launchers
from .emulators import LAUNCHER
from .node_terminal import NodeTerminal

# A cold start of the slowest emulators takes about two seconds.
PROOF_S = 5.0
_POLL_S = 0.1
_END_S = 2.0  # for an emulator to end by itself when asked to

# size in characters; term: the kind of terminal as the client names it
Client = namedtuple("Client", "pid tty width height term")
# argv: what was started; client: the new one, or None while there is none; failure: why
# there will be none, as the end of a sentence that begins with the emulator's name.
Outcome = namedtuple("Outcome", "argv client failure")
Failure = namedtuple("Failure", "name argv why")


def start(node: NodeTerminal, argv: list[str], environment, wait_s: float) -> Outcome:
    """Start one emulator and wait at most `wait_s` seconds for its client.

    After a failure nothing of it is left running. Raises CtlError when the session ended
    meanwhile.
    """
    before = {_identity(client) for client in _clients(node)}
    launcher = None
    if LAUNCHER in argv:
        launcher = launchers.create(node.attach_argv(), environment)
        argv = [launcher if word == LAUNCHER else word for word in argv]
    done = False
    try:
        try:
            process = spawn_detached(argv, environment=environment)
        except OSError as error:
            return Outcome(argv, None, f"could not be started: {error.strerror}")
        client, failure = _await_client(node, process, before, wait_s)
        done = failure is None
        return Outcome(argv, client, failure)
    finally:
        if launcher and not done:
            remove_quietly(launcher)


def _await_client(node: NodeTerminal, process, before: set, wait_s: float) -> tuple[Client | None, str | None]:
    """(the new client or None, why there will be none or None)."""
    end = time.monotonic() + wait_s
    try:
        while True:
            status = process.poll()
            new = [client for client in _clients(node) if _identity(client) not in before]
            failed = status not in (None, 0)
            if new or (not failed and time.monotonic() > end):
                # A host lives for weeks: each closed window would leave a zombie otherwise.
                threading.Thread(target=process.wait, daemon=True).start()
                return (new[0] if new else None), None
            if failed:
                _end(process)
                return None, f"failed at once ({_ending(status)})"
            time.sleep(_POLL_S)
    except BaseException:
        # The session ended, and the plain target may mean another one now; or the user gave up.
        _end(process)
        raise


def _end(process) -> None:
    # The leader of the group may be gone, the rest of it not.
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _identity(client: Client) -> tuple:
    # The name of a terminal is used again.
    return client.pid, client.tty


def _clients(node: NodeTerminal) -> list[Client]:
    """The clients of exactly this session that somebody looks at; raises CtlError when it is gone."""
    template = "#{client_control_mode} #{client_pid} #{client_width} #{client_height} #{client_tty} #{client_termname}"
    try:
        lines = node.server.run("list-clients", "-t", tmux.exact(node.session), "-F", template).split("\n")
    except tmux.TmuxError as error:
        raise CtlError(f"the terminal of node {node.node_id} ended ({error.message}).") from None
    clients = []
    for line in lines:
        words = line.split(" ", 5)
        if len(words) == 6 and words[0] != "1":
            _, pid, width, height, tty, term = words
            clients.append(Client(int(pid), tty, int(width), int(height), term))
    return clients


def _ending(status: int) -> str:
    return f"exit status {status}" if status > 0 else f"killed by signal {-status}"
