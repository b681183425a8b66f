"""A grid of character cells: wide characters take two, later ones cover earlier ones. Pure."""

from __future__ import annotations

import unicodedata

_COVERED = ""  # the right half of a wide character


def width(text: str) -> int:
    """How many cells a text takes in a terminal."""
    return sum(map(_cells, text))


def clipped(text: str, cells: int) -> str:
    """The text in at most so many cells, with … where something had to go."""
    if width(text) <= cells:
        return text
    kept, used = [], 0
    for character in text:
        used += _cells(character)
        if used > cells - 1:
            break
        kept.append(character)
    return "".join(kept) + "…" if cells > 0 else ""


class Grid:
    """Cells by (column, row); a style is a SGR number as text, "" for none."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self._cells = [[" "] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]

    def put(self, column: int, row: int, text: str, style: str = "") -> None:
        """Write a text; what lies outside of the grid is left out."""
        for character in text:
            size = _cells(character)
            if size == 0 or not 0 <= row < self.rows:
                continue
            if column >= 0 and column + size <= self.columns:
                self._set(column, row, character, style)
                if size == 2:
                    self._set(column + 1, row, _COVERED, style)
                    self._cells[row][column] = character
            column += size

    def is_blank(self, column: int, row: int) -> bool:
        """Whether nothing was written there yet; outside of the grid nothing can be."""
        return 0 <= row < self.rows and 0 <= column < self.columns and self._cells[row][column] == " "

    def lines(self, *, colour: bool) -> list[str]:
        """The rows as text, without blanks at their ends."""
        if not colour:
            return ["".join(cells).rstrip() for cells in self._cells]
        return [_coloured(cells, styles) for cells, styles in zip(self._cells, self._styles)]

    def _set(self, column: int, row: int, character: str, style: str) -> None:
        cells = self._cells[row]
        if cells[column] == _COVERED and column:
            cells[column - 1] = " "
        if column + 1 < self.columns and cells[column + 1] == _COVERED:
            cells[column + 1] = " "
        cells[column] = character
        self._styles[row][column] = style


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _coloured(cells: list[str], styles: list[str]) -> str:
    end = len("".join(cells).rstrip())
    parts, now, length = [], "", 0
    for character, style in zip(cells, styles):
        if length >= end:
            break
        if style != now:
            parts.append(f"\x1b[{style}m" if style else "\x1b[0m")
            now = style
        parts.append(character)
        length += len(character)
    return "".join(parts) + ("\x1b[0m" if now else "")
