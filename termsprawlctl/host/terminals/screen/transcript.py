"""What a program's output reads like: the bytes that it wrote to its terminal, as text.

A terminal without a screen. It follows what moves, erases and overwrites text (progress
bars, edited command lines, cleared screens, scroll regions), keeps what scrolled away,
joins the lines that the terminal's width wrapped, and leaves out colours, titles and
whatever full-screen programs drew on the alternate screen.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from . import news
from .grid import MAX_SIZE, Grid
from .reflow import resize

# An unfinished escape sequence that is longer than this is none.
MAX_SEQUENCE_CHARS = 4096

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<newline>\r\n)"  # two controls, but in most output half of all tokens
    r"|\x1b\[(?P<parameters>[0-?]*)(?P<middle>[ -/]*)(?P<final>[@-~])"
    # Strings: titles, hyperlinks, marks, pictures.
    r"|\x1b[\]PX^_][^\x07\x18\x1a\x1b]*(?:\x07|\x18|\x1a|\x1b\\)"
    r"|\x1b(?P<charset>[ -/]+)(?P<which>[0-~])"
    r"|\x1b(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    # An escape character that begins nothing.
    r"|\x1b(?=[\x00-\x1f\x7f-\U0010ffff])"
)
_STRINGS = (b"]", b"P", b"X", b"^", b"_")
_ALTERNATE_MODES = ("47", "1047", "1049")
# The line-drawing characters of the DEC special set, which `ESC ( 0` switches on.
_DRAWING = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


class Transcript:
    """Feed it bytes; `text()` is what there is to read.

    `line`: the screen line that the first byte is written to. `alternate`: whether the
    alternate screen is shown now; `used_alternate`: whether it was at any time.
    """

    def __init__(self, columns: int, rows: int, *, line: int = 0, alternate: bool = False) -> None:
        self.alternate = self.used_alternate = alternate
        self._main = Grid(columns, rows, keeps_history=True)
        self._main.move(line, 0)
        self._leading = self._main.line
        self._grid = self._new_alternate() if alternate else self._main
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._draws = False
        self._last = ""  # the character that was just written
        self._mark: news.Mark | None = None
        self._news = ""  # since the mark, up to the last change of the size

    def feed(self, data: bytes) -> None:
        """Take the next bytes; what is unfinished at their end waits for the next ones."""
        text = self._pending + self._decoder.decode(data)
        position, end = 0, len(text)
        while position < end:
            match = _TOKEN.match(text, position)
            if match is not None:
                position = match.end()
                self._take(match)
            elif end - position < MAX_SEQUENCE_CHARS:
                break
            else:
                position += 1  # it was no sequence: read what follows the escape character as text
        self._pending = text[position:]

    def text(self) -> str:
        """The lines of the main screen and its history, without blank ones at the end."""
        lines = self._main.lines()
        blank = 0
        # Above the line where the text began there is nothing, unless it was written to.
        while blank < min(self._leading, len(lines)) and not lines[blank]:
            blank += 1
        return "\n".join(lines[blank:]).rstrip("\n")

    def mark(self) -> None:
        """From here on since() tells."""
        self._mark = news.mark(self._main)

    def since(self, *, is_whole: bool = True) -> str:
        """What has been written since the mark, or at all, as news.text_since() gives it."""
        if self._mark is None:
            return self.text()
        return self._news + news.text_since(self._main, self._mark, is_whole=is_whole)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size from here on."""
        if (columns, rows) == (self._main.columns, self._main.height):
            return
        if self._mark is not None:
            self._news += news.text_since(self._main, self._mark, is_whole=False)
        resize(self._main, columns, rows)
        if self._mark is not None:
            self._mark = news.mark(self._main)
        if self._grid is not self._main:
            resize(self._grid, columns, rows)

    def shown_text(self) -> str:
        """The same of the screen that is shown now, the alternate one included."""
        return "\n".join(self._grid.lines()).rstrip("\n") if self.alternate else self.text()

    def _take(self, match: re.Match) -> None:
        kind = match.lastgroup
        if kind == "text":
            text = match["text"].translate(_DRAWING) if self._draws else match["text"]
            self._last = text[-1]
            self._grid.put(text)
            return
        last, self._last = self._last, ""
        if kind == "newline":
            self._grid.column = 0
            self._grid.line_feed()
        elif kind == "control":
            self._control(match["control"])
        elif kind == "final":
            if match["final"] == "b":
                # As terminals do it, up to the right edge: a few bytes must not become thousands.
                self._grid.put(last * min(_numbers(match["parameters"])[0] or 1, self._grid.room()))
            elif not match["middle"]:
                self._sequence(match["final"], match["parameters"])
        elif kind == "escape":
            self._escape(match["escape"])
        elif kind == "which" and match["charset"] == "(":
            self._draws = match["which"] == "0"

    def _control(self, character: str) -> None:
        grid = self._grid
        if character == "\r":
            grid.move(grid.line, 0)
        elif character in "\n\v\f":
            grid.line_feed()
        elif character == "\b":
            grid.backspace()
        elif character == "\t":
            grid.tab()

    def _escape(self, character: str) -> None:
        grid = self._grid
        if character == "7":
            grid.save_cursor()
        elif character == "8":
            grid.restore_cursor()
        elif character == "M":
            grid.reverse_line_feed()
        elif character == "D":
            grid.line_feed()
        elif character == "E":
            grid.move(grid.line, 0)
            grid.line_feed()
        elif character == "c":
            self._draws = False
            grid.put_away()
            grid.move(0, 0)

    def _sequence(self, final: str, parameters: str) -> None:
        if parameters[:1] == "?":
            for mode in parameters[1:].split(";"):
                self._set_mode(mode, final)
            return
        action = _ACTIONS.get(final)
        if action is not None and parameters[:1] not in ("<", "=", ">"):
            first, *rest = _numbers(parameters)
            action(self._grid, first, rest[0] if rest else 0)

    def _set_mode(self, mode: str, final: str) -> None:
        if final not in ("h", "l"):
            return
        on = final == "h"
        if mode == "7":
            self._grid.wraps = on
        elif mode in _ALTERNATE_MODES and on != self.alternate:
            self.alternate = on
            self.used_alternate = True
            if on:
                self._main.save_cursor()
                self._grid = self._new_alternate()
            else:
                self._grid = self._main
                self._grid.restore_cursor()

    def _new_alternate(self) -> Grid:
        grid = Grid(self._main.columns, self._main.height, keeps_history=False)
        grid.move(self._main.line, self._main.column)
        return grid


