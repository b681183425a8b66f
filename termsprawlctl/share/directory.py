"""The private files of a share, as its own side makes, holds, finds and removes them.

    <temp root>/termsprawl-tui-<random>/    or, with a name, <data directory>/tui/<name>/
        endpoint.json, s                    as endpoint.py says
        about.json                          what other `tui` commands of this user have to know
        by                                  who revoked it, for a moment

The sharing process keeps a record lock on its endpoint.json. The system drops it with the
process, whatever ends that, and tells who holds it: so `revoke` finds the right process
and never one that merely got its number.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import signal
import socket
import struct
import sys
import time
import uuid
from dataclasses import asdict, dataclass

from ..base import jsontext
from ..base.errors import CtlError, UsageError
from ..base.files import (
    DIRECTORY_MODE,
    FILE_MODE,
    open_regular,
    private_directory,
    read_object,
    read_small,
    remove_quietly,
    write_atomically,
)
from ..base.layout import default_data_directory
from ..base.tempfiles import HeldDirectory, hold, sweep, temporary_root
from . import endpoint

PREFIX = "termsprawl-tui-"
_RANDOM_NAME = re.compile(re.escape(PREFIX) + "[0-9a-f]{12}")
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
ABOUT, BY = "about.json", "by"
# Counted in bytes; well below what sun_path holds anywhere (104 on macOS).
SOCKET_PATH_LIMIT = 100
BACKLOG = 32
REVOKE_WAIT_S = 5.0
POLL_S = 0.01
# struct flock of <fcntl.h>: type, whence, start, length, pid; BSD has the numbers first.
_BSD = sys.platform == "darwin" or "bsd" in sys.platform
_FLOCK = "qqihh" if _BSD else "hhqqi"


@dataclass(frozen=True)
class About:
    """What a share says of itself to the other `tui` commands of its user.

    `ends_at_s`: seconds of the epoch, 0 for no such time. `segment` and `keys` are sign.Mark's.
    """

    client: str
    client_pid: str
    tmux_socket: str
    segment: str
    keys: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    read_only: bool = False
    started_at_s: float = 0.0
    ends_at_s: float = 0.0


@dataclass(frozen=True)
class Found:
    """A share that lives: the path of its endpoint.json, its process, and what it says of itself."""

    path: str
    pid: int
    about: About | None


class ShareDirectory:
    """A new private directory with its listening socket and endpoint.json.

    What shares left that were killed is cleared away first. `path` is that of endpoint.json,
    `instance_id` and `generation` are new. Raises UsageError where the path is too long or a
    share of this name lives, CtlError where it cannot be made.
    """

    def __init__(self, temp_root: str | None = None, name: str | None = None) -> None:
        self.instance_id, self.generation = str(uuid.uuid4()), str(uuid.uuid4())
        self.token = secrets.token_hex(32)
        self._release = lambda: None
        self._make(temp_root, name)
        self.path = os.path.join(self.directory, endpoint.FILE_NAME)
        self._socket_path = os.path.join(self.directory, endpoint.SOCKET_NAME)
        self._descriptor: int | None = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._fill(name)
        except OSError as error:
            self.remove()
            raise CtlError(
                f"cannot share in {self.directory}: {error.strerror}.", "Check its permissions and its disk."
            ) from None
        except BaseException:
            self.remove()
            raise

    def _make(self, temp_root: str | None, name: str | None) -> None:
        try:
            if name is not None:
                self.directory, self._release = _named_directory(name)
                return
            root = temporary_root(os.environ) if temp_root is None else os.path.realpath(temp_root)
            held = HeldDirectory(PREFIX, _clear, root)
        except OSError as error:
            raise CtlError(
                f"cannot make a private directory: {error.strerror}.", "Set TMPDIR to a writable one."
            ) from None
        self.directory, self._release = held.path, held.release

    def _fill(self, name: str | None) -> None:
        # A group bit inherited from the temp root would not be exactly 0700.
        os.chmod(self.directory, DIRECTORY_MODE)
        size = len(os.fsencode(self._socket_path))
        if size >= SOCKET_PATH_LIMIT:
            raise UsageError(
                f"the socket's path {self._socket_path} has {size} bytes, {SOCKET_PATH_LIMIT - 1} are allowed.",
                "Set TMPDIR to a directory with a shorter path."
                if name is None
                else "Set TERMSPRAWL_DATA to a directory with a shorter path.",
            )
        self.listener.bind(self._socket_path)
        os.chmod(self._socket_path, FILE_MODE)
        self.listener.listen(BACKLOG)
        self._descriptor = open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.fchmod(self._descriptor, FILE_MODE)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        members = {
            "version": endpoint.VERSION,
            "instanceId": self.instance_id,
            "generation": self.generation,
            "token": self.token,
        }
        data = jsontext.encode(jsontext.compact(members)) + b"\n"
        if os.write(self._descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def describe(self, about: About) -> None:
        """Write down what the share is. Raises CtlError."""
        try:
            data = jsontext.encode(jsontext.compact(asdict(about))) + b"\n"
            write_atomically(os.path.join(self.directory, ABOUT), data)
        except OSError as error:
            raise CtlError(
                f"cannot write in {self.directory}: {error.strerror}.", "Check its permissions and its disk."
            ) from None

    def revoked_by(self) -> str:
        """Who asked for the end, as revoke() noted it; empty when nobody did."""
        try:
            return read_small(os.path.join(self.directory, BY), 100).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def close(self) -> None:
        """Nobody can connect any more, and nobody finds it; harmless when done twice."""
        self.listener.close()
        for name in (endpoint.SOCKET_NAME, endpoint.FILE_NAME):
            remove_quietly(os.path.join(self.directory, name))

    def remove(self) -> None:
        """close(), and remove the directory; harmless when done twice."""
        self.close()
        _remove_files(self.directory)
        if self._descriptor is not None:
            # Last: whoever waits for this lock finds the directory gone.
            os.close(self._descriptor)
            self._descriptor = None
        self._release()


def _named_directory(name: str):
    """A directory that is the same each time, and what gives it up. Raises UsageError, OSError."""
    path = os.path.dirname(named_path(name))
    private_directory(_named_root())
    private_directory(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not hold(descriptor, path):
        os.close(descriptor)
        raise UsageError(
            f"a share named {name} is running.",
            f"Revoke it first: termsprawlctl tui revoke {os.path.join(path, endpoint.FILE_NAME)}",
        )
    # Of one that was killed.
    _clear(path, keep=True)
    return path, lambda: _close_once(descriptor)


def _close_once(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _named_root() -> str:
    return os.path.join(default_data_directory(os.environ), "tui")


def named_path(name: str) -> str:
    """The path of the endpoint.json of the share with this name, whether it lives or not. Raises UsageError."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name} is no name for a share.", "Use letters, digits, `.`, `_` and `-`, at most 32.")
    return os.path.join(os.path.realpath(_named_root()), name, endpoint.FILE_NAME)


