"""The C library's memory, shared by all threads of this process."""

from __future__ import annotations

_M_ARENA_MAX = -8  # <malloc.h> of glibc


def share() -> None:
    """Have threads share one pool of memory from now on, where the C library is glibc.

    It gives each thread a pool of its own otherwise, up to eight for each core, and each keeps what the largest
    output that it ever read needed. Python runs one thread at a time, so there is nothing to be won by that: a
    server that had done a hundred runs had twice the memory that it used.
    """
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):
        return  # another C library
