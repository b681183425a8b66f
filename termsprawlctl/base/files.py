"""Private files: bounded reads of regular files, atomic 0600 writes, 0700 directories."""

from __future__ import annotations

import os
import stat

from .errors import CtlError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
# Every file that this program reads whole is a few hundred bytes; the cap keeps a
# path that names something else (a log, a device) from filling memory.
MAX_SMALL_FILE_BYTES = 1 << 20


def read_small(path: str, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """The bytes of a regular file.

    Never blocks on a fifo or a device. Raises OSError with a filled-in strerror,
    also where the path is no regular file or the file is larger than max_bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(0, "it is a directory", path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file", path)
        chunks = []
        left = max_bytes + 1
        while left > 0:
            chunk = os.read(descriptor, min(left, 65536))
            if not chunk:
                break
            chunks.append(chunk)
            left -= len(chunk)
        if left <= 0:
            raise OSError(0, f"larger than {max_bytes} bytes", path)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def write_atomically(path: str, data: bytes, mode: int = FILE_MODE, before_replace=None, owner=None) -> None:
    """Replace the file at path in one step: readers see the old or the new bytes, whole.

    Its mode is `mode`, whatever the umask says; its owner this user or, where this process may give
    files away, `owner` (user id, group id). `before_replace()` is called at the last
    moment before that step; what it raises stops it. Raises OSError; the old file is then as
    it was and no temporary file is left. Signals that end a process wait until it is done;
    what SIGKILL leaves is removed by the next write of this file.
    """
    from .tempfiles import TEMPORARY_FILE, sweep

    directory, name = os.path.split(path)
    with _Undisturbed():
        sweep(directory, TEMPORARY_FILE, os.unlink, f".{name}.")
        temporary, descriptor, lock = _new_temporary(directory, name, mode)
        try:
            try:
                if owner is not None:
                    _give(descriptor, owner)
                os.fchmod(descriptor, mode)
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if before_replace is not None:
                before_replace()
            os.replace(temporary, path)
        except BaseException:
            remove_quietly(temporary)
            raise
        finally:
            close_quietly(lock)


def _give(descriptor: int, owner: tuple[int, int]) -> None:
    try:
        os.fchown(descriptor, *owner)
    except OSError:
        return  # only root gives files away, and not on every file system


def _new_temporary(directory: str, name: str, mode: int) -> tuple[str, int, int]:
    """Path and descriptor of a new file, and a descriptor that keeps it locked after the other was closed."""
    from .tempfiles import hold

    while True:
        temporary = os.path.join(directory, f".{name}.{os.urandom(8).hex()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            if hold(descriptor, temporary):
                return temporary, descriptor, os.dup(descriptor)
        except BaseException:
            os.close(descriptor)
            remove_quietly(temporary)
            raise
        os.close(descriptor)


class _Undisturbed:
    """While it is held, signals that would end the process (this thread of it) have to wait."""

    def __enter__(self) -> None:
        import signal

        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ending)

    def __exit__(self, *_) -> None:
        import signal

        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def write_output(path: str, data: bytes) -> None:
    """Write the user's own output: as readable as their other files, a regular file in one step.

    A symlink is followed; a device or a fifo is written to, not replaced. Raises OSError, also
    where another user put one of these there.
    """
    from .ownership import refuse_planted

    refuse_planted(path)
    # By its name: what the links of /dev/stdout lead to may be a pipe, which has no path.
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            stream.write(data)
    else:
        write_atomically(os.path.realpath(path), data, usual_mode())


def usual_mode() -> int:
    """The mode that a new file of the user's own gets."""
    mask = os.umask(0o077)  # asking is setting; until it is set back, another thread's files are private
    os.umask(mask)
    return 0o666 & ~mask


def private_directory(path: str) -> str:
    """Make a directory of our own 0700, its missing parents too; return the path.

    One that others may enter is narrowed to 0700: only for directories that nobody
    else has a use for. Raises OSError when it cannot be made, is a link or no directory,
    or belongs to another user.
    """
    from .ownership import keep_to_ourselves

    _make_private(path)
    keep_to_ourselves(path, DIRECTORY_MODE)
    return path


def named_directory(path: str) -> str:
    """Make a directory that a user named, 0700 where it is missing; return the path.

    The mode of one that exists stays as it is, and it may be a link. Raises OSError when it
    cannot be made, is no directory, belongs to another user, or when other users may write
    to it or replace a directory above it.
    """
    from .ownership import refuse_another_users, refuse_foreign_way

    _make_private(path)
    status = os.stat(path)
    refuse_another_users(status, path)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        # Where each user has a group, and a umask to share with it, directories are made so.
        raise OSError(0, "other users may write to it, which `chmod go-w` ends", path)
    refuse_foreign_way(path)
    return path


def _make_private(path: str) -> None:
    # os.makedirs gives its mode to the last directory only.
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        _make_private(parent)
    try:
        os.mkdir(path, DIRECTORY_MODE)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


class Explained:
    """A `with` block whose OSError becomes a CtlError: `message`, the reason and the file, then `remedy`."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self._message = message
        self._remedy = remedy

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _kind, error, _trace) -> None:
        if isinstance(error, OSError):
            file = error.filename2 or error.filename  # where something could not be put, of two
            where = f" ({file})" if file else ""
            raise CtlError(f"{self._message}: {error.strerror or type(error).__name__}{where}.", self._remedy) from None


def remove_quietly(path: str) -> None:
    """Remove a file that may be gone already."""
    try:
        os.unlink(path)
    except OSError:
        return


def close_quietly(descriptor: int) -> None:
    """Close a descriptor that nothing was written through."""
    try:
        os.close(descriptor)
    except OSError:
        return
