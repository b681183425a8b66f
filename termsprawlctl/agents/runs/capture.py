"""What a CLI prints, caught in private files that are read while they grow.

Files, not pipes: two of the CLIs lose output on a pipe whose reader is slow, and a pipe
can be held open by a process that the CLI left behind. The files have no names, so that
nothing is left of them whatever happens.
"""

from __future__ import annotations

import codecs
import os

from ...base.jsontext import encode
from ..model.text import one_line, plain
from .raw import KEPT_BYTES, RawReader
from .stream import Lines, expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.reader import Reader
    from ..model.types import HearError


READ_BYTES = 256 << 10
MAX_READS = 8  # pieces in one look: 2 MB of short events take most of a second, which a cancellation waits
TAIL_BYTES = 8192
FULL_BYTES = 64 << 10  # less than this is left on a full disk: programs write larger pieces
LOGGED_BYTES = 64 << 10  # of a CLI's stderr that is passed on, for each run
MAX_LOG_LINE = 1000


class Capture:
    """The three files of one attempt: `files` are the descriptors for the CLI's 0, 1 and 2."""

    def __init__(self, scratch: str, prompt: str | None, mark: str) -> None:
        """`mark` is a text that no output holds (see stream.Lines); without a prompt 0 is a pipe. Raises OSError."""
        self._mark = mark
        self._lines = Lines(mark)
        self._read = 0
        self._read_err = 0
        self._err_rest = b""
        self._logged = 0
        self._input = -1  # the other end of the pipe
        self._unsent = b""
        opened: list[int] = []
        try:
            if prompt is None:
                reading, self._input = os.pipe()
                opened.append(reading)
                os.set_blocking(self._input, False)
            else:
                opened.append(_nameless(os.path.join(scratch, "prompt")))
                view = memoryview(encode(prompt))
                while view:
                    view = view[os.write(opened[0], view) :]
                os.lseek(opened[0], 0, os.SEEK_SET)
            for name in ("stdout", "stderr"):
                opened.append(_nameless(os.path.join(scratch, name)))  # noqa: PERF401 - closed below if one fails
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
            self.close_input()
            raise
        self.files: tuple[int, ...] = tuple(opened)

    def send(self, data: bytes) -> bool:
        """Write to the pipe, as much as it takes now; whether all has been written, that of earlier calls included."""
        self._unsent += data
        while self._unsent and self._input >= 0:
            try:
                written = os.write(self._input, self._unsent[:READ_BYTES])
            except BlockingIOError:
                return False
            except OSError:
                self._unsent = b""  # nobody reads it any more
            else:
                self._unsent = self._unsent[written:]
        return True

    def close_input(self) -> None:
        """Close the pipe: the end of what is said to the CLI."""
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def read_output(self, reader: Reader, *, structured: bool) -> bool:
        """Give what was printed since to the reader, at most 2 MB; whether there was any."""
        for number in range(MAX_READS):
            data = os.pread(self.files[1], READ_BYTES, self._read)
            if not data:
                return number > 0
            self._read += len(data)
            if structured:
                for line in self._lines.feed(data):
                    reader.feed(line)
            else:
                assert isinstance(reader, RawReader)  # noqa: S101 - what an unstructured run has
                reader.feed_raw(data)
        return True

    def end_output(self, reader: Reader) -> None:
        """Give a last line without an end to the reader: the CLI has ended, and all else is read."""
        last = self._lines.end()
        if last:
            reader.feed(last)

    def read_errors(self, tell: HearError, *, final: bool = False) -> bool:
        """Tell each new line of stderr, cleaned, as tell(line, log=whether it is to be logged); whether there was any.

        Of a flood only the last lines are told.
        """
        newest = os.fstat(self.files[2]).st_size - READ_BYTES
        skipped = newest > self._read_err
        if skipped:
            # More than anyone reads: what counts is the latest line.
            self._read_err = newest
        data = os.pread(self.files[2], READ_BYTES, self._read_err)
        self._read_err += len(data)
        heard = bool(data)
        if skipped:
            self._err_rest, data = b"", data.partition(b"\n")[2]
        *lines, self._err_rest = (self._err_rest + data).split(b"\n")
        if final and self._err_rest:
            lines.append(self._err_rest)
        if len(self._err_rest) > READ_BYTES:
            self._err_rest = b""
        for line in lines:
            text = one_line(line.decode("utf-8", "replace"), MAX_LOG_LINE)
            if text:
                self._logged += len(text)
                tell(text, log=self._logged <= LOGGED_BYTES)
        return heard

    def largest(self) -> int:
        """The size of the larger of the two outputs so far, in bytes."""
        return max(os.fstat(descriptor).st_size for descriptor in self.files[1:])

    def disk_is_full(self) -> bool:
        """Whether there is no room for what the CLI prints."""
        disk = os.fstatvfs(self.files[1])
        return disk.f_bavail * disk.f_frsize < FULL_BYTES

    def output_tail(self) -> str:
        """The end of stdout, cleaned."""
        return _tail(self.files[1])

    def errors_tail(self) -> str:
        """The end of stderr, cleaned."""
        return _tail(self.files[2])

    def shortened(self, *, structured: bool) -> bool:
        """Whether a reader has less than what was printed."""
        return bool(self._lines.cuts) if structured else self._read > KEPT_BYTES

    def whole(self, text: str) -> Iterator[str]:
        """Yield a text that the reader kept, with what had been left out of it."""
        yield from expanded(text, self._mark, self._lines.cuts, self.files[1])

    def plain_output(self) -> Iterator[str]:
        """Yield all of stdout as text."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        offset = 0
        while True:
            data = os.pread(self.files[1], READ_BYTES, offset)
            yield decoder.decode(data, not data)
            if not data:
                return
            offset += len(data)

    def close(self) -> None:
        """Free the files; what they held is gone."""
        self.close_input()
        for descriptor in self.files:
            os.close(descriptor)
        self.files = ()


def _nameless(path: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return descriptor


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES))
    return plain(data.decode("utf-8", "replace")).strip()
