"""What happened on a host, as JSON lines in numbered files of bounded size.

    {"time": "2026-01-02T03:04:05.678Z", "event": "call", "project": "p-1", "caller": "cli-1",
     "operation": "terminal_run", "node": "n-1", "ok": true, "ms": 153}

Events: host-started, host-stopped; node-opened, node-closed; call (an operation, its
result and duration); output (a terminal wrote so many bytes, at most once a second);
exit (what ran in a terminal has ended); person (attached, typed or detached). Never
what was typed, shown or asked for, and no token: ids that the host itself gave, numbers
and names of operations only.

The files are also how `host watch` follows: they lose nothing between two looks unless
a reader falls behind by all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time

from ...base import jsontext
from ...base.files import open_regular, private_directory, read_part, remove_quietly
from ...base.text import visible

MAX_FILE_BYTES = 1 << 20
KEPT_FILES = 4
READ_BYTES = 64 << 10
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_NAME = re.compile(r"events-([0-9]{8,12})\.jsonl")


class Audit:
    """Writes events. Never fails: a host goes on when its log cannot be written (a full disk)."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._number = 0
        self._size = 0
        self._second = (0, "")  # since 1970, and as text: many events come within one
        self._is_cut = False  # the last line is only a part of one: the disk was full

    def event(self, kind: str, **fields: object) -> None:
        """Write one event; fields that are None are left out."""
        content: dict[str, object] = {"time": self._stamp(), "event": kind}
        content.update({name: value for name, value in fields.items() if value is not None})
        line = _ENCODER.encode(content).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            descriptor = self._descriptor
            if descriptor is None:
                descriptor = self._open(max(numbers(self._directory), default=1))
            if self._size + len(line) > MAX_FILE_BYTES:
                descriptor = self._open(self._number + 1)
            if self._is_cut:
                line = b"\n" + line
            written = os.write(descriptor, line)
            self._size += written
            self._is_cut = written < len(line)

    def _stamp(self) -> str:
        now_s = time.time()
        known_s, text = self._second
        if known_s != int(now_s):
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s))
            self._second = (int(now_s), text)
        return f"{text}.{int(now_s * 1000) % 1000:03d}Z"

    def close(self) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self, number: int) -> int:
        private_directory(self._directory)
        descriptor = open_regular(_path(self._directory, number), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._number = descriptor, number
        self._size = os.fstat(descriptor).st_size
        self._is_cut = self._size > 0 and os.pread(descriptor, 1, self._size - 1) != b"\n"
        for old in numbers(self._directory):
            if old <= number - KEPT_FILES:
                remove_quietly(_path(self._directory, old))
        return descriptor


class Follower:
    """Reads events that come from now on, across files."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._number = max(numbers(directory), default=0)
        self._offset = 0
        self._rest = b""
        with contextlib.suppress(OSError):
            self._offset = os.stat(_path(directory, self._number)).st_size

    def read(self) -> list[dict]:
        """The events since the last call; an event `missed` where files are gone unread."""
        found: list[dict] = []
        while True:
            # Asked before reading: what is written to a file comes before its successor.
            following = sorted(number for number in numbers(self._directory) if number > self._number)
            found += self._read_file()
            if not following:
                return found
            if self._number and following[0] != self._number + 1:
                found.append({"event": "missed", "files": following[0] - self._number - 1})
            self._number, self._offset, self._rest = following[0], 0, b""

    def _read_file(self) -> list[dict]:
        data = _read(_path(self._directory, self._number), self._offset)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return _events(lines)


def past(directory: str) -> list[dict]:
    """All events that are kept, oldest first."""
    found: list[dict] = []
    for number in sorted(numbers(directory)):
        found += _events(_read(_path(directory, number), 0).split(b"\n"))
    return found


def numbers(directory: str) -> list[int]:
    """The numbers of the files that are there; higher is newer."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return [int(match[1]) for match in map(_NAME.fullmatch, names) if match]


def describe(event: dict) -> str:
    """One event as a line for people, the time in their own time zone."""
    kind = event.get("event")
    kind = kind if isinstance(kind, str) else "?"
    text = {
        "call": "{operation} {node} by {caller}: {result}, {ms} ms",
        "output": "{node} wrote {bytes} bytes",
        "exit": "{node} has ended",
        "person": "{node}: a person {what}",
        "node-opened": "{node} opened by {caller}",
        "node-closed": "{node} closed by {caller}",
        "host-started": "host started, pid {pid}",
        "host-stopped": "host stopped",
        "missed": "{files} files of events were gone before they could be read",
    }.get(kind, kind)
    values = {"operation": "an unknown operation", "result": "ok" if event.get("ok") else "refused", **event}
    words = re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], "")), text)
    return f"{_local_time(event.get('time'))}  {visible(words)}"


def _local_time(stamp: object) -> str:
    try:
        parsed = time.strptime(str(stamp)[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return "-" * 19
    import calendar

    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(calendar.timegm(parsed)))


def _read(path: str, offset: int) -> bytes:
    """What a file holds from an offset on, at most twice of what one gets; b"" when it cannot be read."""
    try:
        return read_part(path, offset, 2 * MAX_FILE_BYTES)
    except OSError:
        return b""


def _events(lines: list[bytes]) -> list[dict]:
    found = []
    for line in lines:
        # A line that a full disk cut short is none.
        with contextlib.suppress(ValueError):
            event = jsontext.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found


def _path(directory: str, number: int) -> str:
    return os.path.join(directory, f"events-{number:08d}.jsonl")
