"""One server per data directory, the app included.

Two hosts are kept apart by the kernel: a lock on `host.flock` that lives as long as its
process. `server.lock` and `endpoint.json` carry what the app looks at, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os

from .. import jsontext
from ..errors import CtlError
from ..files import named_directory, private_directory, read_small, remove_quietly, write_atomically
from ..layout import DataPaths
from ..session import transport


class Occupied(CtlError):
    """Another server runs on this data directory."""


class ServerLock:
    """Held by a running host. `instance_id` is the uuid that both files carry."""

    def __init__(self, paths: DataPaths, instance_id: str) -> None:
        self._paths = paths
        self.instance_id = instance_id
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the directory. Raises Occupied, or CtlError when the directory cannot be used."""
        paths = self._paths
        try:
            named_directory(paths.root)
            for directory in (paths.agent_tools, paths.sessions, paths.tmux_sockets):
                private_directory(directory)
            descriptor = os.open(paths.flock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CtlError(
                f"cannot use the data directory {paths.root}: {error.strerror}.", "Choose another one with --data DIR."
            ) from None
        if not _try_flock(descriptor):
            os.close(descriptor)
            raise Occupied(_occupied_text(paths, read_owner(paths)))
        try:
            self._refuse_foreign_server()
            owner = {"pid": os.getpid(), "instanceId": self.instance_id}
            write_atomically(paths.server_lock, json.dumps(owner).encode())
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def publish(self, url: str) -> None:
        """Tell clients where the server listens."""
        content = {"url": url, "instanceId": self.instance_id}
        write_atomically(self._paths.endpoint, json.dumps(content).encode())

    def is_ours(self) -> bool:
        """Whether the directory still is this server's: both files carry its instanceId."""
        paths = self._paths
        return all(
            read_object(path).get("instanceId") == self.instance_id for path in (paths.endpoint, paths.server_lock)
        )

    def release(self) -> None:
        """Give the directory back; files that another server has written by now stay."""
        for path in (self._paths.endpoint, self._paths.server_lock):
            if read_object(path).get("instanceId") == self.instance_id:
                remove_quietly(path)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _refuse_foreign_server(self) -> None:
        # Nobody holds host.flock, so a live pid in server.lock is the app, or a number
        # that the system has given to somebody else since a crash.
        owner = read_owner(self._paths)
        if owner is None or owner["pid"] == os.getpid() or not _is_alive(owner["pid"]):
            return
        if not _proves_stale(self._paths, owner):
            raise Occupied(_occupied_text(self._paths, owner))


def is_held(paths: DataPaths) -> bool:
    """Whether an embedded host runs on the directory now."""
    try:
        descriptor = os.open(paths.flock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_flock(descriptor)
    finally:
        os.close(descriptor)


def read_owner(paths: DataPaths) -> dict | None:
    """`{"pid", "instanceId"}` of server.lock; None when there is no readable one."""
    owner = read_object(paths.server_lock)
    pid = owner.get("pid")
    if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0:
        return {"pid": pid, "instanceId": owner.get("instanceId")}
    return None


def read_object(path: str) -> dict:
    """The JSON object in a small file; {} when there is none."""
    with contextlib.suppress(OSError, ValueError):
        value = jsontext.loads(read_small(path))
        if isinstance(value, dict):
            return value
    return {}


def ask_instance(paths: DataPaths, deadline_s: float) -> str | None:
    """The instanceId that the endpoint gives as its own; None when nobody answers as a session's server."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(paths.sessions)):
            if name.endswith(".json"):
                result = transport.call(os.path.join(paths.sessions, name), "session_info", deadline_s=deadline_s)
                if result["ok"] and isinstance(result.get("value"), dict):
                    return result["value"].get("instanceId")
    return None


def _proves_stale(paths: DataPaths, owner: dict) -> bool:
    """Whether the endpoint shows that the owner of the lock is gone, whoever has its pid now.

    Without an endpoint file the owner may be starting up: no proof.
    """
    endpoint = read_object(paths.endpoint)
    if not endpoint:
        return False
    if endpoint.get("instanceId") != owner["instanceId"]:
        return False
    return ask_instance(paths, deadline_s=2.0) != owner["instanceId"] and not _listens(endpoint.get("url"))


def _listens(url: object) -> bool:
    import socket

    from ..session.discovery import Unavailable, parse_endpoint

    try:
        port, _ = parse_endpoint(url)
        socket.create_connection(("127.0.0.1", port), timeout=2.0).close()
    except (Unavailable, OSError):
        return False
    return True


def _occupied_text(paths: DataPaths, owner: dict | None) -> str:
    who = f"pid {owner['pid']}" if owner else "another process"
    return (
        f"a server runs on {paths.root} already ({who}). "
        f"Use it, end it with `termsprawlctl host stop`, or choose another directory with --data DIR."
    )


def _try_flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
