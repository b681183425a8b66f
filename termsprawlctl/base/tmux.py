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

import contextlib
import os
import re
import stat

from .errors import CtlError
from .processes import Completed, environment_without, find_program, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OLDEST = (3, 2)  # see above
# sun_path holds 108 bytes on Linux and 104 on macOS, a NUL included.
MAX_SOCKET_PATH_BYTES = 103 if os.uname().sysname == "Darwin" else 107
# The name of one of its own descriptors to a process on Linux; a client connects to a socket by it.
_DESCRIPTOR = "/proc/self/fd/%d"
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

    def completed(
        self, *commands: tuple[str, ...], stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S
    ) -> Completed:
        """What comes of commands in one step, whatever tmux says to them.

        Raises CtlError where it does not answer, cannot be run or is not ours to talk to.
        """
        return self._completed(self.argv(*commands), stdin, timeout_s)

    def _run(self, argv: list[str], stdin: bytes, timeout_s: float) -> str:
        done = self._completed(argv, stdin, timeout_s)
        if done.status != 0:
            text = done.stderr.decode("utf-8", "replace").strip()
            raise TmuxError(text or f"tmux failed with status {done.status}")
        return done.stdout.decode("utf-8", "replace")

    def _completed(self, argv: list[str], stdin: bytes, timeout_s: float) -> Completed:
        if "-S" not in self.base:
            return self._client(argv, stdin, timeout_s)
        place = argv.index("-S") + 1
        path, starts = argv[place], "new-session" in argv
        try:
            held = open_socket(path)
        except OSError as error:
            if starts:
                return self._client(argv, stdin, timeout_s)
            # In tmux's own words, and without it: who knows what is there by the time that it looks.
            return Completed(1, b"", os.fsencode(f"error connecting to {path} ({error.strerror})"))
        try:
            if held is None or (starts and not _is_listening(held)):
                return self._client(argv, stdin, timeout_s)
            # What was looked at is what it connects to, whatever takes the name meanwhile.
            inside = _DESCRIPTOR % held
            done = self._client([*argv[:place], inside, *argv[place + 1 :]], stdin, timeout_s, held)
            done.stderr = done.stderr.replace(inside.encode(), os.fsencode(path))
            return done
        finally:
            if held is not None:
                os.close(held)

    def _client(self, argv: list[str], stdin: bytes, timeout_s: float, *inherited: int) -> Completed:
        return run(
            argv,
            stdin=stdin,
            timeout_s=timeout_s,
            environment=server_environment(),
            with_its_own=self._is_apart,
            when_late=_HANGS,
            inherited=inherited,
        )


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

    For a command that is started by the name of the socket. Directories for temporary files are cleared now and
    then, and anybody may make a new one of the old name there: so this is asked before each use, not once.
    """
    with contextlib.suppress(OSError):  # there is none, or none that can be reached: tmux will say so
        held = open_socket(path)
        if held is not None:
            os.close(held)


def open_socket(path: str) -> int | None:
    """A descriptor of a server's socket, which is this user's; None where the system cannot connect by one.

    Whoever owns a server decides what a client of it shows and runs. Raises CtlError as refuse_foreign_socket(),
    OSError where there is no socket.
    """
    from .ownership import open_directory, others_may_write, roots

    ours = os.getuid()
    folder = os.path.dirname(path) or "."
    held = None
    directory = open_directory(folder)
    try:
        status = os.fstat(directory)
        _refuse_owner(status, {ours, *roots()}, "socket's directory", folder)
        if others_may_write(status) and not status.st_mode & stat.S_ISVTX:
            raise CtlError(f"other users may write to {folder}, where the tmux socket is.", "Try: chmod go-w there.")
        # Linux with /proc; PyPy has no O_PATH, and cannot hand such a descriptor on.
        if hasattr(os, "O_PATH") and os.path.exists(_DESCRIPTOR % directory):
            held = os.open(os.path.basename(path), os.O_PATH | os.O_CLOEXEC, dir_fd=directory)
        status = os.stat(os.path.basename(path), dir_fd=directory) if held is None else os.fstat(held)
        _refuse_owner(status, {ours}, "socket", path)
    except BaseException:
        if held is not None:
            os.close(held)
        raise
    finally:
        os.close(directory)
    return held


def _refuse_owner(status: os.stat_result, owners: set[int], what: str, path: str) -> None:
    if status.st_uid not in owners:
        raise CtlError(
            f"the tmux {what} {path} belongs to another user (uid {status.st_uid}, this is uid {os.getuid()}).",
            "Run this as that user.",
        )


def _is_listening(held: int) -> bool:
    from .ownership import server_of

    try:
        server_of(_DESCRIPTOR % held)
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # it has many to serve, or the system lacks something: tmux will say so
    return True


def check_socket_path(path: str) -> None:
    """Raise CtlError when the system cannot hold the path of a socket that long."""
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH_BYTES:
        raise CtlError(
            f"the socket path {path} has {size} bytes, the system's limit is {MAX_SOCKET_PATH_BYTES}.",
            "Choose a shorter directory.",
        )
