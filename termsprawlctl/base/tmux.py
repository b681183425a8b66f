"""The only room that runs tmux.

Facts that shape it, all seen with tmux 3.3a: an argument that ends in `;` is cut
there and the rest is a new command, unless the `;` is escaped; `-t name` matches
prefixes and patterns, `-t =name` does not; text for a pane arrives unchanged only
through a paste buffer; display-message succeeds without its target and expands
everything to nothing; a command and its arguments have to fit into 16 KiB.

The oldest that will do is 3.2, by tmux's list of changes: it brought `new-session -e`, the
flag `-N` (never start a server), `attach-session -f` with ignore-size and no-output, and
client_flags. All else that is used here and in its callers is older: pane options and
`show-options -A` (3.0), `split-window -l` in lines (3.1), `-E` (2.4). What is newer is asked
for by version only: prompt types of command-prompt (3.3), display-popup's border lines (3.6).
Of 3.2 itself is known that it splits the path of a configuration file at every `:`.
"""

from __future__ import annotations

import os
import re
import stat

from .errors import CtlError
from .processes import environment_without, find_program, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OLDEST = (3, 2)  # see above
# sun_path holds 108 bytes on Linux and 104 on macOS, a NUL included.
MAX_SOCKET_PATH_BYTES = 103 if os.uname().sysname == "Darwin" else 107
COMMAND_TIMEOUT_S = 10.0  # a healthy server answers in milliseconds
MAX_QUOTED_CHARS = 200  # of what a broken program says
_INSTALL = "Install tmux 3.2 or newer (Debian, Ubuntu: sudo apt-get install tmux)."
_HANGS = (
    "Its server stands still or hangs: let it go on (kill -CONT), or end it (kill -9) and all that runs in it; "
    "`pgrep -a tmux` shows it."
)


class TmuxError(CtlError):
    """tmux refused a command; `message` is its own text."""


