"""Commands for tmux without waiting for them: each run is a client of its own that attaches to nothing.

So the user's hooks do not fire for us, and `list-clients` shows only people.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...base.errors import CtlError
from ...base.tmux import Tmux

# A tmux that takes longer is stuck.
ANSWER_S = 1.0
_NO_SERVER = ("no server running", "error connecting", "lost server", "server exited")


@dataclass(frozen=True)
class Answer:
    """What came of a run: whether tmux agreed to all of it, the lines of its output, and its words where it did not."""

    agreed: bool
    lines: list[str]
    words: str

    def is_from_nobody(self) -> bool:
        """Whether there is no server any more."""
        return not self.agreed and self.words.startswith(_NO_SERVER)


async def ask(tmux: Tmux, *commands: tuple[str, ...], timeout_s: float = ANSWER_S) -> Answer | None:
    """Run commands in one step, up to the first that tmux refuses; None when it does not answer."""
    # In a thread: asyncio's own would wait for pipes that a stopped server holds.
    return await asyncio.get_running_loop().run_in_executor(None, _run, tmux, commands, timeout_s)


def _run(tmux: Tmux, commands: tuple[tuple[str, ...], ...], timeout_s: float) -> Answer | None:
    try:
        # A process group of its own: Ctrl-C in our terminal is for us.
        done = tmux.apart().completed(*commands, timeout_s=timeout_s)
    except CtlError:
        return None
    text = done.stdout.decode("utf-8", "replace")
    # Names may hold U+2028 and its like, at which splitlines() cuts, too.
    lines = text.removesuffix("\n").split("\n") if text else []
    return Answer(done.status == 0, lines, done.stderr.decode("utf-8", "replace").strip())
