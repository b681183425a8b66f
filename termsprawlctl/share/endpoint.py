"""The private files of a share, as the side sees them that reads them.

    <temp root>/<made by mkdtemp>/      0700
        endpoint.json                   0600  version, instanceId, generation, token
        s                               0600  the unix socket

Everything is checked before a byte goes out: the token must reach only what this user
made, and nothing that somebody put in its place.
"""

from __future__ import annotations

import os
import stat

from ..base import jsontext
from ..base.errors import UsageError
from ..base.files import DIRECTORY_MODE, FILE_MODE, open_regular, read_open
from .wire import is_token, is_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FILE_NAME = "endpoint.json"
SOCKET_NAME = "s"
VERSION = 1
MAX_FILE_BYTES = 16 << 10
_NAMES = {"version", "instanceId", "generation", "token"}


class EndpointError(UsageError):
    """The path names no endpoint that may be used; the text says why, without the token."""


class Members:
    """What an endpoint file says: who shares (two uuids), and what opens it."""

    __slots__ = ("generation", "instance_id", "token")

    def __init__(self, instance_id: str, generation: str, token: str) -> None:
        self.instance_id = instance_id
        self.generation = generation
        self.token = token

    def is_target_of(self, named: object) -> bool:
        """Whether the uuids of a request or a view (by member or by name) are these."""
        if isinstance(named, dict):
            return (named["instanceId"], named["generation"]) == (self.instance_id, self.generation)
        return (named.instance_id, named.generation) == (self.instance_id, self.generation)


class Endpoint:
    """An endpoint that was checked: its file's members and the socket's path."""

    __slots__ = ("members", "socket_path")

    def __init__(self, members: Members, socket_path: str) -> None:
        self.members = members
        self.socket_path = socket_path


def require_posix(system: str = os.name) -> None:
    """Raise UsageError where there are no unix sockets with owners and modes."""
    if system != "posix":
        raise UsageError("a shared TUI needs a POSIX system.", "On Windows, use it inside WSL.")


def load(path: str) -> Endpoint:
    """Check directory, file and socket, and read the file. Raises EndpointError."""
    require_posix()
    members = load_file(path)
    socket_path = os.path.join(os.path.dirname(path), SOCKET_NAME)
    _check(socket_path, "socket", stat.S_ISSOCK, "a unix socket", FILE_MODE)
    return Endpoint(members, socket_path)


def load_file(path: str) -> Members:
    """load() without a look at the socket. Raises EndpointError."""
    check_path(path)
    seen = _check(path, "endpoint file", stat.S_ISREG, "a regular file", FILE_MODE)
    return parse(_read(path, seen))


def check_path(path: str) -> None:
    """Check the form of the path, and the endpoint's directory. Raises EndpointError."""
    check_form(path)
    _check(os.path.dirname(path), "directory", stat.S_ISDIR, "a directory", DIRECTORY_MODE)


def check_form(path: str) -> None:
    """Raise EndpointError unless the path is absolute, plain and that of an endpoint.json."""
    if not os.path.isabs(path):
        raise EndpointError(f"the endpoint path {path} is not absolute.", _REMEDY)
    if os.path.basename(path) != FILE_NAME:
        raise EndpointError(f"the endpoint path {path} does not end in {FILE_NAME}.", _REMEDY)
    if "\0" in path:
        raise EndpointError("the endpoint path holds a NUL byte.", _REMEDY)
    if os.path.realpath(path) != path:
        raise EndpointError(f"the endpoint path {path} leads through a symlink or is not in its plain form.", _REMEDY)


_AGAIN = "Share the TUI again and use the new path."
_REMEDY = "Copy it from where the TUI was shared; `termsprawlctl tui status` lists those that are."


def parse(data: bytes) -> Members:
    """The members of an endpoint file. Raises EndpointError."""
    try:
        value = jsontext.loads(data)
    except ValueError as error:
        raise EndpointError(f"the endpoint file is not JSON: {error}.", _AGAIN) from None
    if not isinstance(value, dict) or set(value) != _NAMES:
        raise EndpointError(f"the endpoint file has not exactly the members {', '.join(sorted(_NAMES))}.", _AGAIN)
    if isinstance(value["version"], bool) or value["version"] != VERSION:
        raise EndpointError(f"the endpoint file has not version {VERSION}.", "Use matching versions on both sides.")
    token = value["token"]
    if not (is_uuid(value["instanceId"]) and is_uuid(value["generation"])):
        raise EndpointError("the endpoint file's instanceId or generation is no uuid.", _AGAIN)
    if not is_token(token):
        raise EndpointError("the endpoint file's token is not 64 lowercase hexadecimal digits.", _AGAIN)
    return Members(value["instanceId"], value["generation"], token)


def _check(path: str, what: str, is_kind: Callable[[int], bool], kind: str, mode: int) -> os.stat_result:
    try:
        status = os.lstat(path)
    except OSError as error:
        raise EndpointError(
            f"cannot look at the {what} {path}: {error.strerror}.", "The TUI has to be running and shared."
        ) from None
    _check_status(status, f"{what} {path}", is_kind, kind, mode)
    return status


def _check_status(status: os.stat_result, named: str, is_kind: Callable[[int], bool], kind: str, mode: int) -> None:
    if not is_kind(status.st_mode):
        raise EndpointError(f"the {named} is not {kind}.", _AGAIN)
    if status.st_uid != os.getuid():
        raise EndpointError(f"the {named} belongs to another user.", "Use a share of your own.")
    if stat.S_IMODE(status.st_mode) != mode:
        raise EndpointError(f"the {named} has mode {stat.S_IMODE(status.st_mode):04o} instead of {mode:04o}.", _AGAIN)


def _read(path: str, seen: os.stat_result) -> bytes:
    """The file's bytes, provided that it is still the one that was looked at."""
    named = f"endpoint file {path}"
    try:
        descriptor = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise EndpointError(f"cannot open the {named}: {error.strerror}.", _AGAIN) from None
    try:
        status = os.fstat(descriptor)
        _check_status(status, named, stat.S_ISREG, "a regular file", FILE_MODE)
        if (status.st_dev, status.st_ino) != (seen.st_dev, seen.st_ino):
            raise EndpointError(f"the {named} was replaced while it was checked.", "Try again.")
        return read_open(descriptor, path, MAX_FILE_BYTES)
    except OSError as error:
        raise EndpointError(f"cannot read the {named}: {error.strerror}.", _AGAIN) from None
    finally:
        os.close(descriptor)
