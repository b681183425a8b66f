"""The rows of the operations that only the embedded host has, in the form of table.py.

The app does not know them: they are offered where the running host's session_info
names them, and sent nowhere else.
"""

from __future__ import annotations

from .table import TERMINAL, operation, optional, required

# Below the 45 s after which a client gives up, with room for a loaded machine.
MAX_WAIT_MS = 30_000

_TIMEOUT = optional(
    "timeoutMs", "number", f"How long to wait, in milliseconds: 0 to {MAX_WAIT_MS:,}, which is also the default"
)

EXTENSION_ROWS = (
    operation(
        "terminal_run",
        "Run a command and wait",
        "Run one command in a terminal's own shell and wait for its end: returns its output, exitStatus and "
        "durationMs. The shell keeps its state (directory, variables). Works while a bash, zsh, fish or dash is at "
        "its prompt and nobody types there; refused otherwise. When the time is up (timedOut) the command goes on: "
        "the answer tells what is on the screen; wait with terminal_wait, or stop it with terminal_interrupt. Long "
        "output comes as its beginning and end (truncated).",
        TERMINAL,
        required("command", "string", "Command, of one or more lines, at most 64,000 characters"),
        _TIMEOUT,
        hints="do",
    ),
    operation(
        "terminal_wait",
        "Wait for a terminal",
        "Wait until a terminal shows something new: a text, a pattern, silence, or the end of what runs there. What "
        "was there before the call never counts. Returns the reason (text, pattern, idle, exit or timeout) and the "
        "tail of the terminal. Give at least one thing to wait for; the first that happens ends the wait.",
        TERMINAL,
        optional("text", "string", "Exact text to wait for, within one line unless it holds newlines"),
        optional("pattern", "string", "Regular expression (Python) to wait for instead; ^ and $ match at line ends"),
        optional("idleMs", "number", "Return when nothing was written for so many milliseconds, counted from the call"),
        optional(
            "exit", "boolean", "Return when the program that runs there has ended, or the terminal itself has; true"
        ),
        _TIMEOUT,
        hints="rio",
    ),
    operation(
        "terminal_since",
        "Read what is new",
        "Read what a terminal wrote after a cursor: nothing twice, nothing left out unless missed is true. Returns "
        "output, the next cursor, and a revision for terminal_send. Call again with the new cursor while more is true. "
        "What full-screen programs draw is left out (fullScreen): use terminal_read for those.",
        TERMINAL,
        optional("cursor", "string", "Cursor of an earlier answer; without one, all that the host still holds"),
        hints="rio",
    ),
    operation(
        "terminal_send",
        "Type if nothing changed",
        "Type text, press keys, or both (text first), but only if the terminal has written nothing since the revision "
        "that you saw, and no person typed there in the last 1.5 seconds. The same requestId types once only: "
        "repeated, it returns the first receipt.",
        TERMINAL,
        optional("text", "string", "Exact characters to type, at most 64,000; Enter is a key of its own"),
        optional(
            "keys",
            "strings",
            "Keys by name, in order: Enter, Tab, Escape, Up, PageDown, F5, C-c, M-x, S-Tab; 1 to 100, each of at most "
            "255 characters",
        ),
        required("expectRevision", "string", "The revision of your last terminal_since, terminal_wait or terminal_run"),
        required("requestId", "string", "Unique id of your choice, at most 200 characters; reuse it only for a repeat"),
        hints="dio",
    ),
)
