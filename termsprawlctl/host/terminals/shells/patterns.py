"""Regular expressions of agents, matched in a process of their own.

A pattern can take for ever on a harmless line, and while it does no other thread of its
process runs. Here it only ends its own process.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import IO, Any, cast

from ....base.errors import CtlError

MAX_PATTERN_CHARS = 1_000
SEARCH_LIMIT_S = 2
# One line in, one line out. SIGALRM keeps its deadly default: nothing else ends a search.
_PROGRAM = """
import json, re, signal, sys
text = json.loads(sys.stdin.readline())
signal.alarm(%(limit)d)
try:
    pattern = re.compile(text, re.MULTILINE)
    answer = {"ok": True}
except Exception as error:  # ValueError for flags that exclude each other, and what other versions raise
    answer = {"error": str(error) or type(error).__name__}
signal.alarm(0)
print(json.dumps(answer), flush=True)
for line in sys.stdin:
    text = json.loads(line)
    signal.alarm(%(limit)d)
    match = pattern.search(text)
    signal.alarm(0)
    if match:
        begin = text.rfind("\\n", 0, match.start()) + 1
        end = text.find("\\n", match.end())
        match = text[begin:] if end < 0 else text[begin:end]
    print(json.dumps(match), flush=True)
"""


class Pattern:
    """A compiled pattern; close() ends its process. Raises CtlError when it is no pattern."""

    def __init__(self, pattern: str) -> None:
        if not 0 < len(pattern) <= MAX_PATTERN_CHARS:
            raise CtlError(
                f"The pattern has {len(pattern)} characters; 1 to {MAX_PATTERN_CHARS:,} are allowed.",
                "Change it, or use text.",
            )
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an argv list, never a shell
                [sys.executable, "-ISB", "-c", _PROGRAM % {"limit": SEARCH_LIMIT_S}],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            raise CtlError(
                f"Cannot start a matcher for the pattern: {error.strerror}.", "Try again, or use text."
            ) from None
        self._input, self._output = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        answer = self._ask(pattern)
        if "error" in answer:
            self.close()
            raise CtlError(f"The pattern is not a regular expression: {answer['error']}.", "Correct it, or use text.")

    def search(self, text: str) -> str | None:
        """The line or lines of the first match, None when there is none. Raises CtlError when it takes too long."""
        return self._ask(text)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._input.close()
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _ask(self, value: str) -> Any:
        try:
            self._input.write(json.dumps(value).encode() + b"\n")
            self._input.flush()
            line = self._output.readline()
        except OSError:
            line = b""
        if not line:
            self.close()
            raise CtlError(
                f"Matching the pattern took over {SEARCH_LIMIT_S} s on the terminal's output.",
                "Make it simpler (no repeats inside repeats), or use text.",
            )
        return json.loads(line)
