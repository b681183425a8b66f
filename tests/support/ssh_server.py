"""A real OpenSSH server on a free port of loopback, and a machine to reach it from: both in folders of one test."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/sbin")
WAIT_S = 60.0


def until(look, timeout_s: float = WAIT_S):
    """Ask until the answer is true; that answer."""
    end = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, look
        time.sleep(0.02)


class Box:
    """An account that is reached as `box`: `home` is bare, and nothing but PATH and SHELL is in its environment."""

    def __init__(self, root: Path, ctl: str, path: str) -> None:
        if SSHD is None or shutil.which("ssh") is None:
            pytest.skip("there is no OpenSSH server or client")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # where a server of root locks up what is not logged in yet
        self.ctl = ctl
        self.root = root
        self.home, self.here = root / "there", root / "here"
        for folder in (self.home, self.here, root / "bin"):
            folder.mkdir()
        for name in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root / name], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = {
            "SetEnv": f"HOME={self.home} SHELL=/bin/bash PATH={path}",
            "PermitRootLogin": "yes",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
        }
        key = (root / "host.pub").read_text().split()
        (root / "known").write_text(f"[127.0.0.1]:{self.port} {key[0]} {key[1]}\n")
        self.host_block()
        # ssh reads the account's own configuration whatever HOME says.
        ssh = root / "bin" / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {shlex.quote(str(root / "config"))} "$@"\n')
        ssh.chmod(0o755)
        self.env = {"PATH": f"{root / 'bin'}:{path}", "HOME": str(self.here)}
        self.server: subprocess.Popen | None = None

    def host_block(self, name: str = "box", **options: str) -> None:
        """(Re)write the client's configuration."""
        lines = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": getpass.getuser(),
            "IdentityFile": str(self.root / "key"),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.root / "known"),
            "StrictHostKeyChecking": "yes",
            **options,
        }
        text = "".join(f"  {key} {value}\n" for key, value in lines.items())
        (self.root / "config").write_text(f"Host {name}\n{text}")

    def start(self, **options: str) -> None:
        """Start the server, with other options."""
        self.options |= options
        lines = {
            "ListenAddress": "127.0.0.1",
            "Port": str(self.port),
            "HostKey": str(self.root / "host"),
            "AuthorizedKeysFile": str(self.root / "key.pub"),
            "PidFile": "none",
            **self.options,
        }
        config = self.root / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        log = self.root / "sshd.log"
        self.server = subprocess.Popen([SSHD, "-D", "-f", config, "-E", log], start_new_session=True)
        until(self.listens)

    def listens(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def shell(self, program: str) -> str:
        """The option that makes `program` the account's login shell."""
        return f'exec {shlex.quote(program)} -c "$SSH_ORIGINAL_COMMAND"'

    def end_server(self) -> None:
        """End the server and its connections."""
        if self.server is not None:
            for pid in [self.server.pid, *self.sessions()]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.server.wait()
            self.server = None

    def sessions(self) -> list[int]:
        """The server's processes for its connections."""
        found, waiting = [], [self.server.pid]
        rows = [
            line.split(None, 2)
            for line in subprocess.check_output(["ps", "-eo", "pid=,ppid=,args="], text=True).splitlines()
        ]
        while waiting:
            parent = waiting.pop()
            children = [int(pid) for pid, above, args in rows if int(above) == parent and args.startswith("sshd")]
            found += children
            waiting += children
        return found

    def run(self, *words: str, timeout_s: float = 180.0, **options) -> subprocess.CompletedProcess:
        """Run the built file here to its end."""
        return subprocess.run(
            [self.ctl, *words],
            **{"env": self.env, "stdin": subprocess.DEVNULL, "cwd": self.here, **options},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def reach(self, *words: str, destination: str = "box") -> str:
        """`reach`, which has to work; returns the session file."""
        done = self.run("reach", destination, *words)
        assert done.returncode == 0, done.stderr
        (line,) = done.stdout.splitlines()
        assert line.startswith("export TERMSPRAWL_SESSION_FILE="), line
        return shlex.split(line.partition("=")[2])[0]

    def call(self, session: str, operation: str, **args) -> dict:
        done = self.run("call", operation, json.dumps(args), "--session", session)
        return json.loads(done.stdout)

    def works(self, session: str) -> bool:
        return self.call(session, "session_info")["ok"]

    def place(self) -> Path:
        """Where it is kept here."""
        (found,) = (self.here / ".local/state/termsprawlctl/reach").iterdir()
        return found

    def record(self) -> dict:
        return json.loads((self.place() / "reach.json").read_text())

    def keeper(self) -> int:
        return int((self.place() / "keeper" / "pid").read_text())

    def copies(self) -> list[Path]:
        return sorted((self.home / ".cache" / "termsprawlctl").glob("*/*"))

    def there(self, *words: str) -> subprocess.CompletedProcess:
        """Run the built file over there, without ssh."""
        env = {"PATH": self.env["PATH"], "HOME": str(self.home), "SHELL": "/bin/bash"}
        return self.run(*words, env=env, cwd=self.home)

    def end(self) -> None:
        """End all that a test may have started."""
        for destination in {
            row["destination"] for row in json.loads(self.run("reach", "list", "--json").stdout or "[]")
        }:
            self.run("reach", "stop", destination)
        self.end_server()
        self.there("host", "stop", "--kill-sessions")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