def owner_of(path: str) -> int | None:
    """The process that shares at `path`; None when there is none that does so in our way.

    Raises OSError when the file cannot be opened.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        question = [0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET] if _BSD else [fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0]
        answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(_FLOCK, *question)))
    finally:
        os.close(descriptor)
    kind, pid = (answer[3], answer[2]) if _BSD else (answer[0], answer[4])
    return None if kind == fcntl.F_UNLCK else pid


def about(folder: str) -> About | None:
    """What the share in this directory says of itself; None where it says nothing that can be understood."""
    try:
        value = read_object(os.path.join(folder, ABOUT))
        return About(**{**value, "keys": tuple(value["keys"]), "only": tuple(value["only"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def living() -> list[Found]:
    """All shares of this user that can be found: in the temp root, and those with a name."""
    found = []
    for folder in _folders():
        path = os.path.join(folder, endpoint.FILE_NAME)
        try:
            endpoint.load_file(path)
            pid = owner_of(path)
        except (OSError, UsageError):
            continue
        if pid:
            found.append(Found(path, pid, about(folder)))
    return found


def _folders() -> list[str]:
    folders = []
    with contextlib.suppress(OSError):
        root = temporary_root(os.environ)
        folders += [os.path.join(root, name) for name in sorted(os.listdir(root)) if _RANDOM_NAME.fullmatch(name)]
    with contextlib.suppress(OSError, UsageError):
        root = os.path.realpath(_named_root())
        folders += [os.path.join(root, name) for name in sorted(os.listdir(root)) if NAME.fullmatch(name)]
    return folders


def clear_dead() -> None:
    """Take away what shares left that were killed: files, and what they put into tmux. Never fails."""
    with contextlib.suppress(OSError):
        sweep(temporary_root(os.environ), _RANDOM_NAME, _clear, PREFIX)
    with contextlib.suppress(OSError, UsageError):
        sweep(os.path.realpath(_named_root()), NAME, _clear)


def revoke(path: str, by: str = "command") -> bool:
    """End the share at `path` and wait until it has gone.

    Returns False where its process was dead already and only its directory was removed.
    Raises EndpointError for a path that is no endpoint, CtlError where the share is not
    one of ours or does not end.
    """
    # Before anybody is signalled: a program that holds some other file of this name is no share.
    endpoint.load_file(path)
    try:
        pid = owner_of(path)
    except OSError as error:
        raise endpoint.EndpointError(f"nothing is shared at {path}: {error.strerror}.", "Share again.") from None
    if pid is None:
        _remove_dead(path)
        return False
    with contextlib.suppress(OSError):
        write_atomically(os.path.join(os.path.dirname(path), BY), by.encode())
    _signal(pid, signal.SIGTERM)
    end = time.monotonic() + REVOKE_WAIT_S
    # The directory goes last, after what was put into tmux.
    while os.path.exists(os.path.dirname(path)):
        if time.monotonic() > end:
            raise CtlError(f"the share's process {pid} was asked to end but still runs.", f"End it: kill -KILL {pid}")
        time.sleep(POLL_S)
    return True


def send_back(found: Found) -> None:
    """Have a share show what its client showed before the agent's last switch. Raises CtlError."""
    _signal(found.pid, signal.SIGUSR1)


