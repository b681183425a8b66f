"""The picture in character cells: boxes to scale, links as lines with an arrow. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .grid import Grid, clipped, width
from .model import Box, Picture, bounds, label, state

# A cell of a terminal is about twice as high as wide.
ASPECT = 2.0
# Pixels for each column at most this fine: a terminal of 720 pixels then takes 45 columns.
FINEST_PX = 16.0
# Smaller boxes could not be seen as boxes.
MIN_COLUMNS, MIN_ROWS = 4, 3

_EDGES = {"group": "┌╌┐╎└┘", "sticky": "╭─╮│╰╯"}
_PLAIN_EDGES = "┌─┐│└┘"
_ENDED, _RUNNING, _NOTE, _GROUP, _LINK = "31", "32", "33", "2", "36"
# (came from, goes to) of a corner in a line; columns grow to the right, rows downwards.
_ARROWS = {(1, 0): "▶", (-1, 0): "◀", (0, 1): "▼", (0, -1): "▲"}
_CORNERS = {((1, 0), (0, 1)): "╮", ((1, 0), (0, -1)): "╯", ((-1, 0), (0, 1)): "╭", ((-1, 0), (0, -1)): "╰"}


@dataclass(frozen=True)
class _Place:
    """Where a box lies in the grid; right and bottom are its last cells."""

    left: int
    top: int
    right: int
    bottom: int


def draw(drawn: Picture, columns: int, rows: int | None = None, *, colour: bool = False) -> list[str]:
    """The picture in at most so many columns, and rows if they are limited."""
    if not drawn.boxes:
        return ["(the canvas is empty)"]
    scale = _scale(drawn.boxes, columns, rows)
    left, top, _, _ = bounds(drawn.boxes)
    columns = max(columns, MIN_COLUMNS)
    places = {box.id: _place(box, left, top, scale, columns) for box in drawn.boxes}
    grid = Grid(columns, max(place.bottom for place in places.values()) + 1)
    for box in drawn.boxes:
        if box.kind == "group":
            _draw_box(grid, box, places[box.id])
    for link in drawn.links:
        _draw_link(grid, places[link.sender], places[link.recipient])
    for box in drawn.boxes:
        if box.kind != "group":
            _draw_box(grid, box, places[box.id])
    return grid.lines(colour=colour)


def legend(drawn: Picture, columns: int) -> list[str]:
    """All boxes and links in words, one a line: what the picture may have no room for."""
    names = {box.id: label(box) for box in drawn.boxes}
    lines = []
    for box in drawn.boxes:
        detail = state(box)
        lines.append(f"{box.id}  {box.kind}  {names[box.id]}" + (f"  {detail}" if detail else ""))
    lines += [
        f"{link.sender} -> {link.recipient}  {names[link.sender]} may send work to {names[link.recipient]}"
        for link in drawn.links
    ]
    return [clipped(line, columns) for line in lines]


def _scale(boxes: list[Box], columns: int, rows: int | None) -> float:
    """Pixels for each column."""
    left, top, right, bottom = bounds(boxes)
    scale = max(FINEST_PX, (right - left) / columns)
    return scale if rows is None else max(scale, (bottom - top) / (rows * ASPECT))


def _place(box: Box, left: float, top: float, scale: float, columns: int) -> _Place:
    first = min(round((box.x - left) / scale), columns - MIN_COLUMNS)
    last = min(round((box.x + box.width - left) / scale) - 1, columns - 1)
    upper = round((box.y - top) / scale / ASPECT)
    lower = round((box.y + box.height - top) / scale / ASPECT) - 1
    return _Place(first, upper, max(last, first + MIN_COLUMNS - 1), max(lower, upper + MIN_ROWS - 1))


def _draw_box(grid: Grid, box: Box, place: _Place) -> None:
    style = _style(box)
    upper_left, flat, upper_right, upright, lower_left, lower_right = list(_EDGES.get(box.kind, _PLAIN_EDGES))
    inner = place.right - place.left - 1
    grid.put(place.left, place.top, upper_left + flat * inner + upper_right, style)
    for row in range(place.top + 1, place.bottom):
        grid.put(place.left, row, upright, style)
        grid.put(place.right, row, upright, style)
        if box.kind != "group":
            grid.put(place.left + 1, row, " " * inner)
    grid.put(place.left, place.bottom, lower_left + flat * inner + lower_right, style)
    if inner >= 5:
        grid.put(place.left + 1, place.top, f" {clipped(label(box), inner - 2)} ", style)
    elif place.bottom - place.top > 1:
        grid.put(place.left + 1, place.top + 1, clipped(label(box), inner), style)
    if box.kind == "group" or inner < 5:
        return
    lines = [f"{box.kind} {box.id}", *_wrapped(state(box), inner - 2)]
    if box.kind == "sticky":
        lines = _wrapped(box.text, inner - 2)
    for row, line in enumerate(lines[: place.bottom - place.top - 1], place.top + 1):
        grid.put(place.left + 2, row, clipped(line, inner - 2))


def _wrapped(text: str, cells: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and width(lines[-1]) + 1 + width(word) <= cells:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _style(box: Box) -> str:
    if box.kind == "terminal":
        return _ENDED if box.ended else _RUNNING
    return {"sticky": _NOTE, "group": _GROUP}.get(box.kind, "")


def _draw_link(grid: Grid, sender: _Place, recipient: _Place) -> None:
    """From middle to middle, first along the row, then along the column; the boxes cover its ends."""
    path = _path(_middle(sender), _middle(recipient))
    free = [at for at, (column, row) in enumerate(path) if not _is_in(column, row, sender)]
    free = [at for at in free if not _is_in(*path[at], recipient)]
    for at in free:
        came, goes = _direction(path, at - 1), _direction(path, at)
        mark = "─" if goes[0] else "│"
        if came != goes:
            mark = _CORNERS.get((came, goes), mark)
        if at == free[-1]:
            mark = _ARROWS[goes]
        if grid.is_blank(*path[at]) or at == free[-1]:
            grid.put(*path[at], mark, _LINK)


def _middle(place: _Place) -> tuple[int, int]:
    return (place.left + place.right) // 2, (place.top + place.bottom) // 2


def _is_in(column: int, row: int, place: _Place) -> bool:
    return place.left <= column <= place.right and place.top <= row <= place.bottom


def _path(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    (column, row), (last_column, last_row) = start, end
    path = [(column, row)]
    while column != last_column:
        column += 1 if last_column > column else -1
        path.append((column, row))
    while row != last_row:
        row += 1 if last_row > row else -1
        path.append((column, row))
    return path


def _direction(path: list[tuple[int, int]], at: int) -> tuple[int, int]:
    at = min(max(at, 0), len(path) - 2)
    (column, row), (next_column, next_row) = path[at], path[at + 1]
    return next_column - column, next_row - row
