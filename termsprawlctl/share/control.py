"""A tmux client in control mode: commands in, their answers and tmux's events out.

It watches, and must not be felt: it has no size and gets no pane output. tmux frames the
answer to each command line as `%begin TIME NUMBER 1`, lines, `%end` or `%error`; blocks
whose last number is 0 answer somebody else's command. Everything else that starts with
`%` is an event.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import deque

from ..base.tmux import Tmux, server_environment

READ_BYTES = 65536
END_WAIT_S = 0.5


class Refused:
    """The answer of a command that failed: false, with tmux's own words."""

    __slots__ = ("words",)

    def __init__(self, words: str) -> None:
        self.words = words

    def __bool__(self) -> bool:
        return False


class Control:
    """One control client, attached to `session` (None: whichever tmux finds best).

    `on_event(words)` gets each event as its list of words (bytes as UTF-8 text);
    `on_lost()` is called once when the client has ended without close(). Raises OSError
    when tmux cannot be started.
    """

    def __init__(self, tmux: Tmux, session: str | None, on_event, on_lost) -> None:
        self._on_event = on_event
        self._on_lost = on_lost
        self._asked: deque = deque()
        self._block: list[str] | None = None
        self._block_is_ours = False
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        target = [] if session is None else ["-t", session]
        # -N: never start a server, -E: leave the session the environment that its own user gave
        # it (SSH_AUTH_SOCK and the like), -f: as said above.
        argv = [
            tmux.base[0],
            "-u",
            "-N",
            *tmux.base[1:],
            "-C",
            "attach-session",
            "-E",
            "-f",
            "ignore-size,no-output",
            *target,
        ]
        self._output, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
                argv,
                stdin=subprocess.PIPE,
                stdout=theirs,
                stderr=subprocess.DEVNULL,
                env=server_environment(),
                start_new_session=True,  # Ctrl-C in our terminal is for us
                # The client holds our end as well: should we be killed, its output does not
                # break. A tmux server (3.3a) with output for a broken pipe keeps the client
                # for ever, and then cannot even be ended itself.
                pass_fds=(self._output,),
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)
        self.closed = False

    def ask(self, commands: list[str], done) -> None:
        """Send command lines in one go; done(answers) gets one per command once all are there.

        An answer is its list of lines, or Refused where the command failed. done(None) says
        that the client was lost first; after close() nothing is called any more.
        """
        if self.closed:
            return
        self._asked.append((len(commands), [], done))
        try:
            os.write(self._process.stdin.fileno(), "".join(f"{command}\n" for command in commands).encode())
        except OSError:
            # Gone, or stuck with a full pipe: of no use either way.
            self._loop.call_soon(self._lose)

    def close(self) -> None:
        """End the client. Harmless when done twice."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._output)
        self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            # It waits for a server that does not answer.
            self._process.kill()
            self._process.wait()
        os.close(self._output)

    def _lose(self) -> None:
        if self.closed:
            return
        self.close()
        asked, self._asked = self._asked, deque()
        self._on_lost()
        for _, _, done in asked:
            done(None)

    def _read(self) -> None:
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "replace"))
            if self.closed:
                return

    def _take(self, line: str) -> None:
        if self._block is not None:
            if line.startswith(("%end ", "%error ")):
                block, self._block = self._block, None
                if self._block_is_ours and self._asked:
                    self._answer(block if line.startswith("%end ") else Refused("\n".join(block)))
            else:
                self._block.append(line)
        elif line.startswith("%begin "):
            self._block = []
            self._block_is_ours = line.endswith(" 1")
        elif line.startswith("%"):
            self._on_event(line[1:].split(" "))

    def _answer(self, answer: list[str] | Refused) -> None:
        wanted, answers, done = self._asked[0]
        answers.append(answer)
        if len(answers) == wanted:
            self._asked.popleft()
            done(answers)


def quoted(word: str) -> str:
    """A word of a command line that tmux reads back as it is; it must not hold a line end."""
    return "'" + word.replace("'", "'\\''") + "'"