def _signal(pid: int, number: signal.Signals) -> None:
    if pid <= 0:
        raise CtlError("the share runs where its process cannot be seen from here.", "Revoke it there.")
    try:
        os.kill(pid, number)
        # One that was suspended (Ctrl-Z) acts only once it runs again.
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
    except PermissionError:
        raise CtlError(f"the share's process {pid} cannot be signalled.", "Revoke it in its own terminal.") from None


def _remove_dead(path: str) -> None:
    target = endpoint.load(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(1.0)
        try:
            sock.connect(target.socket_path)
        except ConnectionRefusedError:
            _clear(os.path.dirname(path))
            return
        except OSError as error:
            raise CtlError(f"cannot tell who shares at {path}: {error.strerror}.", "Try again.") from None
    raise CtlError(f"the share at {path} belongs to another program.", "Use that program's own [Revoke].")


def _clear(folder: str, *, keep: bool = False) -> None:
    """Take away a dead share: what it put into tmux, its files, and the directory unless `keep`."""
    left = about(folder)
    if left is not None:
        from ..base.tmux import Tmux, find
        from .sharing.sign import Mark, Sign

        with contextlib.suppress(CtlError):
            Sign(Tmux(find(), "-S", left.tmux_socket), Mark(left.segment, left.keys)).take_away()
    _remove_files(folder, keep=keep)


def _remove_files(folder: str, *, keep: bool = False) -> None:
    for name in (endpoint.SOCKET_NAME, endpoint.FILE_NAME, ABOUT, BY):
        remove_quietly(os.path.join(folder, name))
    if not keep:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
