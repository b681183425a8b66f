"""`map` at a shell: print the picture once, or keep it up to date."""

from __future__ import annotations

import os
import select
import shutil
import signal
import time

from ..base import console, jsontext
from ..base.errors import OK, CtlError
from ..base.files import write_output
from . import model, source, svg, text

REDRAW_S = 1.0
# Where there is no terminal to ask, for example in a file or a mail.
DEFAULT_COLUMNS = 100
# The other screen, so that the shell's own comes back; no cursor.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_REDRAW = "\x1b[H\x1b[2J"


class View:
    """What to read and how to show it."""

    def __init__(self, session: str, data: str, *, svg_file: str | None, as_json: bool, screens: bool = False) -> None:
        self._session = session
        self._data = data
        self._svg_file = svg_file
        self._as_json = as_json
        self._screens = screens

    def once(self) -> int:
        """Show the canvas as it is now. Raises CtlError."""
        drawn = self._read()
        if self._svg_file is not None:
            self._write_svg(drawn, self._svg_file)
            return OK
        if self._as_json:
            console.out(jsontext.pretty(model.as_json(drawn)) + "\n")
            return OK
        columns = _columns()
        lines = text.draw(drawn, columns, colour=console.wants_colour(console.STDOUT, os.environ))
        console.paint("\n".join([*lines, "", *text.legend(drawn, columns)]).rstrip("\n") + "\n")
        return OK

    def watch(self) -> int:
        """Show it again whenever it changes, until KeyboardInterrupt or until nobody reads it any more.

        An app that is away is waited for.
        """
        screen = os.isatty(console.STDOUT) and self._svg_file is None and not self._as_json
        # As with Ctrl-C, so that the terminal is as it was afterwards.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if screen:
            console.paint(_ENTER)
        try:
            self._follow(screen=screen)
        finally:
            if screen:
                console.paint(_LEAVE)
        return OK

    def _follow(self, *, screen: bool) -> None:
        shown: tuple | None = None
        while not _reader_is_gone():
            size = shutil.get_terminal_size() if screen else None
            try:
                now: tuple = (self._read(), size)
            except CtlError as error:
                now = (str(error), size)
            if now != shown:
                shown = now
                self._show(now[0], size)
            time.sleep(REDRAW_S)

    def _show(self, drawn, size) -> None:
        if isinstance(drawn, str):
            console.paint(_REDRAW if size else "", console.STDERR)
            console.err(f"termsprawlctl: {drawn}")
        elif self._svg_file is not None:
            self._write_svg(drawn, self._svg_file)
        elif self._as_json:
            console.out(jsontext.compact(model.as_json(drawn)) + "\n")
        elif size is None:
            console.out("\n".join(text.draw(drawn, DEFAULT_COLUMNS)) + "\n\n")
        else:
            colour = console.wants_colour(console.STDOUT, os.environ)
            lines = text.draw(drawn, size.columns, size.lines - 1, colour=colour)
            console.paint(_REDRAW + "\r\n".join(lines[: size.lines - 1]))

    def _read(self) -> model.Picture:
        return source.read(self._session, self._data, os.getcwd(), screens=self._screens)

    def _write_svg(self, drawn: model.Picture, path: str) -> None:
        document = svg.draw(drawn)
        if path == "-":
            console.out(document)
            return
        try:
            write_output(path, document.encode("utf-8"))
        except OSError as error:
            raise CtlError(f"cannot write {path}: {error.strerror}.", "Name a file in a writable directory.") from None


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more (`| head -1`)."""
    poll = select.poll()
    poll.register(console.STDOUT, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _columns() -> int:
    return shutil.get_terminal_size().columns if os.isatty(console.STDOUT) else DEFAULT_COLUMNS