def whole_bytes(data: bytes) -> int:
    """How many of the bytes do not belong to a character or an escape sequence that is still unfinished."""
    end = len(data)
    # At most three bytes of a character of four.
    for back in range(1, min(4, end + 1)):
        byte = data[end - back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            end -= back if back < size else 0
            break
        if byte < 0x80:
            break
    at = data.rfind(b"\x1b", max(0, end - MAX_SEQUENCE_CHARS), end)
    if at >= 0:
        # The end of a string (ESC \\) begins with an escape character of its own.
        opened = max(data.rfind(b"\x1b" + kind, max(0, end - MAX_SEQUENCE_CHARS), end) for kind in _STRINGS)
        start = opened if opened >= 0 and data[at : at + 2] in (b"\x1b", b"\x1b\\") else at
        if _TOKEN.match(data[start:end].decode("utf-8", "replace")) is None:
            return start
    return end


def _numbers(parameters: str) -> list[int]:
    """The parameters of a sequence; one that is missing or no number is 0."""
    return [min(int(part[:6]), MAX_SIZE) if part.isdigit() else 0 for part in parameters.split(";")]


# final character of a sequence -> (grid, first parameter, second parameter); missing ones are 0.
_ACTIONS: dict[str, Callable[[Grid, int, int], object]] = {
    "@": lambda grid, first, _: grid.insert_characters(first or 1),
    "A": lambda grid, first, _: grid.move_lines(-(first or 1)),
    "B": lambda grid, first, _: grid.move_lines(first or 1),
    "C": lambda grid, first, _: grid.move(grid.line, grid.column + (first or 1)),
    "D": lambda grid, first, _: grid.move(grid.line, grid.column - (first or 1)),
    "E": lambda grid, first, _: grid.move_to_start(first or 1),
    "F": lambda grid, first, _: grid.move_to_start(-(first or 1)),
    "G": lambda grid, first, _: grid.move(grid.line, (first or 1) - 1),
    "H": lambda grid, first, second: grid.move((first or 1) - 1, (second or 1) - 1),
    "J": lambda grid, first, _: grid.erase_screen(first),
    "K": lambda grid, first, _: grid.erase_line(first),
    "L": lambda grid, first, _: grid.insert_lines(first or 1),
    "M": lambda grid, first, _: grid.delete_lines(first or 1),
    "P": lambda grid, first, _: grid.delete_characters(first or 1),
    "S": lambda grid, first, _: grid.scroll_up(first or 1),
    "T": lambda grid, first, _: grid.scroll_down(first or 1),
    "X": lambda grid, first, _: grid.erase_characters(first or 1),
    "d": lambda grid, first, _: grid.move((first or 1) - 1, grid.column),
    "r": lambda grid, first, second: grid.set_region((first or 1) - 1, (second or MAX_SIZE) - 1),
    "s": lambda grid, *_: grid.save_cursor(),
    "u": lambda grid, *_: grid.restore_cursor(),
}
_ACTIONS["`"] = _ACTIONS["G"]
_ACTIONS["a"] = _ACTIONS["C"]
_ACTIONS["e"] = _ACTIONS["B"]
_ACTIONS["f"] = _ACTIONS["H"]
