"""The real coding-agent CLIs, each in a home of its own, with a scripted model service behind them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from . import counterparts
from .mcp_client import McpServer
from .scripted_agent import Box

DRIVER = Path(__file__).resolve().parent.parent / "counterparts" / "drivers" / "agent_client.py"
PACKAGES = {
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "claude": "@anthropic-ai/claude-code",
    "gemini": "@google/gemini-cli",
}
# What lets the CLIs work without asking; the user of a real one decides that in its configuration.
FLAGS = {
    "claude": ["--model", "claude-sonnet-4-5", "--", "--permission-mode", "bypassPermissions"],
    "gemini": ["--model", "gemini-2.5-pro", "--", "--skip-trust", "--approval-mode", "yolo"],
    "codex": [],
    "opencode": ["--model", "fake/fake-model"],
}
CLIENT_S = 120.0


class RealBox(Box):
    """A box whose CLI is a real one that talks to the service at `url`."""

    def __init__(self, ctl: str, folder: Path, env: dict[str, str], agent: str, url: str) -> None:
        super().__init__(ctl, folder, env)
        self.agent = agent
        binaries = counterparts.package(PACKAGES[agent]).parents[len(Path(PACKAGES[agent]).parts) - 1] / ".bin"
        self.env["PATH"] = os.pathsep.join([str(binaries), counterparts.path_with_node()])
        self.env.update({"LANG": "C.UTF-8", **getattr(self, f"_{agent}")(url)})

    def real(self, *words: str, **variables: str) -> McpServer:
        """A server of the agent, for `with`; it still has to be initialized."""
        env = {**self.env, **{f"AGENT_CLI_MCP_{name}": value for name, value in variables.items()}}
        return McpServer(self.argv(*words, *FLAGS[self.agent], agent=self.agent), env)

    def calls(self, *calls: dict, words=(), at_once: bool = False, flags=None, variables=None) -> list[dict]:
        """The results of these calls of run through the official Python client."""
        plan = self.home.parent / "plan.json"
        env = {**self.env, **(variables or {})}
        entries = [["run", {"prompt": "please do the task", **call}] for call in calls]
        plan.write_text(json.dumps({"env": env, "calls": entries, "at_once": at_once}))
        argv = self.argv(*words, *(FLAGS[self.agent] if flags is None else flags), agent=self.agent)
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

    def _codex(self, url: str) -> dict[str, str]:
        home = self.home / ".codex"
        home.mkdir()
        (home / "config.toml").write_text(codex_config(url))
        return {"CODEX_HOME": str(home), "FAKE_API_KEY": "fake"}

    def _opencode(self, url: str) -> dict[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        return {"OPENCODE_CONFIG_CONTENT": opencode_config(url), **{f"OPENCODE_DISABLE_{name}": "1" for name in off}}

    def _claude(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-fake",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def _gemini(self, url: str) -> dict[str, str]:
        (self.home / ".gemini").mkdir()
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "maxAttempts": 1},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "fake"}


def codex_config(url: str) -> str:
    """config.toml for the service at url, without any other traffic."""
    return f"""\
model = "gpt-5.5"
model_provider = "fake"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
unbounded_connection_retries = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def opencode_config(url: str) -> str:
    """The content of opencode.json for the service at url."""
    model = {"name": "Fake", "reasoning": True, "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
        "models": {"fake-model": model},
    }
    return json.dumps({"autoupdate": False, "share": "disabled", "provider": {"fake": provider}})
