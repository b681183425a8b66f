"""What the kernel says of a process."""

from __future__ import annotations

import os
from pathlib import Path


def state(pid: int) -> str:
    """The letter of a process's state, "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    return state(pid) not in ("", "Z", "X")


def running() -> list[int]:
    """All processes of the machine but zombies."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and is_alive(int(name))]
