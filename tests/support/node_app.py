"""The stand-in of the app (counterparts/app/server.mjs), used as RunningHost uses our own host."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .running_host import RunningHost

SERVER = Path(__file__).resolve().parents[1] / "counterparts" / "app" / "server.mjs"


def absent() -> str:
    """Why it cannot run here; empty where it can."""
    return "" if shutil.which("node") else "node is not on PATH"


class NodeApp(RunningHost):
    """One server process of Node with a tmux server of its own; both end with stop()."""

    _server: subprocess.Popen

    def start(self, project: Path | None = None) -> str:
        """Start it; returns the session file of its one agent, the caller."""
        node = shutil.which("node")
        assert node
        self._server = subprocess.Popen(
            [node, str(SERVER), str(self.data), str(project or self.project)],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # As our host is: a kernel shares its cores out by sessions first.
            start_new_session=True,
        )
        word, _, self.session_file = self._server.stdout.readline().strip().partition(" ")
        assert word == "ready", word
        return self.session_file

    def stop(self, *_words: str) -> None:
        self._server.stdin.close()
        self._server.wait(20)
        self._server.stdout.close()
