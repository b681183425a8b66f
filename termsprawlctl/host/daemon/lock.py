"""One server per data directory, the app included.

Two hosts are kept apart by the kernel: a lock on `host.flock` that lives as long as its
process, and in which the process says who it is. `server.lock` and `endpoint.json` carry
what the app looks at, too.
"""

from __future__ import annotations

import errno
import json
import os
import time

from ...app import transport
from ...app.discovery import Target, Unavailable, parse_endpoint
from ...base.errors import CtlError
from ...base.files import (
    Explained,
    lock,
    named_directory,
    private_directory,
    read_object,
    remove_quietly,
    write_atomically,
)
from ...base.layout import DataPaths

# Whoever only asks whether a host runs holds the lock for a moment.
FLOCK_PATIENCE_S = 0.3
# A server writes its endpoint right after its lock; one that has not by now never will.
STARTING_S = 30.0
ASK_DEADLINE_S = 5.0


class Occupied(CtlError):
    """Another server runs on this data directory."""


class ServerLock:
    """Held by a running host. `instance_id` is the uuid that the files carry."""

    def __init__(self, paths: DataPaths, instance_id: str) -> None:
        self._paths = paths
        self.instance_id = instance_id
        self._descriptor: int | None = None
        self._place: tuple | None = None  # device and inode of agent-tools

    def acquire(self) -> None:
        """Take the directory. Raises Occupied, or CtlError when the directory cannot be used."""
        paths = self._paths
        with Explained(f"cannot use the data directory {paths.root}", "Choose another one with --data DIR."):
            named_directory(paths.root)
            for directory in (paths.agent_tools, paths.sessions, paths.tmux_sockets):
                private_directory(directory)
            descriptor = os.open(paths.flock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._acquire(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor

    def publish(self, url: str) -> None:
        """Tell clients where the server listens. Raises CtlError."""
        content = {"url": url, "instanceId": self.instance_id}
        with Explained(f"cannot use the data directory {self._paths.root}"):
            write_atomically(self._paths.endpoint, json.dumps(content).encode())

    def is_ours(self) -> bool:
        """Whether the directory still is this server's: nothing shows that it is not."""
        return not any(self._is_lost(path) for path in (self._paths.endpoint, self._paths.server_lock))

    def directory_is_gone(self) -> bool:
        """Whether the directory was deleted, or is another one by now."""
        try:
            return _identity(self._paths.agent_tools) != self._place
        except OSError:
            return True

    def release(self) -> None:
        """Give the directory back; files that another server has written by now stay."""
        if self._descriptor is None:
            return
        for path in (self._paths.endpoint, self._paths.server_lock):
            if read_object(path, missing={}).get("instanceId") == self.instance_id:
                remove_quietly(path)
        os.close(self._descriptor)
        self._descriptor = None

    def _acquire(self, descriptor: int) -> None:
        paths = self._paths
        if not _locked(descriptor, FLOCK_PATIENCE_S):
            raise Occupied(_occupied_text(paths, holder(paths)))
        refuse_foreign_server(paths)
        owner = json.dumps({"pid": os.getpid(), "instanceId": self.instance_id}).encode()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner, 0)
        write_atomically(paths.server_lock, owner)
        self._place = _identity(paths.agent_tools)

    def _is_lost(self, path: str) -> bool:
        try:
            content = read_object(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # no descriptor left, for example: that shows nothing
        except ValueError:
            return True
        return content.get("instanceId") != self.instance_id


def is_held(paths: DataPaths) -> bool:
    """Whether an embedded host runs on the directory now. Raises CtlError when that cannot be seen."""
    try:
        descriptor = os.open(paths.flock, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise CtlError(
            f"cannot look into the data directory {paths.root}: {error.strerror}.",
            "Run this as the user whose host it is, or name another directory with --data DIR.",
        ) from None
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def holder(paths: DataPaths) -> dict | None:
    """`{"pid", "instanceId"}` of the host that holds, or last held, the directory; None when unknown."""
    return _owner(read_object(paths.flock, missing={}))


def refuse_foreign_server(paths: DataPaths) -> None:
    """Raise Occupied when server.lock's live pid may be the app's; the caller holds host.flock.

    It may also be a number that the system has given to somebody else since a crash:
    asking the endpoint shows it, without a token, since a server of ours refuses an
    unknown one in known words.
    """
    owner = _owner(read_object(paths.server_lock, missing={}))
    if owner is None or owner["pid"] == os.getpid() or not _is_alive(owner["pid"]):
        return
    try:
        port, request_target = parse_endpoint(read_object(paths.endpoint, missing={}).get("url"))
    except Unavailable:
        if _age_s(paths.server_lock) < STARTING_S:
            raise Occupied(_occupied_text(paths, owner)) from None
        return
    stranger = Target(port, request_target, "0" * 64, paths.endpoint)
    answer = transport.call_target(stranger, "session_info", deadline_s=ASK_DEADLINE_S)
    # No answer in time may be a server that is busy; no server, or one of another kind, is proof.
    if answer["ok"] or not answer["error"].startswith(transport.UNAVAILABLE) or transport.is_late(answer):
        raise Occupied(_occupied_text(paths, owner))


def _owner(content: dict) -> dict | None:
    pid = content.get("pid")
    if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0:
        return {"pid": pid, "instanceId": content.get("instanceId")}
    return None


def _occupied_text(paths: DataPaths, owner: dict | None) -> str:
    who = f"pid {owner['pid']}" if owner else "another process"
    return (
        f"a server runs on {paths.root} already ({who}). Use it, end it with `termsprawlctl host stop`, or choose "
        f"another directory with --data DIR. If that process is no terminal app or host, remove {paths.server_lock}."
    )


def _identity(path: str) -> tuple:
    status = os.stat(path)
    return (status.st_dev, status.st_ino)


def _age_s(path: str) -> float:
    try:
        # A time in the future: the clock was set back since, so the file may be of any age.
        return abs(time.time() - os.stat(path).st_mtime)
    except OSError:
        return 0.0


def _locked(descriptor: int, patience_s: float = 0.0) -> bool:
    locked = lock(descriptor, patience_s)
    if locked is None:
        raise OSError(errno.ENOLCK, "its file system has no locks")
    return locked


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except PermissionError:
        return True
    return True
