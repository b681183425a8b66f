"""The private files of a share, as its own side makes, holds and removes them.

The sharing process keeps a record lock on its endpoint.json. The system drops it with the
process, whatever ends that, and tells who holds it: so `revoke` finds the right process
and never one that merely got its number.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import signal
import socket
import struct
import sys
import time
import uuid

from ..base import jsontext
from ..base.errors import CtlError, UsageError
from ..base.files import DIRECTORY_MODE, FILE_MODE, remove_quietly
from ..base.tempfiles import HeldDirectory, temporary_root
from . import endpoint

PREFIX = "termsprawl-tui-"
# Counted in bytes; well below what sun_path holds anywhere (104 on macOS).
SOCKET_PATH_LIMIT = 100
BACKLOG = 32
REVOKE_WAIT_S = 5.0
POLL_S = 0.01
# struct flock of <fcntl.h>: type, whence, start, length, pid; BSD has the numbers first.
_BSD = sys.platform == "darwin" or "bsd" in sys.platform
_FLOCK = "qqihh" if _BSD else "hhqqi"


class Place:
    """A new private directory with its listening socket and endpoint.json.

    Directories of shares that were killed are removed first.
    `identity` is (instanceId, generation), `path` that of endpoint.json. Raises
    UsageError where the temp root's path is too long, CtlError where it cannot be made.
    """

    def __init__(self, temp_root: str | None = None) -> None:
        self.identity = (str(uuid.uuid4()), str(uuid.uuid4()))
        self.token = secrets.token_hex(32)
        try:
            root = temporary_root(os.environ) if temp_root is None else os.path.realpath(temp_root)
            self._held = HeldDirectory(PREFIX, _remove_files, root)
        except OSError as error:
            raise CtlError(
                f"cannot make a private directory: {error.strerror}.", "Set TMPDIR to a writable one."
            ) from None
        self.directory = self._held.path
        self.path = os.path.join(self.directory, endpoint.FILE_NAME)
        self._socket_path = os.path.join(self.directory, endpoint.SOCKET_NAME)
        self._descriptor: int | None = None
        self.listener = None
        try:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._fill()
        except OSError as error:
            self.remove()
            raise CtlError(f"cannot share in {self.directory}: {error.strerror}.") from None
        except BaseException:
            self.remove()
            raise

    def _fill(self) -> None:
        # A group bit inherited from the temp root would not be exactly 0700.
        os.chmod(self.directory, DIRECTORY_MODE)
        size = len(os.fsencode(self._socket_path))
        if size >= SOCKET_PATH_LIMIT:
            raise UsageError(
                f"the socket's path {self._socket_path} has {size} bytes, {SOCKET_PATH_LIMIT - 1} are allowed.",
                "Set TMPDIR to a directory with a shorter path.",
            )
        self.listener.bind(self._socket_path)
        os.chmod(self._socket_path, FILE_MODE)
        self.listener.listen(BACKLOG)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        os.fchmod(self._descriptor, FILE_MODE)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        instance_id, generation = self.identity
        members = {
            "version": endpoint.VERSION,
            "instanceId": instance_id,
            "generation": generation,
            "token": self.token,
        }
        data = jsontext.encode(jsontext.compact(members)) + b"\n"
        if os.write(self._descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def remove(self) -> None:
        """Close the socket and remove the directory; harmless when done twice."""
        if self.listener is not None:
            self.listener.close()
        _remove_files(self.directory)
        if self._descriptor is not None:
            # Last: whoever waits for this lock finds the directory gone.
            os.close(self._descriptor)
            self._descriptor = None
        self._held.release()


def owner_of(path: str) -> int | None:
    """The process that shares at `path`; None when there is none that does so in our way.

    Raises OSError when the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        question = [0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET] if _BSD else [fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0]
        answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(_FLOCK, *question)))
    finally:
        os.close(descriptor)
    kind, pid = (answer[3], answer[2]) if _BSD else (answer[0], answer[4])
    return None if kind == fcntl.F_UNLCK else pid


def wait_for_owner(path: str) -> None:
    """Return when nobody shares at `path` any more, however that came about. Blocks."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
    except OSError:
        return
    finally:
        os.close(descriptor)


def revoke(path: str) -> bool:
    """End the share at `path` and wait until it has gone.

    Returns False where its process was dead already and only its directory was removed.
    Raises EndpointError for a path that is no endpoint, CtlError where the share is not
    one of ours or does not end.
    """
    # Before anybody is signalled: a program that holds some other file of this name is no share.
    directory = endpoint.load_file(path)[0]
    try:
        pid = owner_of(path)
    except OSError as error:
        raise endpoint.EndpointError(f"nothing is shared at {path}: {error.strerror}.") from None
    if pid is None:
        _remove_dead(path, directory)
        return False
    if pid <= 0:
        raise CtlError("the share runs where its process cannot be seen from here.", "Revoke it there.")
    try:
        os.kill(pid, signal.SIGTERM)
        # One that was suspended (Ctrl-Z) ends only once it runs again.
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise CtlError(f"the share's process {pid} cannot be signalled.", "Revoke it in its own terminal.") from None
    end = time.monotonic() + REVOKE_WAIT_S
    while os.path.exists(path):
        if time.monotonic() > end:
            raise CtlError(f"the share's process {pid} was told to end but still runs.", f"End it: kill -KILL {pid}")
        time.sleep(POLL_S)
    return True


def _remove_dead(path: str, directory: str) -> None:
    target = endpoint.load(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(1.0)
        try:
            sock.connect(target.socket_path)
        except ConnectionRefusedError:
            _remove_files(directory)
            return
        except OSError as error:
            raise CtlError(f"cannot tell who shares at {path}: {error.strerror}.") from None
    raise CtlError(f"the share at {path} belongs to another program.", "Use that program's own [Revoke].")


def _remove_files(directory: str) -> None:
    for name in (endpoint.SOCKET_NAME, endpoint.FILE_NAME):
        remove_quietly(os.path.join(directory, name))
    try:
        os.rmdir(directory)
    except OSError:
        return
