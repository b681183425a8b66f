"""The real coding-agent CLIs, each in a home of its own, with a scripted model service behind them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from . import agent_clis, counterparts
from .mcp_client import McpServer
from .scripted_agent import Box

DRIVER = Path(__file__).resolve().parent.parent / "counterparts" / "drivers" / "agent_client.py"
# What lets the CLIs work without asking; the user of a real one decides that in its configuration.
FLAGS = {
    "claude": ["--model", "claude-sonnet-4-5", "--", "--permission-mode", "bypassPermissions"],
    "gemini": ["--model", "gemini-2.5-pro", "--", "--skip-trust", "--approval-mode", "yolo"],
    "codex": ["--model", "gpt-5.5", "--", "-s", "danger-full-access"],
    "opencode": ["--model", "fake/fake-model"],
}
# The same over ACP: what is asked there, --permissions answers.
ACP_FLAGS = {
    "claude": ["--via", "acp"],
    "gemini": ["--via", "acp", "--model", "gemini-2.5-pro"],
    "codex": ["--via", "acp"],
    "opencode": ["--via", "acp", "--model", "fake/fake-model"],
    "copilot": [],
    "qwen": ["--", "--auth-type", "openai"],
}
CLIENT_S = 120.0


class RealBox(Box):
    """A box whose CLI is a real one that talks to the service at `url`; with `acp`, the one that speaks ACP."""

    def __init__(self, ctl: str, folder: Path, env: dict[str, str], agent: str, url: str, *, acp: bool = False) -> None:
        super().__init__(ctl, folder, env)
        self.agent = agent
        self.flags = (ACP_FLAGS if acp else FLAGS)[agent]
        cli = (agent_clis.OVER_ACP if acp else agent_clis.ALL)[agent](folder / "cli", env, url, None)
        (self.bin / cli.program).symlink_to(os.path.realpath(cli.command[0]))
        self.home = cli.home
        path = os.pathsep.join([str(self.bin), cli.env["PATH"]])
        self.env = {**cli.env, "PATH": path, "TMPDIR": str(self.temporary)}

    def real(self, *words: str, **variables: str) -> McpServer:
        """A server of the agent, for `with`; it still has to be initialized."""
        env = {**self.env, **{f"AGENT_CLI_MCP_{name}": value for name, value in variables.items()}}
        return McpServer(self.argv(*words, *self.flags, agent=self.agent), env)

    def calls(self, *calls: dict, words=(), at_once: bool = False, flags=None, variables=None, **more) -> list[dict]:
        """The results of these calls of run through the official Python client; `more` is the driver's."""
        plan = self.bin.parent / "plan.json"
        env = {**self.env, **(variables or {})}
        entries = [["run", {"prompt": "please do the task", **call}] for call in calls]
        plan.write_text(json.dumps({"env": env, "calls": entries, "at_once": at_once, **more}))
        argv = self.argv(*words, *(self.flags if flags is None else flags), agent=self.agent)
        done = subprocess.run(
            [str(counterparts.python()), str(DRIVER), str(plan), *argv],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLIENT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return json.loads(done.stdout)

    def run(self, **call) -> dict:
        """The result of one call."""
        return self.calls(call)[0]
