"""What a killed process leaves behind, told apart from what is in use, so that the next one can remove it.

Whoever makes a temporary file or directory holds a lock on it (flock), and so does each
process that inherits the descriptor. The system drops the lock with the last of them,
whatever ended it. Where a file system knows no locks nothing is removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re

from .files import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A sweep takes the name away between another's mkdir() and its lock: then that one tries again.
MAX_TRIES = 100
_RANDOM_BYTES = 6
# Of any file that is written in one step: a dot, its name, a dot, 16 hex digits.
TEMPORARY_FILE = re.compile(r"\..+\.[0-9a-f]{16}", re.DOTALL)


def hold(descriptor: int, path: str, folder: int | None = None) -> bool:
    """Lock the open file or directory that was made at `path`, which starts in the open directory `folder`.

    Returns False where somebody has removed it meanwhile as one that nobody holds, or will
    at once.
    """
    locked = lock(descriptor)
    # Where there are no locks nobody removes it either.
    return locked is None or (locked and _is_at(descriptor, path, folder))


def sweep(
    folder: str,
    name: re.Pattern[str],
    remove: Callable[[str], object],
    beginning: str = "",
    start: int | None = None,
) -> None:
    """Call remove(path) for all of our own in `folder` whose whole name matches and that nobody holds. Never fails.

    `beginning`: only for those whose name begins so. A pattern for each of many files would stay in memory for each.
    `start`: an open directory that the paths start in.
    """
    with contextlib.suppress(OSError):
        for found in _names(folder or os.curdir, start):
            if found.startswith(beginning) and name.fullmatch(found):
                with contextlib.suppress(OSError):
                    _remove_dead(os.path.join(folder, found), remove, start)


def _names(folder: str, start: int | None) -> list[str]:
    if start is None:
        return os.listdir(folder)
    # One that was opened only to work in cannot be listed.
    listed = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=start)
    try:
        return os.listdir(listed)
    finally:
        os.close(listed)


def _remove_dead(path: str, remove: Callable[[str], object], start: int | None) -> None:
    # Not opened for writing, which no directory can be, and never through a link.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=start)
    try:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid()
        # Else it is in use, or was moved into its place while we opened it.
        if is_ours and lock(descriptor) and _is_at(descriptor, path, start):
            remove(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: str, folder: int | None = None) -> bool:
    ours = os.fstat(descriptor)
    try:
        there = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def temporary_root(environment: Mapping[str, str]) -> str:
    """The real path of the place for temporary files. Raises FileNotFoundError where there is none.

    It is chosen as the standard library does it, but looked at each time, and without a
    file for a trial, which a kill would leave there.
    """
    named = [environment.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    for folder in [*named, "/tmp", "/var/tmp", "/usr/tmp", os.curdir]:  # noqa: S108 - random names, 0700
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.realpath(folder)
    raise FileNotFoundError(errno.ENOENT, "there is no writable directory for temporary files")


def new_directory(root: str, prefix: str) -> str:
    """The path of a new private directory, 0700 whatever the umask, that is nobody's to sweep. Raises OSError."""
    for _ in range(MAX_TRIES):
        path = os.path.join(root, prefix + os.urandom(_RANDOM_BYTES).hex())
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        os.chmod(path, 0o700)
        return path
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), root)


def sweep_directories(prefix: str, remove: Callable[[str], object], root: str) -> None:
    """Call remove(path) for each HeldDirectory of this prefix that nobody holds any more. Never fails."""
    sweep(root, re.compile(f"{re.escape(prefix)}[0-9a-f]{{{2 * _RANDOM_BYTES}}}"), remove)


class HeldDirectory:
    """A new private temporary directory, 0700, for as long as `descriptor` is open here or in a child.

    The name is `prefix` and something random; of the others like it, those that nobody
    holds any more are passed to remove(path) first. `root` is the place, by default that for
    temporary files. Raises OSError.
    """

    __slots__ = ("descriptor", "path")

    def __init__(self, prefix: str, remove: Callable[[str], object], root: str | None = None) -> None:
        root = temporary_root(os.environ) if root is None else root
        sweep_directories(prefix, remove, root)
        self.descriptor = -1
        for _ in range(MAX_TRIES):
            self.path = os.path.join(root, prefix + os.urandom(_RANDOM_BYTES).hex())
            try:
                os.mkdir(self.path, 0o700)
                os.chmod(self.path, 0o700)  # a umask may have taken our own rights, too
                self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                if hold(self.descriptor, self.path):
                    return
            except FileExistsError:
                continue
            except FileNotFoundError:
                if not os.path.isdir(root):
                    raise
                # else it was swept already
            except BaseException:
                with contextlib.suppress(OSError):
                    os.rmdir(self.path)
                self.release()
                raise
            self.release()
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), self.path)

    def release(self) -> None:
        """Hold it no longer; harmless when done twice. Whoever does that has removed it, or leaves it to others."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