class Tmux:
    """One tmux server, addressed by socket path; started by the first new session.

    `base` is the argv up to the command: binary, socket, configuration.
    """

    def __init__(self, binary: str, *socket_args: str) -> None:
        self.base = [binary, *socket_args]
        self._is_apart = False

    def apart(self) -> Tmux:
        """The same server, asked so that a signal to our process group (Ctrl-C, a closed terminal) ends no command."""
        other = Tmux(*self.base)
        other._is_apart = True
        return other

    def run(self, *arguments: str, stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run one tmux command and return its output.

        Every argument arrives as it is given. Raises TmuxError when tmux says no, another
        CtlError when it does not answer or cannot be run.
        """
        return self._run(self.argv(arguments), stdin, timeout_s)

    def run_all(self, *commands: tuple[str, ...], stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run several commands in one step: whoever is killed meanwhile leaves all of them done, or none.

        `stdin` is for the first of them. tmux stops at the first that it refuses. Raises as run() does.
        """
        return self._run(self.argv(*commands), stdin, timeout_s)

    def argv(self, *commands: tuple[str, ...]) -> list[str]:
        """The argv that runs these commands in one step."""
        # -u: without it the output to a client without a UTF-8 locale is mangled.
        argv = [self.base[0], "-u", *self.base[1:]]
        for number, command in enumerate(commands):
            argv += [";", *map(literal, command)] if number else map(literal, command)
        return argv

    def has_session(self, name: str) -> bool:
        """Whether a session of exactly this name exists."""
        try:
            self.run("has-session", "-t", exact(name))
        except TmuxError:
            return False
        return True

    def display(self, target: str, template: str) -> str:
        """A format string expanded for a target, which is a pane. Raises TmuxError when it is gone."""
        answer = self.run("display-message", "-p", "-t", target, f"#{{pane_id}} {template}")
        pane_id, _, text = answer.partition(" ")
        if not pane_id:
            raise TmuxError(f"can't find pane: {target}")
        return text.rstrip("\n")

    def _run(self, argv: list[str], stdin: bytes, timeout_s: float) -> str:
        if "-S" in self.base:
            refuse_foreign_socket(self.base[self.base.index("-S") + 1])
        environment = server_environment()
        done = run(
            argv,
            stdin=stdin,
            timeout_s=timeout_s,
            environment=environment,
            with_its_own=self._is_apart,
            when_late=_HANGS,
        )
        if done.status != 0:
            text = done.stderr.decode("utf-8", "replace").strip()
            raise TmuxError(text or f"tmux failed with status {done.status}")
        return done.stdout.decode("utf-8", "replace")


def exact(session: str) -> str:
    """The target that means this session only, for commands that take a session."""
    return f"={session}"


def exact_pane(session: str) -> str:
    """The target that means this session's active pane, for commands that take a pane."""
    return f"={session}:"


def quoted(word: str) -> str:
    """A word of a command line that tmux reads back as it is; it must not hold a line end."""
    return "'" + word.replace("'", "'\\''") + "'"


def literal(argument: str) -> str:
    """An argument that tmux reads as the given text, also with a `;` at its end."""
    return argument[:-1] + "\\;" if argument.endswith(";") else argument


def for_format(text: str) -> str:
    """The text for an argument that tmux expands as a format: `#(...)` in it would even run commands.

    Two `#` become one, but not before a `[`, where tmux leaves a style, and all `#` of it, as it is.
    """
    return re.sub(r"#+(?!\[|#)", lambda match: match[0] * 2, text)


def server_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for tmux: what a server keeps of it reaches every shell in it.

    Without TMUX and TMUX_PANE, so that nothing thinks itself nested, and without
    TERMSPRAWL_*, which would name the session of whoever started the server.
    """
    environment = environment_without("TERMSPRAWL_", base=base)
    return {name: value for name, value in environment.items() if name not in ("TMUX", "TMUX_PANE")}


def find(which: Callable[[str], str | None] = find_program) -> str:
    """The tmux binary. Raises CtlError when there is none, it does not work or it is older than 3.2."""
    binary = which("tmux")
    if not binary:
        raise CtlError("tmux is not installed.", _INSTALL)
    done = run([binary, "-V"], timeout_s=COMMAND_TIMEOUT_S)
    answer = done.stdout.decode("utf-8", "replace").strip()
    if done.status != 0 or not answer.startswith("tmux "):
        words = done.stderr.decode("utf-8", "replace").strip() or answer
        told = f" and said: {words.splitlines()[0][:MAX_QUOTED_CHARS]}" if words else ""
        raise CtlError(f"{binary} does not work: `tmux -V` ended with status {done.status}{told}.", _INSTALL)
    if version(answer) < OLDEST:
        raise CtlError(f"{binary} is too old ({answer}).", _INSTALL)
    return binary


def version(answer: str) -> tuple[int, int]:
    """(major, minor) out of `tmux -V`, for example `tmux 3.3a` or `tmux next-3.6`.

    A development build without a number counts as new.
    """
    match = re.search(r"(\d+)\.(\d+)", answer)
    return (int(match.group(1)), int(match.group(2))) if match else (99, 0)


def refuse_foreign_socket(path: str) -> None:
    """Raise CtlError where another user's server listens there, or another user could put theirs there.

    Whoever owns a server decides what a client of it shows and runs. Directories for temporary
    files are cleared now and then, and anybody may make a new one of the old name there: so
    this is asked before each use, not once.
    """
    from .ownership import others_may_write, roots

    ours = os.getuid()
    for place, what, owners in (
        (os.path.dirname(path) or ".", "socket's directory", {ours, *roots()}),
        (path, "socket", {ours}),
    ):
        try:
            status = os.stat(place)
        except OSError:
            return  # there is none, or none that can be reached: tmux will say so
        if status.st_uid not in owners:
            raise CtlError(
                f"the tmux {what} {place} belongs to another user (uid {status.st_uid}, this is uid {ours}).",
                "Run this as that user.",
            )
        if stat.S_ISDIR(status.st_mode) and others_may_write(status) and not status.st_mode & stat.S_ISVTX:
            raise CtlError(f"other users may write to {place}, where the tmux socket is.", "Try: chmod go-w there.")


def check_socket_path(path: str) -> None:
    """Raise CtlError when the system cannot hold the path of a socket that long."""
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH_BYTES:
        raise CtlError(
            f"the socket path {path} has {size} bytes, the system's limit is {MAX_SOCKET_PATH_BYTES}.",
            "Choose a shorter directory.",
        )
