"""A coding-agent CLI of a few lines, put on PATH under a real one's name, and a server that runs it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from .mcp_client import McpServer
from .processes import running

MARKER = b"TERMSPRAWLCTL_AGENT_RUN="

# What a script may use; the events are codex's.
PRELUDE = """\
import json, os, signal, subprocess, sys, time

def say(event):
    sys.stdout.write(json.dumps(event) + "\\n")
    sys.stdout.flush()

def item(kind, phase="completed", **fields):
    say({"type": "item." + phase, "item": {"type": kind, **fields}})

def message(text):
    item("agent_message", id="m" + str(time.monotonic_ns()), text=text)

def begin(session="11111111-2222-4333-8444-555555555555"):
    say({"type": "thread.started", "thread_id": session})
    say({"type": "turn.started"})

def end(text=None):
    if text is not None:
        message(text)
    say({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}})

def background(code, **options):
    null = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-c", code], stdin=null, stdout=null, stderr=null, **options)

def record(name, value):
    path = os.path.join(os.environ["HOME"], name)
    with open(path + ".part", "w") as file:
        json.dump(value, file)
    os.rename(path + ".part", path)  # who waits for it reads it at once

"""


class Box:
    """A home of its own with a scripted CLI; `with box.server(...) as server:` serves it."""

    def __init__(self, ctl: str, folder: Path, env: dict[str, str]) -> None:
        self.ctl = ctl
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.project = folder / "project"
        self.temporary = folder / "tmp"
        for made in (self.home, self.bin, self.project, self.temporary):
            made.mkdir()
        self.env = {
            **env,
            "PATH": f"{self.bin}{os.pathsep}{env['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
        }

    def script(self, body: str, name: str = "codex") -> None:
        """Install a CLI that does this."""
        path = self.bin / name
        path.write_text(f"#!{sys.executable} -IS\n{PRELUDE}{body}")
        path.chmod(0o755)

    def argv(self, *words: str, agent: str = "codex") -> list[str]:
        return [self.ctl, "mcp", "agent", agent, "--cwd", str(self.project), *words]

    @contextlib.contextmanager
    def server(self, *words: str, agent: str = "codex", **variables: str):
        """A server after its handshake; AGENT_CLI_MCP_ is put before the variables' names."""
        env = {**self.env, **{f"AGENT_CLI_MCP_{name}": value for name, value in variables.items()}}
        with McpServer(self.argv(*words, agent=agent), env) as server:
            server.initialize()
            yield server

    def recorded(self, name: str):
        """What a script left with record()."""
        return json.loads((self.home / name).read_text())

    def processes(self) -> list[int]:
        """All that runs in an environment of this box."""
        wanted = f"HOME={self.home}".encode()
        return [pid for pid in running() if wanted in _environment(pid)]

    def family(self) -> list[int]:
        """All that belongs to a run of this box."""
        return [pid for pid in self.processes() if any(entry.startswith(MARKER) for entry in _environment(pid))]

    def leftovers(self) -> list[str]:
        """What is in the box's directory for temporary files."""
        return sorted(os.listdir(self.temporary))


def text(response: dict) -> str:
    """The text of a tool's result."""
    return response["result"]["content"][0]["text"]


def structured(response: dict) -> dict:
    """The structure of a tool's result."""
    return response["result"]["structuredContent"]


def labels(server: McpServer) -> list[str]:
    """The progress messages so far, those told together apart again."""
    messages = [
        note["params"]["message"] for note in server.notifications if note["method"] == "notifications/progress"
    ]
    return [label for message in messages for label in message.split(" · ")]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
