"""Text for labels and summaries: clean, one line, short. Pure functions."""

from __future__ import annotations

import os
import re

from ...base.text import ELLIPSIS, shorten

MAX_LABEL = 200
MAX_COMMAND = 300
MAX_OUTPUT = 240  # characters of a command's output that a summary line shows
MAX_TEXT = 600
# A message or a thought that is kept as a step; the answer itself is never shortened here.
MAX_KEPT = 2000
# Of longer texts only both ends are looked at: cleaning 5 MB to show 240 characters would
# take a second.
ENDS = 4000

# CSI and OSC sequences, the other two-byte escapes, and controls without a meaning in plain text.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """Without terminal escapes and control characters; line ends as \\n, tabs kept."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")


def one_line(text: str, limit: int) -> str:
    """Cleaned, white space folded, at most `limit` characters; the middle goes where it is longer."""
    if len(text) > 2 * ENDS:
        text = f"{text[:ENDS]} {ELLIPSIS} {text[-ENDS:]}"
    return shorten(_SPACE.sub(" ", plain(text)).strip(), limit)


def clip(text: str, limit: int = MAX_KEPT) -> str:
    """Cleaned, lines kept, at most `limit` characters."""
    if len(text) > 2 * max(limit, ENDS):
        text = f"{text[:limit]} {ELLIPSIS} {text[-limit:]}"
    return shorten(plain(text).strip(), limit)


def unwrapped(command: str) -> str:
    """A command without the `/bin/bash -lc '…'` that an agent put around it."""
    if not command.startswith(("/", "bash ", "sh ", "zsh ")) or " -" not in command[:40] or len(command) > 20_000:
        return command
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if (
        len(words) == 3
        and words[1] in ("-c", "-lc", "-ic")
        and os.path.basename(words[0]) in ("bash", "sh", "zsh", "dash")
    ):
        return words[2]
    return command


def relative(path: str, cwd: str) -> str:
    """A path as the reader of a summary wants it: relative where it lies under cwd."""
    for base in {cwd, os.path.realpath(cwd)} if cwd else ():
        if path.startswith(base.rstrip("/") + "/"):
            return path[len(base.rstrip("/")) + 1 :]
    return path
