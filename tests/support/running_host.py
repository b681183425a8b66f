"""A real embedded host, started from the built file, with its terminals ended afterwards."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

from termsprawlctl.app import transport

from .waiting import PATIENCE_S, until


class RunningHost:
    """One host on its own data directory and project; `env` is the empty environment that it runs in."""

    def __init__(self, ctl: str, root: Path, env: dict[str, str]) -> None:
        self.ctl = ctl
        self.env = env
        self.data = root / "data"
        self.project = root / "project"
        self.project.mkdir(exist_ok=True)
        self.session_file = ""

    def run(self, *words: str, stdin: bytes | None = None, timeout_s: float = 60.0) -> subprocess.CompletedProcess:
        """Run the built file to its end."""
        return subprocess.run(
            [self.ctl, *words],
            env=self.env,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            cwd=self.project,
        )

    def start(self, project: Path | None = None) -> str:
        """`host start`; returns the session file that it printed."""
        done = self.run("host", "start", "--data", str(self.data), "--project", str(project or self.project))
        assert done.returncode == 0, done.stderr.decode()
        name, _, value = done.stdout.decode().partition("=")
        assert name == "export TERMSPRAWL_SESSION_FILE"
        (path,) = shlex.split(value)
        self.session_file = self.session_file or path
        return path

    def stop(self, *words: str) -> subprocess.CompletedProcess:
        return self.run("host", "stop", "--data", str(self.data), *words)

    def call(self, operation: str, session: str | None = None, **args) -> dict:
        """The ToolResult of one operation, straight over the socket: a process each costs the tests minutes."""
        return transport.call(session or self.session_file, operation, args)

    def call_built(self, operation: str, session: str | None = None, **args) -> dict:
        """The same through the built file."""
        done = self.run(
            "call", operation, "-", "--session", session or self.session_file, stdin=json.dumps(args).encode()
        )
        assert done.returncode in (0, 1), done.stderr.decode()
        return json.loads(done.stdout)

    def value(self, operation: str, session: str | None = None, **args):
        """The value of an operation that has to succeed."""
        result = self.call(operation, session, **args)
        assert result["ok"], result
        return result["value"]

    def wait_for_text(self, node_id: str, text: str, timeout_s: float = PATIENCE_S) -> str:
        """Read a terminal until it shows the text; returns what it shows."""
        output = ""

        def shown() -> bool:
            nonlocal output
            output = self.value("terminal_read", nodeId=node_id, maxChars=100_000)["output"]
            return text in output

        until(shown, lambda: f"{text!r} did not appear in:\n{output}", timeout_s)
        return output

    def endpoint(self) -> dict:
        return json.loads((self.data / "agent-tools" / "endpoint.json").read_text())

    def port(self) -> int:
        return int(self.endpoint()["url"].rsplit(":", 1)[1].split("/")[0])

    def token(self) -> str:
        return json.loads(Path(self.session_file).read_text())["token"]

    def pid(self) -> int:
        return json.loads((self.data / "agent-tools" / "server.lock").read_text())["pid"]

    def tmux(self, *words: str) -> subprocess.CompletedProcess:
        """Tmux on the host's own socket."""
        socket = self.data / "tmux-sockets" / "termsprawl"
        return subprocess.run(
            ["tmux", "-S", str(socket), *words], env=self.env, capture_output=True, check=False, timeout=20
        )

    def attach_argv(self, target: str, *flags: str) -> list[str]:
        """The command of a window that shows a session of the host's tmux."""
        socket = str(self.data / "tmux-sockets" / "termsprawl")
        return [shutil.which("tmux", path=self.env["PATH"]), *flags, "-S", socket, "attach-session", "-t", target]
