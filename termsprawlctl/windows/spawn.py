"""Start an emulator on a node's session, and prove that its window came up.

Neither the launched program's exit nor its life says whether there is a window: some
hand over to a running instance and exit, some stay and show nothing. A client of tmux
that was not there before does.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ..base import threads
from ..base.errors import CtlError
from ..base.files import remove_quietly
from ..base.ownership import roots
from ..base.processes import raise_if_signalled, spawn_detached
from ..base.processtable import kill_group, send_to_group
from .emulators import LAUNCHER
from .node_terminal import Client, Node

# A cold start of the slowest emulators takes about two seconds.
PROOF_S = 5.0
_POLL_S = 0.1
_END_S = 2.0  # for an emulator to end by itself when asked to

_PREFIX = "termsprawlctl-attach-"
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/_.-]*")
# A launcher that nobody ran: the emulator never came up. By then nobody will.
_STALE_S = 3600.0
_OWNER_ONLY = 0o700


@dataclass(frozen=True)
class Started:
    """What start() did.

    argv: what was started; client: the new one, or None while there is none; failure: why
    there will be none, as the end of a sentence that begins with the emulator's name.
    """

    argv: list[str]
    client: Client | None
    failure: str | None


@dataclass(frozen=True)
class Failure:
    """An emulator that did not come up, and why: the end of a sentence that begins with its name."""

    name: str
    argv: list[str]
    why: str


def start(node: Node, argv: list[str], environment: Mapping[str, str], wait_s: float) -> Started:
    """Start one emulator and wait at most `wait_s` seconds for its client.

    After a failure nothing of it is left running. Raises CtlError when the session ended
    meanwhile.
    """
    before = {_identity(client) for client in node.clients()}
    launcher = None
    if LAUNCHER in argv:
        launcher = create_launcher(node.attach_argv(), environment)
        argv = [launcher if word == LAUNCHER else word for word in argv]
    done = False
    try:
        try:
            process = spawn_detached(argv, environment=environment)
        except OSError as error:
            return Started(argv, None, f"could not be started: {error.strerror}")
        client, failure = _await_client(node, process, before, wait_s)
        done = failure is None
        return Started(argv, client, failure)
    finally:
        if launcher and not done:
            remove_quietly(launcher)


def _await_client(
    node: Node, process: subprocess.Popen[bytes], before: set[tuple[int, str]], wait_s: float
) -> tuple[Client | None, str | None]:
    """(the new client or None, why there will be none or None)."""
    end = time.monotonic() + wait_s
    try:
        raise_if_signalled()
        while True:
            status = process.poll()
            new = [client for client in node.clients() if _identity(client) not in before]
            failed = bool(status)
            if new or (not failed and time.monotonic() > end):
                # A host lives for weeks: each closed window would leave a zombie otherwise.
                with contextlib.suppress(RuntimeError):
                    threads.start(process.wait)
                return (new[0] if new else None), None
            if status:
                _end(process)
                return None, f"failed at once ({_ending(status)})"
            time.sleep(_POLL_S)
    except BaseException:
        # The session ended, and the plain target may mean another one now; or the user gave up.
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    # The leader of the group may be gone, the rest of it not.
    send_to_group(process.pid, signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait()


def _identity(client: Client) -> tuple[int, str]:
    # The name of a terminal is used again.
    return client.pid, client.tty


def _ending(status: int) -> str:
    return f"exit status {status}" if status > 0 else f"killed by signal {-status}"


def create_launcher(command: list[str], environment: Mapping[str, str]) -> str:
    """Write a script that runs the command; returns its path, which needs no quotes in a shell.

    For emulators that take their command as one word: what such a one does with blanks and
    quotes is its own affair. Only this user can read or run the script, which removes itself
    before it becomes the command. Raises CtlError when no directory can hold it.
    """
    places = [environment.get("XDG_RUNTIME_DIR"), environment.get("TMPDIR"), "/tmp", "/var/tmp"]  # noqa: S108
    problem = "no usable directory"
    for place in places:
        if not place or not _PLAIN_PATH.fullmatch(place):
            continue
        path = os.path.join(place, _PREFIX + os.urandom(8).hex())
        try:
            _check_nobody_can_replace_files(place)
            _sweep(place)
            _write(path, _script(path, command))
        except OSError as error:
            problem = f"{place}: {error.strerror}"
            continue
        if os.access(path, os.X_OK):
            return path
        remove_quietly(path)
        problem = f"{place} does not allow programs to run"
    raise CtlError(
        f"there is no place for the file that starts the command ({problem}).",
        "Set TMPDIR to a directory without blanks in its path that programs may run from.",
    )


def _script(path: str, command: list[str]) -> bytes:
    # An instance that has long been running may have been started inside another tmux.
    lines = ["#!/bin/sh", f"rm -f {shlex.quote(path)}", "unset TMUX TMUX_PANE", f"exec {shlex.join(command)}", ""]
    return os.fsencode("\n".join(lines))


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def _check_nobody_can_replace_files(place: str) -> None:
    # The variables that name a place may have come from another user's environment.
    status = os.stat(place)
    if status.st_uid not in {os.getuid(), *roots()}:
        raise OSError(0, "it belongs to another user", place)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise OSError(0, "others may change files in it", place)


def _sweep(place: str) -> None:
    for name in os.listdir(place):
        if not name.startswith(_PREFIX):
            continue
        path = os.path.join(place, name)
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if status.st_uid == os.getuid() and status.st_mtime < time.time() - _STALE_S:
            remove_quietly(path)
