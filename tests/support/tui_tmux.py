"""A user's own tmux: a real server, and clients attached through pseudo-terminals and driven by keystrokes."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections import deque
from pathlib import Path

from .processes import is_alive
from .waiting import PATIENCE_S, until

PREFIX = b"\x02"
# Makes the terminal on stdin the controlling one, then becomes the program.
_IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A process in a pseudo-terminal of its own, as in a terminal window: keys in, screen bytes out."""

    def __init__(self, argv: list[str], env: dict, *, rows: int = 24, columns: int = 100) -> None:
        self._master: int | None
        self._master, slave = pty.openpty()
        self.name = os.ttyname(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-ISc", _IN_TERMINAL, *argv],
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.output = b""
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def shows(self, text: bytes) -> bool:
        return text in self.output

    def close(self) -> None:
        """Close the window: its processes are hung up."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def _drain(self) -> None:
        try:
            while True:
                self.output += os.read(self._master, 65536)
        except OSError:
            return


class UserTmux:
    """One tmux server with its socket in `folder`; ended with everything in it by close()."""

    def __init__(self, folder: Path, path: str) -> None:
        self.socket = str(folder / "user.tmux")
        self.env = {"PATH": path, "HOME": str(folder), "TERM": "xterm-256color", "TMPDIR": str(folder)}
        self.env.update({"SHELL": "/bin/sh", "PS1": "$ ", "LANG": "C.UTF-8"})
        self._binary = shutil.which("tmux", path=path)
        # No login shell: that would set a PATH of its own, on which tmux may be another one than the server is. From
        # tmux 3.8 on the mouse is on unless one turns it off.
        self._configuration = folder / "user.conf"
        self._configuration.write_text('set -g default-command "exec /bin/sh"\nset -g mouse off\n')
        self._terminals: list[Terminal] = []
        self.first: Terminal | None = None

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            [self._binary, "-S", self.socket, "-f", str(self._configuration), *command],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.rstrip("\n")

    def new_session(self, name: str, *command: str) -> str:
        """Start a session that nobody looks at; returns tmux's id of it."""
        return self.run("new-session", "-d", "-s", name, "-P", "-F", "#{session_id}", *command)

    def attach(self, name: str, **size) -> Terminal:
        """A client in a terminal of its own that shows the session."""
        argv = [self._binary, "-u", "-S", self.socket, "attach-session", "-t", f"={name}"]
        terminal = Terminal(argv, self.env, **size)
        self._terminals.append(terminal)
        until(lambda: self.session_of(terminal) == name, f"{terminal.name} attached to {name}")
        return terminal

    def clients(self, template: str = "#{client_name}") -> list[str]:
        """One line a client, watchers included."""
        return self.run("list-clients", "-F", template, check=False).splitlines()

    def session_of(self, terminal: Terminal) -> str | None:
        rows = dict(row.split(" ", 1) for row in self.clients("#{client_name} #{session_name}"))
        return rows.get(terminal.name)

    def screen(self, target: str) -> str:
        """What a pane shows."""
        return self.run("capture-pane", "-p", "-t", target)

    def pid(self) -> int:
        return int(self.run("display-message", "-p", "#{pid}"))

    def close(self) -> None:
        pid = self.run("display-message", "-p", "#{pid}", check=False)
        self.run("kill-server", check=False)
        for terminal in self._terminals:
            terminal.close()
        if pid:
            until(lambda: not is_alive(int(pid)), "tmux ends when it is told to")


class Prepared:
    """User's tmuxes with the sessions one and two and a client on one, made ahead of the tests that take them.

    Attaching counts as an input of the user: a client that was attached a while ago is quiet already.
    """

    def __init__(self, make_folder, path: str, *, ahead: int = 4) -> None:
        self._make_folder = make_folder
        self._ahead = ahead
        self._path = path
        self._ready: deque[UserTmux] = deque()
        self._made: list[UserTmux] = []

    def take(self) -> UserTmux:
        """A server of one's own, with its client in `first`."""
        while len(self._ready) < self._ahead:
            self._ready.append(self._make())
        return self._ready.popleft()

    def close(self) -> None:
        for server in self._made:
            server.close()

    def _make(self) -> UserTmux:
        server = UserTmux(self._make_folder("x"), self._path)
        self._made.append(server)
        server.new_session("one")
        server.new_session("two")
        server.first = server.attach("one")
        return server
