"""The rows of a terminal's screen and what moves, writes and erases on them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Mark:
    """A place in a grid: the rows as they were, and the row and column of the cursor."""

    rows: list[Row]
    cells: list[list[str]]
    row: Row
    column: int


class Grid:
    """A screen of `columns` by `height`, with the history above it when `keeps_history`.

    Lines and columns count from 0 at the top left of the screen.
    """

    def __init__(self, columns: int, height: int, *, keeps_history: bool) -> None:
        self.columns = max(2, min(columns, MAX_SIZE))
        self.height = max(2, min(height, MAX_SIZE))
        self.wraps = True  # whether text goes on in the next row at the right edge
        self.line = self.column = 0
        self._keeps_history = keeps_history
        self._rows: list[Row] = []
        self._first = 0  # index of the screen's first row; what stands before is history
        self._top, self._bottom = 0, self.height - 1  # the region that scrolls
        self._full = False  # the cursor stands behind the last column
        self._saved = (0, 0)

    def lines(self) -> list[str]:
        """Everything, history first; wrapped rows joined, trailing blanks left out."""
        return self._joined(self._rows)

    @staticmethod
    def _joined(rows: list[Row]) -> list[str]:
        lines, whole = [], ""
        for row in rows:
            whole += "".join(row.cells)
            if not row.wrapped:
                lines.append(whole.rstrip(" "))
                whole = ""
        return [*lines, whole.rstrip(" ")] if whole else lines

    def mark(self) -> Mark:
        """The place of the cursor, for lines_since()."""
        row = self._row()
        column = self.columns if self._full else self.column
        rows = self._rows[-2 * self.height :]
        return Mark(rows, [list(one.cells) for one in rows], row, column)

    def lines_since(self, mark: Mark) -> list[str]:
        """What is new since a mark, as lines() gives it; the line in which it lies goes on after it, if it can."""
        places = {id(row): place for place, row in enumerate(self._rows)}
        first = places.get(id(mark.row))
        changed = [
            places[id(row)]
            for row, cells in zip(mark.rows, mark.cells)
            if row is not mark.row and id(row) in places and row.cells != cells
        ]
        if first is None:  # its row is gone: what is left of the screen is new
            return self._to_cursor(self._rows[min(changed, default=0) :], min(changed, default=0))
        before = next(cells for row, cells in zip(mark.rows, mark.cells) if row is mark.row)[: mark.column]
        goes_on = mark.row.cells[: len(before)] == before and min(changed, default=first) >= first
        if goes_on:
            rest = Row()
            rest.cells, rest.wrapped = mark.row.cells[mark.column :], mark.row.wrapped
            return self._to_cursor([rest, *self._rows[first + 1 :]], first)
        start = min([first, *changed])
        while start > 0 and self._rows[start - 1].wrapped:
            start -= 1
        return self._to_cursor(self._rows[start:], start)

    def _to_cursor(self, rows: list[Row], start: int) -> list[str]:
        """The lines of the rows from `start` on, up to the cursor's row at least: a line that has ended shows it."""
        lines = self._joined(rows)
        while lines and not lines[-1]:
            lines.pop()
        last = next((place for place in range(len(rows) - 1, -1, -1) if any(rows[place].cells)), -1)
        below = self._first + self.line - (start + last)
        return lines + [""] * below if below > 0 else lines

    def room(self) -> int:
        """How many columns are free in the cursor's row, from the cursor on."""
        return 0 if self._full else self.columns - self.column

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
        at = self.column if self._full else self.column - 1
        if 0 < at < len(cells) and cells[at] == "":
            at -= 1
        if 0 <= at < len(cells) and len(cells[at]) < MAX_CELL_CHARS:
            cells[at] += character

    def _begin_row_for(self, width: int) -> None:
        """Go on in the next row when the line is full, as terminals do with the next character only."""
        if self._full or (width > 1 and self.wraps and self.column + width > self.columns):
            self._row().wrapped = True
            self.column = 0
            self.line_feed()

    def _advance(self, width: int) -> None:
        self.column += width
        if self.column >= self.columns:
            self.column = self.columns - 1
            self._full = self.wraps

    # -- moving

    def move(self, line: int, column: int) -> None:
        self.line = max(0, min(line, self.height - 1))
        self.column = max(0, min(column, self.columns - 1))
        self._full = False

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

    def tab(self) -> None:
        self.move(self.line, (self.column // TAB_WIDTH + 1) * TAB_WIDTH)

    def line_feed(self) -> None:
        """Down one line in the same column; at the bottom everything moves up."""
        self._full = False
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
        if self._top > 0 or not self._keeps_history:
            self._take_out(count, self._top)
            return
        self._row(self._bottom)
        for _ in range(count):
            self._rows.insert(self._first + self._bottom + 1, Row())
            self._first += 1
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
            del self._rows[self._first + line]
            self._rows.insert(self._first + self._bottom, Row())
        self._cut_before(line)

    def _put_in(self, count: int, line: int) -> None:
        self._row(self._bottom)
        for _ in range(min(count, self._bottom - line + 1)):
            del self._rows[self._first + self._bottom]
            self._rows.insert(self._first + line, Row())
        self._cut_before(line)

    def _cut_before(self, line: int) -> None:
        """The row above is no longer the beginning of this one."""
        if self._first + line > 0:
            self._rows[self._first + line - 1].wrapped = False

    # -- erasing

    def erase_line(self, part: int) -> None:
        """The cursor's row: 0 from the cursor on, 1 up to it, 2 all."""
        row = self._row()
        if part == 1:
            row.cells[: self.column + 1] = [" "] * min(self.column + 1, len(row.cells))
            return
        del row.cells[self.column if part == 0 else 0 :]
        row.wrapped = False

    def erase_screen(self, part: int) -> None:
        """0 from the cursor on, 1 up to it, 2 all; a whole screen goes up into the history."""
        if part == 2 or (part == 0 and (self.line, self.column) == (0, 0)):
            self.put_away()
        elif part == 0:
            self.erase_line(0)
            del self._rows[self._first + self.line + 1 :]
        elif part == 1:
            for line in range(self.line):
                row = self._row(line)
                row.cells.clear()
                row.wrapped = False
            self.erase_line(1)

    def put_away(self) -> None:
        """Clear the screen. What stood there was output, too: it becomes history."""
        if not self._keeps_history:
            self._rows.clear()
            return
        while len(self._rows) > self._first and not self._rows[-1].cells:
            self._rows.pop()
        self._first = len(self._rows)
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
        index = self._first + (self.line if line is None else line)
        while index >= len(self._rows):
            self._rows.append(Row())
        return self._rows[index]

    def _filled_row(self) -> Row:
        """The cursor's row, with blanks up to the cursor."""
        row = self._row()
        missing = self.column - len(row.cells)
        if missing > 0:
            row.cells.extend(" " * missing)
        return row

    def _trim_history(self) -> None:
        # A batch at a time: taking one row off the front of a list moves all others.
        if self._first > 2 * MAX_HISTORY_ROWS:
            del self._rows[:MAX_HISTORY_ROWS]
            self._first -= MAX_HISTORY_ROWS


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
