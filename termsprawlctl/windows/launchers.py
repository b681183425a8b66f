"""Launcher files, for emulators that take their command as one word.

What such an emulator does with blanks and quotes is its own affair, so it gets the path
of a script without either. The script removes itself before it becomes the command.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import time

from ..base.errors import CtlError
from ..base.files import remove_quietly
from ..base.ownership import roots

_PREFIX = "termsprawlctl-attach-"
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/_.-]*")
# A launcher that nobody ran: the emulator never came up. By then nobody will.
_STALE_S = 3600.0
_OWNER_ONLY = 0o700


def create(command: list[str], environment) -> str:
    """Write a launcher for the command; returns its path, which needs no quotes in a shell.

    Only this user can read or run it. Raises CtlError when there is no place for it.
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
        f"no place for the file that starts the command ({problem}).",
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
