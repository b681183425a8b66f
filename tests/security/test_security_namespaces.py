"""In a user namespace (a rootless container, an agent's sandbox) root has no number: what is root's is still used.

The system shows root there under uid 65534, as it shows all users without a number.
"""

from __future__ import annotations

import ctypes
import os
import socket
import traceback

import pytest

from termsprawlctl.base import files, ownership, tmux
from termsprawlctl.base.errors import CtlError
from termsprawlctl.windows import displays, spawn

SOMEBODY = 54321  # no user of the machine, and not 65534
_CLONE_NEWUSER = 0x10000000


def inside(action) -> str:
    """What `action()` raises as a user in a namespace that knows this user alone; "" for nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, _enter() or _words_of(action))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        words = said.read().decode()
    os.waitpid(child, 0)
    if words.startswith("no namespace"):
        pytest.skip(words)
    return words


def _enter() -> bytes:
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
        user = os.getuid()
        # Whoever gave up being root does not own their own /proc files until they are dumpable again.
        library = ctypes.CDLL(None, use_errno=True)
        library.prctl(4, 1, 0, 0, 0)
        if library.unshare(_CLONE_NEWUSER) != 0:
            return b"no namespace: " + os.strerror(ctypes.get_errno()).encode()
        with open("/proc/self/uid_map", "w") as numbers:
            numbers.write(f"{user} {user} 1")
    except (OSError, AttributeError) as error:
        return f"no namespace: {error}".encode()
    return b"no namespace: root has a number in it" if os.stat("/proc/sys").st_uid in (0, user) else b""


def _words_of(action) -> bytes:
    try:
        action()
    except (OSError, CtlError, displays.ForeignServer) as refused:
        return str(refused).encode() or b"refused"
    except BaseException:  # noqa: BLE001 - told to the test
        return traceback.format_exc().encode()
    return b""


def test_an_output_goes_to_a_device_of_roots():
    assert inside(lambda: files.write_output("/dev/null", b"picture")) == ""


def test_a_tmux_socket_may_lie_in_the_directory_for_temporary_files():
    def look() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            path = f"/tmp/namespace-{os.getpid()}"
            listener.bind(path)
            try:
                tmux.refuse_foreign_socket(path)
            finally:
                os.unlink(path)

    assert inside(look) == ""


def test_a_launcher_may_lie_in_the_directory_for_temporary_files():
    assert inside(lambda: os.unlink(spawn.create_launcher(["true"], {}))) == ""


def test_directories_of_roots_may_lie_above_the_data_directory(monkeypatch):
    # As where the namespace has a file system of its own: `/` is the user's, what is mounted below it root's.
    owner = ownership._owner
    monkeypatch.setattr(ownership, "_owner", lambda path: os.getuid() if path == "/" else owner(path))
    monkeypatch.setenv("HOME", "/none")
    assert inside(lambda: ownership.refuse_foreign_way("/usr/share/data")) == ""


@pytest.mark.skipif(os.getuid() != 0, reason="the server has to be root's")
def test_a_window_may_be_opened_on_a_display_of_roots():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0display-{os.getpid()}")
        server.listen()
        address = server.getsockname()
        assert inside(lambda: displays._connect(socket.AF_UNIX, address)) == ""
