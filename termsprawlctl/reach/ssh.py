"""One ssh connection (ControlMaster) to a destination, and what goes through it.

ssh runs in the place's directory, where its socket has a short name whatever the directory's
is. ssh_config counts as it is; what is set here is what a connection in the background needs.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket

from ..base.errors import CtlError
from ..base.files import read_small, remove_quietly
from ..base.processes import Completed, find_program, run
from ..base.processtable import command_line_of, send
from ..base.waiting import until
from .carrier import StepError
from .places import Place

SOCKET, LOG = "ssh", "ssh.log"
# A lost network shows after this many seconds of silence, three times.
ALIVE_S = 15
CONNECT_S, PERSON_S, ASK_S, END_S = 60.0, 300.0, 10.0, 5.0
_PLAIN = ["-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none"]
_MASTER = [
    *("-f", "-N", "-T", "-M", "-S", SOCKET, "-E", LOG, *_PLAIN),
    *("-o", "ControlPersist=no", "-o", "LogLevel=INFO", "-o", "ConnectTimeout=20"),
    *("-o", f"ServerAliveInterval={ALIVE_S}", "-o", "ServerAliveCountMax=3"),
]
# Without its master a client would connect by itself: that proxy makes it fail.
_CLIENT = ["-S", SOCKET, *_PLAIN, "-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes"]
_REFUSED = "open failed"
# What ssh prints: (cause, what to do).
_CAUSES = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "the host's key is another one than before.", "Find out why first."),
    (
        "Host key verification failed",
        "the host's key is not known here.",
        "Run `ssh {0}` once and compare the key that it shows.",
    ),
    (
        "Permission denied",
        "no key was accepted, and nobody is asked for a password here.",
        "Run this at a terminal, or add a key: ssh-copy-id {0}, ssh-add.",
    ),
    ("Could not resolve hostname", "no such host name is known.", "Look at the name and at ~/.ssh/config."),
    ("Connection refused", "nothing listens there.", "Is sshd running there, and on that port?"),
    ("timed out", "nothing answers there.", "Is it up, and is the network or VPN?"),
    ("No route to host", "the network has no way there.", "Is it up, and is the network or VPN?"),
    ("Network is unreachable", "this machine has no network.", "Connect it first."),
)


class Connection:
    """The connection of a place, whether it is up or not."""

    def __init__(self, place: Place) -> None:
        self._place = place
        if find_program("ssh") is None:
            raise StepError("ssh", "ssh is not installed here, or not on PATH.", "Install the OpenSSH client.")

    def client(self, *options: str) -> list[str]:
        """The start of a command line for something to run over there, in the place's directory."""
        return ["ssh", *_CLIENT, *options, "--", self._place.destination]

    def pid(self) -> int | None:
        """The number of the ssh process; None where it is down. Raises StepError where it does not answer."""
        if not os.path.exists(os.path.join(self._place.root, SOCKET)):
            return None
        try:
            found = re.search(rb"pid=(\d+)", self._control("check").stderr)
            return int(found[1]) if found else None
        except CtlError:
            raise StepError("connect", "the ssh process here stands still.", "Continue it, or: reach stop") from None

    def open(self, *, batch: bool) -> None:
        """Connect; without `batch`, ssh may ask at the terminal. Raises StepError."""
        place = self._place
        for name in (SOCKET, LOG):
            remove_quietly(os.path.join(place.root, name))
        words = ["ssh", *_MASTER, "-o", f"BatchMode={'yes' if batch else 'no'}", "--", place.destination]
        done = run(words, timeout_s=CONNECT_S if batch else PERSON_S, cwd=place.root)
        if done.status:
            raise self._failure(done)

    def _failure(self, done: Completed) -> StepError:
        words = f"{self.log()}\n{done.stderr.decode('utf-8', 'replace')}".strip()
        for text, cause, fix in _CAUSES:
            if text in words:
                return StepError("connect", f"ssh cannot connect: {cause}", fix.format(self._place.destination))
        last = words.split("\n")[-1] or f"exit status {done.status}"
        return StepError("connect", f"ssh cannot connect: {last}", f"Try: ssh {self._place.destination} true")

    def log(self) -> str:
        """What ssh has said since it connected."""
        try:
            return read_small(os.path.join(self._place.root, LOG)).decode("utf-8", "replace")
        except OSError:
            return ""

    def forward(self, path: str) -> int:
        """Forward a free port here to a socket over there; returns the port. Raises StepError."""
        for _ in range(3):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port: int = free.getsockname()[1]
            done = self._control("forward", "-L", f"127.0.0.1:{port}:{path}")
            if done.status == 0:
                return port
        words = done.stderr.decode("utf-8", "replace").strip()
        raise StepError("forward", f"ssh here forwards no port: {words}", "Is a port in use, or forbidden to it?")

    def has_refused(self) -> bool:
        """Whether the server there has not forwarded something; why, it does not say."""
        return _REFUSED in self.log()

    def close(self) -> None:
        """End it, however it stands. The ssh process is ours by its command line."""
        pid = self._place.record().get("ssh")
        with contextlib.suppress(CtlError):
            pid = self.pid() or pid
            self._control("exit")
        if isinstance(pid, int) and self._is_ours(pid):
            send(pid, signal.SIGTERM)
            send(pid, signal.SIGCONT)
            if not until(lambda: not self._is_ours(pid), END_S, 0.02):
                send(pid, signal.SIGKILL)

    def _is_ours(self, pid: int) -> bool:
        words = command_line_of(pid)
        return "-E" in words and LOG in words and self._place.destination in words

    def _control(self, command: str, *words: str) -> Completed:
        argv = ["ssh", "-S", SOCKET, "-O", command, *words, "--", self._place.destination]
        return run(argv, timeout_s=ASK_S, cwd=self._place.root)
