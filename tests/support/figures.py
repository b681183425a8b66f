"""Figures of a benchmark: rows that compare, a table for people, and the same for machines."""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections import namedtuple

# The Python that everything is measured with, and its own binary, not a version manager's shim.
PYTHON = os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")

# key: what it is found by; what: in words; ours, other: values in `unit`, other is None where there is nothing to
# compare with; against: what the other is; absent: why nothing was measured, else "".
_Row = namedtuple("_Row", "key what ours other against unit absent", defaults=("",))


class Row(_Row):
    """One comparison."""

    __slots__ = ()

    @property
    def ratio(self) -> float | None:
        """Ours in units of the other's."""
        return self.ours / self.other if self.other and self.ours is not None else None

    def is_whole(self) -> bool:
        """Whether it says something, or why it does not."""
        values = [self.ours] if self.other is None else [self.ours, self.ratio]
        return bool(self.absent) or all(value is not None and math.isfinite(value) for value in values)

    def as_dict(self) -> dict:
        return {**self._asdict(), "ratio": self.ratio}


def compared(key: str, what: str, ours: list[float], others: dict, unit: str, factor: float = 1.0) -> list[Row]:
    """A row for each of the others: name -> (key, its measurements, or the reason why there are none).

    Medians are compared; `factor` makes measurements into the unit.
    """
    mine = statistics.median(ours) * factor
    rows = []
    for name, (end, measured) in others.items():
        full = f"{key}/{end}"
        if isinstance(measured, str):
            rows.append(Row(full, what, mine, None, name, unit, measured))
        else:
            rows.append(Row(full, what, mine, statistics.median(measured) * factor, name, unit))
    return rows


def table(rows: list[Row]) -> str:
    """For people; the ratio is ours in units of the other's."""
    lines = [["", "ours", "the other's", "ratio", "against"]]
    for row in rows:
        mine = "-" if row.ours is None else f"{_number(row.ours)} {row.unit}"
        other = "-" if row.other is None else f"{_number(row.other)} {row.unit}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f} x"
        reason = f" (not measured: {row.absent})" if row.absent else ""
        lines.append([row.what, mine, other, ratio, f"{row.against}{reason}"])
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    shown = []
    for what, *cells, against in lines:
        middle = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:]))
        shown.append(f"{what.ljust(widths[0])}  {middle}  {against}".rstrip())
    return "\n".join(shown)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
