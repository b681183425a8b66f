"""Files: bounded reads of regular files, writes in one step, private directories, locks."""

from __future__ import annotations

import os
import stat

from .errors import CtlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
# Every file that this program reads whole is a few hundred bytes; the cap keeps a
# path that names something else (a log, a device) from filling memory.
MAX_SMALL_FILE_BYTES = 1 << 20
LOCK_RETRY_S = 0.02
# Never blocks on a fifo or a device, and none of them becomes our terminal.
_CAREFULLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_RAISE: Any = object()


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = FILE_MODE, folder: int | None = None) -> int:
    """A descriptor of a regular file: `flags`, `mode` as for os.open(), `folder` an open directory to start in.

    Raises OSError with a filled-in strerror, also where it is no regular file.
    """
    descriptor = os.open(path, flags | _CAREFULLY, mode, dir_fd=folder)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise OSError(0, "it is a directory", path)
        if not stat.S_ISREG(kind):
            raise OSError(0, "not a regular file", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_small(path: str, max_bytes: int = MAX_SMALL_FILE_BYTES, *, exact: bool = False) -> bytes:
    """The bytes of a regular file. `exact`: no part of the path may be a link by now.

    Raises OSError with a filled-in strerror, also where the path is no regular file or the
    file is larger than max_bytes.
    """
    descriptor = _open_exact(path) if exact else open_regular(path)
    try:
        return read_open(descriptor, path, max_bytes)
    finally:
        os.close(descriptor)


def read_open(descriptor: int, path: str, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """The bytes from here on of an open regular file, which `path` names in errors. Raises OSError as read_small()."""
    chunks: list[bytes] = []
    left = max_bytes + 1
    while left > 0:
        chunk = os.read(descriptor, min(left, 65536))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        left -= len(chunk)
    raise OSError(0, f"larger than {max_bytes} bytes", path)


def last_lines(path: str, max_bytes: int) -> list[bytes]:
    """The whole lines within the last bytes of a regular file, the last as far as it is written; [] if unreadable."""
    try:
        offset = max(0, os.stat(path).st_size - max_bytes)
        lines = read_part(path, offset, max_bytes).split(b"\n")
    except OSError:
        return []
    return lines[1 if offset else 0 :]


def read_part(path: str, offset: int, max_bytes: int, flags: int = 0) -> bytes:
    """At most so many bytes of a regular file from an offset on. Raises OSError."""
    descriptor = open_regular(path, os.O_RDONLY | flags)
    try:
        chunks = []
        while max_bytes > 0:
            chunk = os.pread(descriptor, max_bytes, offset)
            if not chunk:
                break
            chunks.append(chunk)
            max_bytes -= len(chunk)
            offset += len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def read_object(path: str, max_bytes: int = MAX_SMALL_FILE_BYTES, *, missing: Any = _RAISE) -> dict[str, Any]:
    """The JSON object in a small file.

    `missing` is returned, where it is given, for a file that is not there, cannot be read or
    holds no object. Else raises OSError, also ValueError that says why it is none.
    """
    from . import jsontext

    try:
        try:
            value = jsontext.loads(read_small(path, max_bytes))
        except ValueError as error:  # also a path with a NUL byte
            raise ValueError(f"is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise ValueError("is not a JSON object")  # noqa: TRY004 - as for text that is no JSON
    except (OSError, ValueError):
        if missing is _RAISE:
            raise
        found: dict[str, Any] = missing
        return found
    return value


def is_inside(path: str, folder: str) -> bool:
    """Whether a path leads to something in a folder, or to the folder itself, once all links are followed."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))


def lock(descriptor: int, timeout_s: float = 0.0) -> bool | None:
    """Lock an open file or directory for ourselves (flock), until all copies of the descriptor are closed.

    Returns False where another has it all that time, None where the file system knows no locks.
    """
    import fcntl

    from .waiting import until

    def locked() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        return until(locked, timeout_s, LOCK_RETRY_S)
    except OSError:
        return None


def write_atomically(
    path: str,
    data: bytes,
    mode: int = FILE_MODE,
    before_replace: Callable[[], object] | None = None,
    owner: tuple[int, int] | None = None,
    *,
    exact: bool = False,
    is_synced: bool = True,
) -> os.stat_result:
    """Replace the file at path in one step: readers see the old or the new bytes, whole. Returns its status.

    Its mode is `mode`, whatever the umask says; its owner this user or, where this process may give
    files away, `owner` (user id, group id). `before_replace()` is called at the last
    moment before that step; what it raises stops it. `exact`: no directory of the path may be
    a link by now; a link in the file's own place is replaced in any case. `is_synced`: it is on the
    disk first, so that a power cut leaves one of the two, too. Raises OSError; the old file is then as
    it was and no temporary file is left. Signals that end a process wait until it is done;
    what SIGKILL leaves is removed by the next write of this file.
    """
    from .ownership import open_directory
    from .tempfiles import TEMPORARY_FILE, sweep

    directory, name = os.path.split(path)
    with _Undisturbed():
        # All happens in the directory as it is now: another of its name may take its place meanwhile.
        folder = open_directory(directory, exact=exact)
        try:
            sweep("", TEMPORARY_FILE, lambda dead: os.unlink(dead, dir_fd=folder), f".{name}.", folder)
            temporary, descriptor, lock_descriptor = _new_temporary(folder, name, mode)
            try:
                try:
                    if owner is not None:
                        _give(descriptor, owner)
                    os.fchmod(descriptor, mode)
                    write_all(descriptor, data)
                    if is_synced:
                        os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                if before_replace is not None:
                    before_replace()
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                return os.fstat(lock_descriptor)
            except BaseException:
                remove_quietly(temporary, folder)
                raise
            finally:
                close_quietly(lock_descriptor)
        except OSError as error:
            error.filename, error.filename2 = path, None  # not the names in the open directory
            raise
        finally:
            close_quietly(folder)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _open_exact(path: str) -> int:
    from .ownership import open_directory

    directory, name = os.path.split(path)
    folder = open_directory(directory, exact=True)
    try:
        return open_regular(name, os.O_RDONLY | os.O_NOFOLLOW, folder=folder)
    finally:
        os.close(folder)


def _give(descriptor: int, owner: tuple[int, int]) -> None:
    try:
        os.fchown(descriptor, *owner)
    except OSError:
        return  # only root gives files away, and not on every file system


def _new_temporary(folder: int, name: str, mode: int) -> tuple[str, int, int]:
    """Name and descriptor of a new file, and a descriptor that keeps it locked after the other was closed."""
    from .tempfiles import hold

    while True:
        temporary = f".{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, mode, dir_fd=folder)
        try:
            if hold(descriptor, temporary, folder):
                return temporary, descriptor, os.dup(descriptor)
        except BaseException:
            os.close(descriptor)
            remove_quietly(temporary, folder)
            raise
        os.close(descriptor)


class _Undisturbed:
    """While it is held, signals that would end the process (this thread of it) have to wait."""

    def __enter__(self) -> None:
        import signal

        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ending)

    def __exit__(self, *_: object) -> None:
        import signal

        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def write_output(path: str, data: bytes) -> None:
    """Write the user's own output: as readable as their other files, a regular file in one step.

    A symlink is followed; a device or a fifo is written to, not replaced. Raises OSError, also
    where another user put one of these there, or does so meanwhile.
    """
    from .ownership import is_descriptor, is_planted, open_directory, real_path

    real = real_path(path)
    if is_descriptor(real):
        with open(real, "wb") as stream:
            stream.write(data)
        return
    try:
        is_file = stat.S_ISREG(os.lstat(real).st_mode)
    except FileNotFoundError:
        is_file = True
    if is_file or os.path.isdir(real):
        write_atomically(real, data, usual_mode(), exact=True)
        return
    folder = open_directory(os.path.dirname(real), exact=True)
    try:
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(real), flags, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) or is_planted(status):
            raise OSError(0, "another user put it in the place of another file meanwhile", path)
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


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

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            file = error.filename2 or error.filename  # where something could not be put, of two
            where = f" ({file})" if file else ""
            raise CtlError(f"{self._message}: {error.strerror or type(error).__name__}{where}.", self._remedy) from None


def remove_quietly(path: str, folder: int | None = None) -> None:
    """Remove a file that may be gone already; `folder`: an open directory that the path starts in."""
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        return


def close_quietly(descriptor: int) -> None:
    """Close a descriptor that nothing was written through."""
    try:
        os.close(descriptor)
    except OSError:
        return
