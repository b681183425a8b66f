"""What a process holds, measured again and again, and whether that is flat."""

from __future__ import annotations

import os
import statistics
import time
from collections import namedtuple
from itertools import combinations
from pathlib import Path

# done: the share of the work that was done then, 0 to 1; memory in KiB; files: in the directory for temporary ones.
Sample = namedtuple("Sample", "done rss pss anonymous descriptors threads children files")
COUNTS = ("descriptors", "threads", "children", "files")
# The proportional share (pss) is shown and not judged: it moves whenever another Python on the machine begins or
# ends, as both then share the interpreter's pages.
MEMORY = ("rss", "anonymous")
# An allocator's own ups and downs, measured on runs that leak nothing, are half of this.
MEMORY_SHARE = 0.05
MEMORY_FLOOR_KIB = 512
SETTLE_S = 10.0
STILL_S = 0.5
POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def sample(pid: int, done: float, temporary: Path | None = None, like: Sample | None = None) -> Sample:
    """A sample of a process that has nothing to do, once its counts are as low as those of an earlier one (`like`),
    or, without one, have stood still for a moment. What has not settled in time is taken as it is.
    """
    end_s = time.monotonic() + SETTLE_S
    now, since_s = _sample(pid, done, temporary), time.monotonic()
    while time.monotonic() < end_s:
        if like is not None and all(getattr(now, name) <= getattr(like, name) for name in COUNTS):
            break
        if like is None and time.monotonic() - since_s > STILL_S:
            break
        time.sleep(0.02)
        before, now = now, _sample(pid, done, temporary)
        if any(getattr(now, name) != getattr(before, name) for name in COUNTS):
            since_s = time.monotonic()
    return now


def verdict(samples: list[Sample], memory_share: float = MEMORY_SHARE) -> list[str]:
    """Why these samples are not flat, one line each; [] when they are. The first is the one after the warm-up.

    A count may never be above the first sample's. Memory is judged by its slope (the median of the slopes between
    all pairs of samples, which a single peak does not move) over the whole run, and by its level in the last
    quarter; the bound is a share of the first sample's resident memory.
    """
    first = samples[0]
    faults = []
    for name in COUNTS:
        most = max(samples, key=lambda one: getattr(one, name))
        if getattr(most, name) > getattr(first, name):
            faults.append(
                f"{name}: {getattr(most, name)} at {most.done:.0%} of the run, {getattr(first, name)} after the warm-up"
            )
    for name in MEMORY:
        bound_kib = max(MEMORY_FLOOR_KIB, memory_share * first.rss)
        slope_kib = growth(samples, name)
        late = [getattr(one, name) for one in samples if one.done >= 0.75]
        above_kib = statistics.median(late) - getattr(first, name)
        if slope_kib > bound_kib:
            faults.append(f"{name}: grows by {slope_kib:.0f} KiB in a run, {bound_kib:.0f} are allowed")
        elif above_kib > 2 * bound_kib:
            faults.append(f"{name}: {above_kib:.0f} KiB above the warm-up, {2 * bound_kib:.0f} are allowed")
    return faults


def growth(samples: list[Sample], name: str) -> float:
    """By how much a value grows in a whole run, as the median slope says."""
    slopes = [
        (getattr(later, name) - getattr(earlier, name)) / (later.done - earlier.done)
        for earlier, later in combinations(samples, 2)
        if later.done > earlier.done
    ]
    return statistics.median(slopes) if slopes else 0.0


def at_points(samples: list[Sample]) -> list[Sample]:
    """The samples nearest to the warm-up, to each quarter and to the end."""
    return [min(samples, key=lambda one: abs(one.done - point)) for point in POINTS]


def _sample(pid: int, done: float, temporary: Path | None) -> Sample:
    root = Path(f"/proc/{pid}")
    memory = {}
    for line in (root / "smaps_rollup").read_text().splitlines()[1:]:
        name, _, value = line.partition(":")
        memory[name] = int(value.split()[0])
    return Sample(
        done=done,
        rss=memory["Rss"],
        pss=memory["Pss"],
        anonymous=memory["Anonymous"],
        descriptors=len(os.listdir(root / "fd")),
        threads=len(os.listdir(root / "task")),
        children=_children(pid),
        files=0 if temporary is None else sum(len(names) + len(folders) for _, folders, names in os.walk(temporary)),
    )


def _children(pid: int) -> int:
    """How many processes have this parent; those that ended and were not waited for count, too."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            found += int(fields[1]) == pid
    return found
