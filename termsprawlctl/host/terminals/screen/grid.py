"""The rows of a terminal's screen and what moves, writes and erases on them."""

from __future__ import annotations

import unicodedata

MAX_SIZE = 1_000  # columns and rows
# Of what has scrolled away; far more than any answer holds.
MAX_HISTORY_ROWS = 20_000
TAB_WIDTH = 8
MAX_CELL_CHARS = 32  # a letter and its marks; tmux keeps no more either


class Row:
    __slots__ = ("cells", "wrapped")

    def __init__(self) -> None:
        self.cells: list[str] = []  # one string a column; "" is the second half of a wide character
        self.wrapped = False  # whether the next row goes on with this one's line


class Grid:
    """A screen of `columns` by `height`, with the history above it when `keeps_history`.

    Lines and columns count from 0 at the top left of the screen.
    """

    def __init__(self, columns: int, height: int, *, keeps_history: bool) -> None:
        self.columns = max(2, min(columns, MAX_SIZE))
        self.height = max(2, min(height, MAX_SIZE))
        self.wraps = True  # whether text goes on in the next row at the right edge
        self.line = self.column = 0
        self.keeps_history = keeps_history
        self.rows: list[Row] = []  # history first; missing ones are blank
        self.first = 0  # index of the screen's first row
        self._top, self._bottom = 0, self.height - 1  # the region that scrolls
        self.full = False  # the cursor stands behind the last column
        self._saved = (0, 0)

    def lines(self) -> list[str]:
        """Everything, history first; wrapped rows joined, trailing blanks left out."""
        return joined(self.rows)

    def place(self) -> int:
        """The index of the cursor's row."""
        self._row()
        return self.first + self.line

    def room(self) -> int:
        """How many columns are free in the cursor's row, from the cursor on."""
        return 0 if self.full else self.columns - self.column

    # -- writing

    def put(self, text: str) -> None:
        """Write printable characters at the cursor."""
        if not text.isascii():
            for character in text:
                self._put_one(character, _width(character))
            return
        while text:
            self._begin_row_for(1)
            room = self.columns - self.column
            piece, text = text[:room], text[room:]
            cells = self._filled_row().cells
            cells[self.column : self.column + len(piece)] = piece
            self._advance(len(piece))

    def _put_one(self, character: str, width: int) -> None:
        if width == 0:
            self._combine(character)
            return
        self._begin_row_for(width)
        cells = self._filled_row().cells
        cells[self.column : self.column + width] = [character, ""][:width]
        self._advance(width)

    def _combine(self, character: str) -> None:
        cells = self._row().cells
        at = self.column if self.full else self.column - 1
        if 0 < at < len(cells) and cells[at] == "":
            at -= 1
        if 0 <= at < len(cells) and len(cells[at]) < MAX_CELL_CHARS:
            cells[at] += character

    def _begin_row_for(self, width: int) -> None:
        """Go on in the next row when the line is full, as terminals do with the next character only."""
        if self.full or (width > 1 and self.wraps and self.column + width > self.columns):
            self._row().wrapped = True
            self.column = 0
            self.line_feed()

    def _advance(self, width: int) -> None:
        self.column += width
        if self.column >= self.columns:
            self.column = self.columns - 1
            self.full = self.wraps

    # -- moving

    def move(self, line: int, column: int) -> None:
        self.line = max(0, min(line, self.height - 1))
        self.column = max(0, min(column, self.columns - 1))
        self.full = False

    def move_lines(self, count: int) -> None:
        """Up (negative) or down, not out of the scroll region."""
        line = self.line + count
        if count < 0 and self.line >= self._top:
            line = max(line, self._top)
        elif count > 0 and self.line <= self._bottom:
            line = min(line, self._bottom)
        self.move(line, self.column)

    def move_to_start(self, count: int) -> None:
        """The same, to the beginning of that line."""
        self.move_lines(count)
        self.move(self.line, 0)

    def backspace(self) -> None:
        """One to the left; from the beginning of a wrapped line's row, as in tmux, to the end of the one above."""
        above = self.first + self.line - 1
        if self.column == 0 and self.line > 0 and above < len(self.rows) and self.rows[above].wrapped:
            self.move(self.line - 1, self.columns - 1)
        else:
            self.move(self.line, self.column - 1)

    def tab(self) -> None:
        self.move(self.line, (self.column // TAB_WIDTH + 1) * TAB_WIDTH)

    def line_feed(self) -> None:
        """Down one line in the same column; at the bottom everything moves up."""
        self.full = False
        if self.line != self._bottom:
            self.line = min(self.line + 1, self.height - 1)
        else:
            self.scroll_up(1)

    def reverse_line_feed(self) -> None:
        if self.line == self._top:
            self.scroll_down(1)
        else:
            self.move(self.line - 1, self.column)

    def save_cursor(self) -> None:
        self._saved = (self.line, self.column)

    def restore_cursor(self) -> None:
        self.move(*self._saved)

    def set_region(self, top: int, bottom: int) -> None:
        """Let only the lines from top to bottom scroll; the cursor goes home."""
        bottom = min(bottom, self.height - 1)
        if 0 <= top < bottom:
            self._top, self._bottom = top, bottom
            self.move(0, 0)

    def scroll_up(self, count: int) -> None:
        """Move the region's lines up; what leaves the top of the screen becomes history."""
        count = min(count, self._bottom - self._top + 1)
        if self._top > 0 or not self.keeps_history:
            self._take_out(count, self._top)
            return
        self._row(self._bottom)
        for _ in range(count):
            self.rows.insert(self.first + self._bottom + 1, Row())
            self.first += 1
        self._trim_history()

    def scroll_down(self, count: int) -> None:
        """Move the region's lines down; what leaves at its bottom is gone."""
        self._put_in(count, self._top)

    def insert_lines(self, count: int) -> None:
        if self._top <= self.line <= self._bottom:
            self._put_in(count, self.line)

    def delete_lines(self, count: int) -> None:
        if self._top <= self.line <= self._bottom:
            self._take_out(count, self.line)

    def _take_out(self, count: int, line: int) -> None:
        self._row(self._bottom)
        for _ in range(min(count, self._bottom - line + 1)):
            del self.rows[self.first + line]
            self.rows.insert(self.first + self._bottom, Row())
        self._cut_before(line)

    def _put_in(self, count: int, line: int) -> None:
        self._row(self._bottom)
        for _ in range(min(count, self._bottom - line + 1)):
            del self.rows[self.first + self._bottom]
            self.rows.insert(self.first + line, Row())
        self._cut_before(line)

    def _cut_before(self, line: int) -> None:
        """The row above is no longer the beginning of this one."""
        if self.first + line > 0:
            self.rows[self.first + line - 1].wrapped = False

    # -- erasing

    def erase_line(self, part: int) -> None:
        """The cursor's row: 0 from the cursor on, 1 up to it, 2 all."""
        row = self._row()
        if part == 1:
            row.cells[: self.column + 1] = [" "] * min(self.column + 1, len(row.cells))
            return
        if part == 0 and self.full:  # as tmux has it: there is nothing behind the last column
            return
        if row.cells and (part == 2 or self.column == 0):
            self._cut_before(self.line)
        del row.cells[self.column if part == 0 else 0 :]
        row.wrapped = False

    def erase_screen(self, part: int) -> None:
        """0 from the cursor on, 1 up to it, 2 all; a whole screen goes up into the history."""
        if part == 2 or (part == 0 and (self.line, self.column) == (0, 0)):
            self.put_away()
        elif part == 0:
            self.erase_line(0)
            del self.rows[self.first + self.line + 1 :]
        elif part == 1:
            for line in range(self.line):
                row = self._row(line)
                row.cells.clear()
                row.wrapped = False
            self.erase_line(1)

    def put_away(self) -> None:
        """Clear the screen. What stood there was output, too: it becomes history."""
        if not self.keeps_history:
            self.rows.clear()
            return
        while len(self.rows) > self.first and not self.rows[-1].cells:
            self.rows.pop()
        self.first = len(self.rows)
        self._trim_history()

    def insert_characters(self, count: int) -> None:
        cells = self._filled_row().cells
        cells[self.column : self.column] = [" "] * min(count, self.columns)
        del cells[self.columns :]

    def delete_characters(self, count: int) -> None:
        del self._row().cells[self.column : self.column + count]

    def erase_characters(self, count: int) -> None:
        cells = self._row().cells
        end = min(self.column + count, len(cells))
        cells[self.column : end] = [" "] * (end - self.column)

    # -- rows

    def _row(self, line: int | None = None) -> Row:
        index = self.first + (self.line if line is None else line)
        while index >= len(self.rows):
            self.rows.append(Row())
        return self.rows[index]

    def _filled_row(self) -> Row:
        """The cursor's row, with blanks up to the cursor."""
        row = self._row()
        missing = self.column - len(row.cells)
        if missing > 0:
            row.cells.extend(" " * missing)
        return row

    def _trim_history(self) -> None:
        # A batch at a time: taking one row off the front of a list moves all others.
        if self.first > 2 * MAX_HISTORY_ROWS:
            del self.rows[:MAX_HISTORY_ROWS]
            self.first -= MAX_HISTORY_ROWS


def joined(rows: list[Row]) -> list[str]:
    """The lines of rows: wrapped ones as one, trailing blanks left out."""
    lines, whole = [], ""
    for row in rows:
        whole += "".join(row.cells)
        if not row.wrapped:
            lines.append(whole.rstrip(" "))
            whole = ""
    return [*lines, whole.rstrip(" ")] if whole else lines


def cells_of(row: str, columns: int) -> str:
    """A row as one character a column, filled with blanks; the second half of a wide one is NUL."""
    cells = "".join(character + "\0" * (_width(character) - 1) for character in row if _width(character))
    return cells[:columns].ljust(columns)


def _width(character: str) -> int:
    """How many columns a character takes."""
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
