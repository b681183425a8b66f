"""One turn of a recorded conversation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """`who`: "user" or "assistant"; `time`: ISO 8601 as the transcript has it, or ""."""

    who: str
    time: str
    text: str
