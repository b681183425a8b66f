"""Another size for a grid, as tmux does it: lines are wrapped anew, the cursor stays at its character."""

from __future__ import annotations

from .grid import MAX_SIZE, Grid, Row


def resize(grid: Grid, columns: int, height: int) -> None:
    """Give a grid another size; its scroll region is the whole screen again."""
    columns, height = (max(2, min(size, MAX_SIZE)) for size in (columns, height))
    place = grid.place()
    _fill(grid)
    del grid.rows[max(place + 1, grid.first + height) :]  # first what is below the cursor
    grid.first = max(0, len(grid.rows) - height)
    grid.height = height
    _fill(grid)
    column = grid.column + grid.full
    if columns != grid.columns and grid.keeps_history:
        place, column = _rewrap(grid, columns, place, column)
        grid.first = max(0, len(grid.rows) - height)
    grid.columns = columns
    grid.set_region(0, height - 1)
    grid.move(place - grid.first, column)
    grid.full = column >= columns


def _fill(grid: Grid) -> None:
    """Have all rows of the screen there."""
    grid.rows.extend(Row() for _ in range(grid.first + grid.height - len(grid.rows)))


def _rewrap(grid: Grid, columns: int, place: int, column: int) -> tuple[int, int]:
    """Wrap all lines anew; returns where a place and column of before are now."""
    rows: list[Row] = []
    cells: list[str] = []
    found = (0, 0)
    cursor: int | None = None
    for index, row in enumerate(grid.rows):
        if index == place:
            cursor = len(cells) + column
        cells += row.cells
        if row.wrapped and index + 1 < len(grid.rows):
            continue
        wrapped = _wrapped(cells, columns)
        if cursor is not None:
            found = _found(wrapped, cursor, len(rows))
            cursor = None
        rows += wrapped
        cells = []
    grid.rows[:] = rows
    return found


def _wrapped(cells: list[str], columns: int) -> list[Row]:
    """One line as rows; a character of two columns is not cut."""
    rows = [Row()]
    while len(cells) > columns:
        size = columns - (cells[columns] == "")
        rows[-1].cells, cells = cells[:size], cells[size:]
        rows[-1].wrapped = True
        rows.append(Row())
    rows[-1].cells = cells
    return rows


def _found(rows: list[Row], at: int, first: int) -> tuple[int, int]:
    """The place and column of a character of a line, whose first row has the place `first`."""
    for index, row in enumerate(rows[:-1]):
        if at < len(row.cells):
            return first + index, at
        at -= len(row.cells)
    return first + len(rows) - 1, at
