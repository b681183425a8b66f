"""A private X server without a screen (Xvfb): its pixels, its windows, and a Wayland compositor inside it.

Speaks the few requests of X11's protocol that tests need, so that no tool has to be
installed for them: which windows there are, closing one as a window manager does, and
cutting off a window's program.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path

from .waiting import until

START_S = 20.0


class XServer:
    """Xvfb with a white screen; `environment` is what a program needs to draw on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            self._process = subprocess.Popen(
                # No reset when the last window goes: it would drop who connects meanwhile.
                # Pixels go into a file; fonts from the server itself, so that they are the same everywhere.
                ["Xvfb", "-displayfd", str(writing), "-noreset", "-wr", "-screen", "0", "1024x768x24",
                 "-nolisten", "tcp", "-fbdir", str(folder), "-fp", "built-ins"],
                pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            os.close(writing)
            number = answer.readline().strip().decode()
        assert number, "Xvfb did not start"
        self.display = f":{number}"
        self.environment = {"DISPLAY": self.display}
        self._number = number

    def stop(self) -> None:
        end(self._process)

    def screenshot(self) -> list[bytes]:
        """The screen's rows; one byte a pixel, 1 where it is dark."""
        data = (self._folder / "Xvfb_screen0").read_bytes()
        words = struct.unpack(">25I", data[:100])
        header_bytes, height, bits, line_bytes, colors = words[0], words[5], words[11], words[12], words[19]
        assert bits == 32
        dark = bytes(1 if value < 128 else 0 for value in range(256))
        start = header_bytes + colors * 12
        pixels = data[start : start + height * line_bytes : 4].translate(dark)
        width = line_bytes // 4
        return [pixels[row * width : (row + 1) * width] for row in range(height)]

    def windows(self) -> set[int]:
        """The mapped windows on the screen. Without a window manager each is a program's own."""
        with _Connection(self._number) as connection:
            return {window for window in connection.children() if connection.is_mapped(window)}

    def close_window(self, window: int) -> None:
        """Ask for the window to be closed, as the close button does."""
        with _Connection(self._number) as connection:
            connection.ask_to_close(window)

    def cut_off(self, window: int) -> None:
        """End the connection of the window's program, as a crash of the display would."""
        with _Connection(self._number) as connection:
            connection.kill_client(window)


class Compositor:
    """weston as a window on an XServer."""

    def __init__(self, server: XServer, folder: Path) -> None:
        folder.chmod(0o700)
        self.environment = {"WAYLAND_DISPLAY": "wayland-t", "XDG_RUNTIME_DIR": str(folder)}
        self._process = subprocess.Popen(
            ["weston", "--backend=x11-backend.so", "--use-pixman", "--socket=wayland-t", "--no-config", "--idle-time=0",
             "--width=800", "--height=600"],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **self.environment, **server.environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until((folder / "wayland-t").exists, "weston to listen")

    def stop(self) -> None:
        end(self._process)


class MessageBus:
    """A D-Bus session bus of its own, for programs that hand over to a running instance."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.environment: dict[str, str] = {}
        self._process = None
        if shutil.which("dbus-daemon"):
            address = f"unix:path={folder}/bus"
            self._process = subprocess.Popen(
                ["dbus-daemon", "--session", "--nofork", f"--address={address}"],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            until((folder / "bus").exists, "the message bus")
            self.environment = {"DBUS_SESSION_BUS_ADDRESS": address}

    def stop(self) -> None:
        if self._process:
            end(self._process)


def end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def bands(rows: list[bytes]) -> list[list[bytes]]:
    """The lines of ink on a screen: runs of rows that hold dark pixels, cut to their width."""
    found: list[list[bytes]] = [[]]
    for row in rows:
        if 1 in row:
            found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [_cropped(band) for band in found if band]


def shows(rows: list[bytes], picture: list[bytes]) -> bool:
    """Whether the picture stands on the screen, pixel for pixel."""
    for top in range(len(rows) - len(picture) + 1):
        at = rows[top].find(picture[0])
        while at >= 0:
            if all(rows[top + y][at : at + len(line)] == line for y, line in enumerate(picture)):
                return True
            at = rows[top].find(picture[0], at + 1)
    return False


def _cropped(band: list[bytes]) -> list[bytes]:
    left = min(row.index(1) for row in band if 1 in row)
    right = max(row.rindex(1) for row in band if 1 in row)
    return [row[left : right + 1] for row in band]


class _Connection:
    """A connection to a local X server, little-endian, one request at a time."""

    def __init__(self, number: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._greet(number)
        except BaseException:
            self._socket.close()
            raise

    def _greet(self, number: str) -> None:
        self._socket.settimeout(10)
        self._socket.connect(f"/tmp/.X11-unix/X{number}")
        self._socket.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        status, size = struct.unpack("<B5xH", self._receive(8))
        setup = self._receive(size * 4)
        assert status == 1, setup
        (vendor_bytes,) = struct.unpack_from("<H", setup, 16)
        formats = setup[21]
        (self._root,) = struct.unpack_from("<I", setup, 32 + (vendor_bytes + 3) // 4 * 4 + formats * 8)

    def __enter__(self):
        return self

    def __exit__(self, *_exception) -> None:
        self._socket.close()

    def children(self) -> list[int]:
        answer = self._ask(struct.pack("<BxHI", 15, 2, self._root))
        (count,) = struct.unpack_from("<H", answer, 16)
        return list(struct.unpack_from(f"<{count}I", answer, 32))

    def is_mapped(self, window: int) -> bool:
        answer = self._ask(struct.pack("<BxHI", 3, 2, window))
        return answer is not None and answer[26] != 0

    def ask_to_close(self, window: int) -> None:
        message = struct.pack(
            "<BBHIIII12x", 33, 32, 0, window, self._atom("WM_PROTOCOLS"), self._atom("WM_DELETE_WINDOW"), 0
        )
        self._tell(struct.pack("<BxHII", 25, 11, window, 0) + message)

    def kill_client(self, window: int) -> None:
        self._tell(struct.pack("<BxHI", 113, 2, window))

    def _atom(self, name: str) -> int:
        padded = name.encode() + bytes(-len(name) % 4)
        answer = self._ask(struct.pack("<BxHHxx", 16, 2 + len(padded) // 4, len(name)) + padded)
        return struct.unpack_from("<I", answer, 8)[0]

    def _tell(self, request: bytes) -> None:
        self._socket.sendall(request)
        # Its answer says that everything before it was carried out.
        self._ask(struct.pack("<BxH", 43, 1))

    def _ask(self, request: bytes) -> bytes | None:
        """The answer to a request; None for an error, such as a window that is gone."""
        self._socket.sendall(request)
        while True:
            head = self._receive(32)
            if head[0] == 1:
                return head + self._receive(struct.unpack_from("<I", head, 4)[0] * 4)
            if head[0] == 0 and head[10] != 25 and head[10] != 113:
                return None

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            assert chunk, "the X server closed the connection"
            data += chunk
        return data
