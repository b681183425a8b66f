"""Whose files and directories these are, and who else could put others in their place."""

from __future__ import annotations

import contextlib
import os
import stat

_MAX_LINKS = 40  # as many as the system itself follows
_PLANTABLE = (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK)


def keep_to_ourselves(path: str, mode: int) -> None:
    """Give a directory of our own this mode, if it has another.

    Looked at and changed by an open descriptor, so that it is one and the same. Raises
    OSError where it is a link or no directory, or belongs to another user.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        refuse_another_users(status, path)
        if stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def is_ours(path: str) -> bool:
    """Whether a directory that we made still is the one: no link, and of this user.

    Directories for temporary files are cleared now and then, and anybody may make a new one
    of the old name there.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def refuse_another_users(status: os.stat_result, path: str) -> None:
    """Raise OSError unless it belongs to this user."""
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise OSError(0, "it belongs to another user", path)


def refuse_foreign_way(path: str) -> None:
    """Raise OSError where another user could move a directory away and put one of theirs in its place.

    That is whoever owns, or may write to, a directory above it; where the sticky bit is set
    only its owner. Trusted are root, and whoever could do so to the home directory, whose
    files this user's shells read anyway.
    """
    trusted, home = _trusted(), os.path.realpath(os.environ.get("HOME") or "/")
    for above, status in _way(os.path.dirname(os.path.realpath(path))):
        if os.path.commonpath((above, home)) == above:  # the home directory, or above that, too
            return
        if status.st_uid not in trusted:
            raise OSError(0, f"{above} above it belongs to another user", path)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise OSError(0, f"other users may write to {above} above it", path)


def others_may_add_above(path: str) -> bool:
    """Whether another user may put files into this directory, which may be missing, or one above it, sticky or not."""
    trusted = _trusted()
    return any(
        status.st_uid not in trusted or status.st_mode & stat.S_IWOTH for _, status in _way(os.path.realpath(path))
    )


def _trusted() -> set[int]:
    return {os.getuid(), _owner(os.environ.get("HOME") or "/"), *roots()}


def roots() -> set[int]:
    """The user ids under which root appears.

    In a user namespace (a rootless container, a sandbox) it may have no number: the system then
    shows it, and all others without one, under one that says nothing else. `/proc/sys` is always
    root's; so is `/`, unless the namespace has a file system of its own.
    """
    return {0, _owner("/"), _owner("/proc/sys")}


def _way(path: str):
    """(directory, its status) of the directory and of all above it, as far as they can be seen."""
    while True:
        status = None
        with contextlib.suppress(OSError):  # there is none, or a sandbox hides it
            status = os.stat(path)
        if status is not None:
            yield path, status
        if path == os.path.dirname(path):
            return
        path = os.path.dirname(path)


def refuse_planted(path: str) -> None:
    """Raise OSError where a file to be written is a link, fifo or socket that another user put there.

    Only root makes devices; a terminal may be another user's, who became this one in it (su).
    """
    trusted = {os.getuid(), *roots()}
    for _ in range(_MAX_LINKS):
        try:
            status = os.lstat(path)
        except OSError:
            return  # there is none yet
        if stat.S_IFMT(status.st_mode) not in _PLANTABLE:
            return
        if status.st_uid not in trusted:
            raise OSError(0, "it is a link or no regular file, and another user made it", path)
        if not stat.S_ISLNK(status.st_mode):
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid
    except OSError:
        return 0
