"""The private files of a share, as the side sees them that reads them.

    <temp root>/<made by mkdtemp>/      0700
        endpoint.json                   0600  version, instanceId, generation, token
        s                               0600  the unix socket

Everything is checked before a byte goes out: the token must reach only what this user
made, and nothing that somebody put in its place.
"""

from __future__ import annotations

import os
import re
import stat

from ..base import jsontext
from ..base.errors import UsageError
from ..base.files import DIRECTORY_MODE, FILE_MODE
from .wire import is_uuid

FILE_NAME = "endpoint.json"
SOCKET_NAME = "s"
VERSION = 1
MAX_FILE_BYTES = 16 << 10
_TOKEN = re.compile("[0-9a-f]{64}", re.ASCII)
_MEMBERS = {"version", "instanceId", "generation", "token"}


class EndpointError(UsageError):
    """The path names no endpoint that may be used; the text says why, without the token."""


class Endpoint:
    """Who shares (two uuids), where (the socket's path), and what opens it."""

    __slots__ = ("generation", "instance_id", "socket_path", "token")

    def __init__(self, instance_id: str, generation: str, token: str, socket_path: str) -> None:
        self.instance_id = instance_id
        self.generation = generation
        self.token = token
        self.socket_path = socket_path


def require_posix(system: str = os.name) -> None:
    """Raise UsageError where there are no unix sockets with owners and modes."""
    if system != "posix":
        raise UsageError("a shared TUI needs a POSIX system.", "On Windows, use it inside WSL.")


def load(path: str) -> Endpoint:
    """Check directory, file and socket, and read the file. Raises EndpointError."""
    require_posix()
    directory, (instance_id, generation, token) = load_file(path)
    socket_path = os.path.join(directory, SOCKET_NAME)
    _check(socket_path, "socket", stat.S_ISSOCK, "a unix socket", FILE_MODE)
    return Endpoint(instance_id, generation, token, socket_path)


def load_file(path: str) -> tuple[str, tuple[str, str, str]]:
    """The directory, and what parse() gives: load() without a look at the socket. Raises EndpointError."""
    directory = check_path(path)
    seen = _check(path, "endpoint file", stat.S_ISREG, "a regular file", FILE_MODE)
    return directory, parse(_read(path, seen))


def check_path(path: str) -> str:
    """The endpoint's directory, itself checked. Raises EndpointError."""
    if not os.path.isabs(path):
        raise EndpointError(f"the endpoint path {path} is not absolute.", _REMEDY)
    if os.path.basename(path) != FILE_NAME:
        raise EndpointError(f"the endpoint path {path} does not end in {FILE_NAME}.", _REMEDY)
    if "\0" in path:
        raise EndpointError("the endpoint path holds a NUL byte.", _REMEDY)
    if os.path.realpath(path) != path:
        raise EndpointError(f"the endpoint path {path} leads through a symlink or is not in its plain form.", _REMEDY)
    directory = os.path.dirname(path)
    _check(directory, "directory", stat.S_ISDIR, "a directory", DIRECTORY_MODE)
    return directory


_REMEDY = "Copy it from the bar of the TUI that is shared."


def parse(data: bytes) -> tuple[str, str, str]:
    """(instanceId, generation, token) of an endpoint file. Raises EndpointError."""
    try:
        value = jsontext.loads(data)
    except ValueError as error:
        raise EndpointError(f"the endpoint file is not JSON: {error}.") from None
    if not isinstance(value, dict) or set(value) != _MEMBERS:
        raise EndpointError(f"the endpoint file has not exactly the members {', '.join(sorted(_MEMBERS))}.")
    if type(value["version"]) is not int or value["version"] != VERSION:
        raise EndpointError(f"the endpoint file has not version {VERSION}.", "Use matching versions on both sides.")
    token = value["token"]
    if not (is_uuid(value["instanceId"]) and is_uuid(value["generation"])):
        raise EndpointError("the endpoint file's instanceId or generation is no uuid.")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise EndpointError("the endpoint file's token is not 64 lowercase hexadecimal digits.")
    return value["instanceId"], value["generation"], token


def _check(path: str, what: str, is_kind, kind: str, mode: int) -> os.stat_result:
    try:
        status = os.lstat(path)
    except OSError as error:
        raise EndpointError(
            f"cannot look at the {what} {path}: {error.strerror}.", "The TUI has to be running and shared."
        ) from None
    _check_status(status, f"{what} {path}", is_kind, kind, mode)
    return status


def _check_status(status: os.stat_result, named: str, is_kind, kind: str, mode: int) -> None:
    if not is_kind(status.st_mode):
        raise EndpointError(f"the {named} is not {kind}.")
    if status.st_uid != os.getuid():
        raise EndpointError(f"the {named} belongs to another user.")
    if stat.S_IMODE(status.st_mode) != mode:
        raise EndpointError(f"the {named} has mode {stat.S_IMODE(status.st_mode):04o} instead of {mode:04o}.")


def _read(path: str, seen: os.stat_result) -> bytes:
    """The file's bytes, provided that it is still the one that was looked at."""
    named = f"endpoint file {path}"
    try:
        # Non-blocking: a fifo put in its place must not hold us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise EndpointError(f"cannot open the {named}: {error.strerror}.") from None
    try:
        status = os.fstat(descriptor)
        _check_status(status, named, stat.S_ISREG, "a regular file", FILE_MODE)
        if (status.st_dev, status.st_ino) != (seen.st_dev, seen.st_ino):
            raise EndpointError(f"the {named} was replaced while it was checked.")
        data = b""
        while len(data) <= MAX_FILE_BYTES:
            chunk = os.read(descriptor, MAX_FILE_BYTES + 1 - len(data))
            if not chunk:
                return data
            data += chunk
    except OSError as error:
        raise EndpointError(f"cannot read the {named}: {error.strerror}.") from None
    finally:
        os.close(descriptor)
    raise EndpointError(f"the {named} is larger than {MAX_FILE_BYTES} bytes.")
