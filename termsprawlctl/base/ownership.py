"""Whose files and directories these are, and who else could put others in their place."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_MAX_LINKS = 40  # as many as the system itself follows
_PLANTABLE = (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK)
# Linux needs no permission to read it so.
_ONLY_TO_WORK_IN = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


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
        if others_may_write(status) and not status.st_mode & stat.S_ISVTX:
            raise OSError(0, f"other users may write to {above} above it", path)


def others_may_add_above(path: str) -> bool:
    """Whether another user may put files into this directory, which may be missing, or one above it, sticky or not."""
    trusted = _trusted()
    return any(status.st_uid not in trusted or others_may_write(status) for _, status in _way(os.path.realpath(path)))


def others_may_write(status: os.stat_result) -> bool:
    """Whether more than its owner may write to a directory: everybody, or a group that is not root's nor our own.

    Many systems give each user a group, and a umask to share with it; who is in such a group is not looked up.
    """
    is_foreign = status.st_gid not in (0, os.getgid())
    return bool(status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and is_foreign))


def _trusted() -> set[int]:
    return {os.getuid(), _owner(os.environ.get("HOME") or "/"), *roots()}


def roots() -> set[int]:
    """The user ids under which root appears.

    In a user namespace (a rootless container, a sandbox) it may have no number: the system then
    shows it, and all others without one, under one that says nothing else. `/proc/sys` is always
    root's; so is `/`, unless the namespace has a file system of its own.
    """
    return {0, _owner("/"), _owner("/proc/sys")}


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
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


def peer_of(connected: socket.socket) -> tuple[int, int] | None:
    """(process id, user id) of who listens at the other end of a local socket; None where the system does not tell."""
    import socket
    import struct

    if not hasattr(socket, "SO_PEERCRED"):
        return None
    pid, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def server_of(path: str) -> tuple[int, int] | None:
    """Like peer_of() for whoever listens on the local socket at `path`.

    Raises ConnectionRefusedError where nobody does, another OSError where that cannot be told.
    """
    import socket

    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)  # a server that stands still has a queue all the same, unless it is full
        client.connect(path)
        return peer_of(client)


def is_planted(status: os.stat_result) -> bool:
    """Whether it is a link, fifo or socket of another user.

    Only root makes devices; a terminal may be another user's, who became this one in it (su).
    """
    return stat.S_IFMT(status.st_mode) in _PLANTABLE and status.st_uid not in {os.getuid(), *roots()}


def real_path(path: str) -> str:
    """Where a path leads, like os.path.realpath(), for a file that is to be written or changed.

    Raises OSError where that is, or the path leads through, a link that another user may have put
    there, also where it is another user's fifo or socket. A name of one of our own
    descriptors (see is_descriptor) stays as it is.
    """
    done, links = "/", 0
    left = os.path.join(os.getcwd(), path).split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", os.curdir, os.pardir):
            done = os.path.dirname(done) if name == os.pardir else done
            continue
        here = os.path.join(done, name)
        target = None if is_descriptor(here) else _target(here, path, is_last=not any(left))
        if target is None:
            done = here
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        done = "/" if target.startswith("/") else done
        left += target.split("/")[::-1]
    return done


def is_descriptor(path: str) -> bool:
    """Whether the path is a process's name for one of its descriptors, such as /dev/stdout leads to on Linux.

    What the system shows as its target may be a pipe, which has no path.
    """
    folder, name = os.path.split(path)
    return folder.startswith("/proc/") and folder.endswith("/fd") and name.isdigit()


def open_directory(path: str, *, exact: bool = False) -> int:
    """A descriptor for work in this directory, whatever takes its place. "" is the current one.

    `exact`: the path is absolute, and no part of it may be a link. Raises OSError.
    """
    if not exact:
        return os.open(path or os.curdir, _ONLY_TO_WORK_IN)
    descriptor = os.open("/", _ONLY_TO_WORK_IN)
    for name in filter(None, path.split("/")):
        above = descriptor
        try:
            descriptor = os.open(name, _ONLY_TO_WORK_IN | os.O_NOFOLLOW, dir_fd=above)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(above)
    return descriptor


def _target(path: str, whole: str, *, is_last: bool) -> str | None:
    """What a link says; None where it is none. Raises OSError where it is not to be followed."""
    if hasattr(os, "O_PATH"):  # so that what is read is what was looked at
        try:
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None  # there is none yet, or it will be said when it is written
        try:
            status = os.fstat(descriptor)
            target = os.readlink("", dir_fd=descriptor) if stat.S_ISLNK(status.st_mode) else None
        finally:
            os.close(descriptor)
    else:
        try:
            status = os.lstat(path)
        except OSError:
            return None
        target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
    if is_planted(status) and (is_last or (target is not None and not _is_of_its_folder(status, path))):
        raise OSError(0, "it is a link or no regular file, and another user made it", whole)
    return target


def _is_of_its_folder(link: os.stat_result, path: str) -> bool:
    """Whether a link was made by the owner of the directory that it is in, where nobody else can make one."""
    folder = os.stat(os.path.dirname(path))
    return link.st_uid == folder.st_uid and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid
    except OSError:
        return 0
