"""A data directory with a real tmux server in it, as the app lays it out, without the app."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from .waiting import until

_TMUX = shutil.which("tmux") or "tmux"
_IN_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class NodeServer:
    """Nodes are tmux sessions `ts-<id>`; each shows its own name. `env` is what tmux runs in."""

    def __init__(self, data: Path, env: dict[str, str]) -> None:
        self.data = data
        self.env = env
        self.socket = data / "tmux-sockets" / "termsprawl"
        self.conf = data / "tmux.conf"
        self.preferences = data / "agent-tools" / "preferences.json"
        for folder in (self.socket.parent, self.preferences.parent):
            folder.mkdir(parents=True)
        self.conf.write_text("set -g status off\nset -g window-size latest\n")
        self._clients: list[PtyProgram] = []
        self._pids: set[int] = set()

    def tmux(self, *words: str) -> str:
        argv = [_TMUX, "-u", "-S", str(self.socket), "-f", str(self.conf), *words]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def open(self, node_id: str) -> None:
        command = f"echo THIS IS {node_id}; exec sleep 1000"
        self._pids.add(int(self.tmux("new-session", "-d", "-P", "-F", "#{pid}", "-s", f"ts-{node_id}", command)))

    def clients(self, node_id: str) -> list[str]:
        """The terminals of the clients on exactly this node."""
        return self.tmux("list-clients", "-t", f"=ts-{node_id}", "-F", "#{client_tty}").split()

    def sessions(self) -> list[str]:
        return self.tmux("list-sessions", "-F", "#{session_name}").split()

    def attach_argv(self, node_id: str) -> list[str]:
        """What every emulator has to be given, word for word."""
        tmux = str(Path(self.env["PATH"].split(":")[0], "tmux"))
        return [tmux, "-S", str(self.socket), "-f", str(self.conf), "attach-session", "-t", f"ts-{node_id}"]

    def show_on_canvas(self, node_id: str) -> str:
        """Attach the app's own client to a node; returns its terminal."""
        before = self.clients(node_id)
        self._clients.append(PtyProgram(self.attach_argv(node_id), self.env))
        (tty,) = until(lambda: set(self.clients(node_id)) - set(before), "the canvas client")
        return tty

    def stop(self) -> None:
        for client in self._clients:
            client.stop()
        # By its process: a test may have moved the socket.
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


class PtyProgram:
    """A program in a pseudo-terminal of its own; `output` is what it has drawn so far."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.output = b""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_OWN_TERMINAL, *argv],
            env={**env, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._master, 65536):
                self.output += chunk
        except OSError:
            return

    def type(self, data: bytes) -> None:
        os.write(self._master, data)

    def ended(self) -> tuple[int, str]:
        """(exit status, everything it drew), once it has ended by itself."""
        status = self.process.wait(20)
        self._reader.join(10)
        return status, self.output.decode("utf-8", "replace")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(10)
        os.close(self._master)
