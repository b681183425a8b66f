"""What is new on a grid since a mark: each line once, as it stands there.

One part after the other reads like the whole. A line that goes on continues where the part
before it ended; one that was changed meanwhile stands in the new part again, as a line of
its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from .grid import Grid, Row, joined

# What stands so far to the right of the cursor is the other half of a prompt. It moves with the line
# that is typed between them, and belongs to that.
_GAP = "  "


@dataclass(frozen=True)
class Mark:
    """A moment: the rows as they were, the cursor's row among them, and how many of its columns count as read."""

    rows: list[Row]
    cells: list[list[str]]
    row: Row
    column: int


def mark(grid: Grid) -> Mark:
    """The grid as it is now."""
    row = grid.rows[grid.place()]
    rows = grid.rows[-2 * grid.height :]
    return Mark(rows, [list(one.cells) for one in rows], row, _end(grid, row, is_whole=False))


def text_since(grid: Grid, since: Mark, *, is_whole: bool) -> str:
    """What is new; the cursor's line with its blanks up to there, and with the right half of a prompt if `is_whole`."""
    places = {id(row): place for place, row in enumerate(grid.rows)}
    first = places.get(id(since.row))
    changed = [
        places[id(row)]
        for row, cells in zip(since.rows, since.cells)
        if row is not since.row and id(row) in places and row.cells != cells
    ]
    before = next(cells for row, cells in zip(since.rows, since.cells) if row is since.row)[: since.column]
    if first is None:  # its row is gone: what is left of the screen is new
        return "\n" * any(before) + _lines(grid, min(changed, default=_first_after(grid, since)), 0, is_whole=is_whole)
    if since.row.cells[: len(before)] == before and min(changed, default=first) >= first:
        return _lines(grid, first, since.column, is_whole=is_whole)
    start = min([first, *changed])
    while start > 0 and grid.rows[start - 1].wrapped:
        start -= 1
    return "\n" + _lines(grid, start, 0, is_whole=is_whole)


def _first_after(grid: Grid, since: Mark) -> int:
    """The place behind the last row of a mark that is still there."""
    old = {id(row) for row in since.rows}
    return next((place + 1 for place in range(len(grid.rows) - 1, -1, -1) if id(grid.rows[place]) in old), 0)


def _lines(grid: Grid, start: int, column: int, *, is_whole: bool) -> str:
    """The text from a place on, down to the cursor's row or the last one that is not blank."""
    cursor, last = grid.place(), len(grid.rows) - 1
    while last >= start and not any(grid.rows[last].cells):
        last -= 1
    rows = [_behind(grid.rows[start], column), *grid.rows[start + 1 :]]
    if cursor < start or last > cursor:  # a list below a prompt, for example
        return "\n".join(joined(rows[: last + 1 - start]))
    begin = cursor
    while begin > start and grid.rows[begin - 1].wrapped:
        begin -= 1
    row = grid.rows[cursor]
    cells = row.cells[column if cursor == start else 0 : _end(grid, row, is_whole=is_whole)]
    unfinished = "".join("".join(one.cells) for one in rows[begin - start : cursor - start]) + "".join(cells)
    return "\n".join([*joined(rows[: begin - start]), unfinished])


def _behind(row: Row, column: int) -> Row:
    rest = Row()
    rest.cells, rest.wrapped = row.cells[column:], row.wrapped
    return rest


def _end(grid: Grid, row: Row, *, is_whole: bool) -> int:
    """How many columns of the cursor's row count: to the cursor, and what stands behind it."""
    column = grid.columns if grid.full else grid.column
    behind = "".join(row.cells[column:]).rstrip(" ")
    is_apart = behind.startswith(_GAP) and any(cell.strip(" ") for cell in row.cells[:column])
    if not behind or (is_apart and not is_whole):
        return column
    return column + max(at + 1 for at, cell in enumerate(row.cells[column:]) if cell.strip(" "))
