"""Scripts for osascript that open a window of a macOS application with a command in it.

Pure text. The command is quoted twice: for the shell (or iTerm's own splitting into
words, which knows the same quotes), then as a literal of AppleScript.
"""

from __future__ import annotations

import shlex


def terminal_script(command: list[str]) -> str:
    """For Terminal.app: its `do script` types the text into a login shell.

    With exec, so that the window's process ends when the command does.
    """
    text = literal("exec " + shlex.join(command))
    return f'tell application "Terminal"\n    do script {text}\n    activate\nend tell'


def iterm_script(command: list[str]) -> str:
    """For iTerm, which starts the command itself, without a shell."""
    text = literal(shlex.join(command))
    return f'tell application "iTerm"\n    create window with default profile command {text}\n    activate\nend tell'


def literal(text: str) -> str:
    """A string literal of AppleScript: only the backslash and the double quote are special in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
