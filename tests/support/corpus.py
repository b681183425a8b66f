"""The corpus of hostile input: tests/fuzz/corpus/BOUNDARY/NAME, one input a file, kept as bytes.

What a fuzzer once found goes there under a name that says what it is, and is replayed ever after.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"


def entries(boundary: str) -> list[Path]:
    """The inputs kept for a boundary, sorted by name; raises AssertionError where there is none."""
    found = sorted(path for path in (ROOT / boundary).iterdir() if path.is_file())
    assert found, f"no corpus in {ROOT / boundary}"
    return found


def name(path: Path) -> str:
    """For pytest's ids: an input by its file's name."""
    return path.name
