"""The word that somebody meant who mistyped one."""

from __future__ import annotations


def suggestion(word: str, known) -> str:
    """`Did you mean ...?` with the nearest of the known words, or what begins like it; "" where none is near."""
    import difflib  # for those who mistype only

    words = list(known)
    lower = {one.lower(): one for one in words}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    # Half of a word is no mistake in spelling, but as clear.
    near = near or [one for one in lower if len(word) >= 3 and one.startswith(word.lower())][:2]
    return f"Did you mean {' or '.join(lower[one] for one in near)}?" if near else ""
