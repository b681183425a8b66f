"""Whose program listens on a port of 127.0.0.1.

A port number is nobody's for good: after an app or host was killed, its endpoint file
still names the port, and any user of the machine may listen there and wait for a token.
Linux tells whose socket it is: asked for this one by sock_diag(7), which costs a fraction of
reading all in /proc/net/tcp (proc(5)), the second way. Where there is neither (macOS, some
sandboxes) nobody knows.
"""

from __future__ import annotations

import _socket as socket  # as in transport
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ANSWER_S = 1.0  # the kernel answers at once
# linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1
_HEADER_BYTES = 16  # size, type, flags, sequence, port
_ANY_SOCKET = bytes(4) + b"\xff" * 8  # interface, cookie
_UID = slice(_HEADER_BYTES + 64, _HEADER_BYTES + 68)  # behind states, addresses, timer and queues
_HOST = bytes((127, 0, 0, 1))

_READ_BYTES = 4096  # sockets that listen come first in the table
_LISTENING = b"0A"
# As the tables write addresses: each 32 bits in hexadecimal, in the machine's own order of bytes.
_LOOPBACK, _MAPPED = (b"%08X" % int.from_bytes(address, sys.byteorder) for address in (_HOST, b"\0\0\xff\xff"))
_ANY = b"00000000"
# file: addresses at which a connection to 127.0.0.1 arrives, that one itself first.
_TABLES = {
    "/proc/net/tcp": (_LOOPBACK, _ANY),
    "/proc/net/tcp6": (_ANY * 2 + _MAPPED + _LOOPBACK, _ANY * 4),
}


def owner_of_listener(port: int, client_port: int) -> int | None:
    """The user id behind a port to which `client_port` of 127.0.0.1 is connected; None where nobody knows.

    That of the listening socket; where it is closed by now, that of the connection's other end.
    """
    try:
        monitor = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG)
        try:
            monitor.settimeout(_ANSWER_S)
            owner = _ask(monitor, port, 0)
            return _ask(monitor, port, client_port) if owner is None else owner
        finally:
            monitor.close()
    except (OSError, AttributeError):  # not permitted here, or not Linux
        return from_tables(port, client_port)


def _ask(monitor: socket.socket, port: int, client_port: int) -> int | None:
    """The owner of one socket (client_port 0: that listens); None when there is none. Raises OSError."""
    ports = port.to_bytes(2, "big") + client_port.to_bytes(2, "big")
    hosts = _HOST.ljust(16, b"\0") + (_HOST if client_port else b"").ljust(16, b"\0")
    query = bytes((socket.AF_INET, socket.IPPROTO_TCP)) + bytes(6) + ports + hosts + _ANY_SOCKET
    size, kind, flags = _HEADER_BYTES + len(query), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST
    header = b"".join(n.to_bytes(width, sys.byteorder) for n, width in ((size, 4), (kind, 2), (flags, 2)))
    monitor.send(header.ljust(_HEADER_BYTES, b"\0") + query)
    answer = monitor.recv(4096)
    if len(answer) < _UID.stop or int.from_bytes(answer[4:6], sys.byteorder) != _SOCK_DIAG_BY_FAMILY:
        return None
    return int.from_bytes(answer[_UID], sys.byteorder)


def from_tables(port: int, client_port: int) -> int | None:
    """Like owner_of_listener(), by the files in /proc alone."""
    accepted = None
    for path, addresses in _TABLES.items():
        local = {b"%s:%04X" % (address, port) for address in addresses}
        ours = b"%s:%04X" % (addresses[0], client_port)
        for row in _rows(path, b":%04X " % port):
            if len(row) > 7 and row[1] in local:
                if row[3] == _LISTENING:
                    return int(row[7])
                if row[2] == ours:
                    accepted = int(row[7])
    return accepted


def _rows(path: str, text: bytes) -> Iterator[list[bytes]]:
    """The rows of a table that hold this text, as lists of words; none where it cannot be read."""
    try:
        with open(path, "rb", buffering=_READ_BYTES) as table:
            for line in table:
                if text in line:
                    yield line.split()
    except OSError:
        return
