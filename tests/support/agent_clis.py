"""The real coding-agent CLIs, each in a home of its own, with a scripted model service, and one MCP server or none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support import counterparts

RUN_S = 120.0
PROMPT = "please do the task"


class AgentCli:
    """One CLI. `server`: the argv of an MCP server, which is registered as `termsprawl`; None: there is none."""

    package = ""
    program = ""

    def __init__(self, root: Path, env: dict, url: str, server: list[str] | None) -> None:
        self.command = [str(counterparts.program(self.package, self.program))]
        self.home, self.project = root / "home", root / "project"
        self.url = url
        self.server = server and [str(word) for word in server]
        (self.home / "tmp").mkdir(parents=True)
        self.project.mkdir()
        # The tests' own Python first, as a script with `env python3` in it finds another one slowly.
        node = str(counterparts.node().parent)
        self.env = {
            "PATH": os.pathsep.join([env["PATH"].split(os.pathsep)[0], node, env["PATH"]]),
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "LANG": "C.UTF-8",
            "PWD": str(self.project),
        }
        self.configure()

    def configure(self) -> None:
        """Write the CLI's own files, and add to self.env."""
        raise NotImplementedError

    def words(self) -> list[str]:
        """Arguments of a run that reads its prompt from standard input."""
        raise NotImplementedError

    def mcp_words(self) -> list[str]:
        """Arguments of the command that lists MCP servers and whether they are connected."""
        return ["mcp", "list"]

    def run(self, prompt: str = PROMPT) -> subprocess.CompletedProcess:
        return self._start(self.words(), prompt.encode())

    def list_servers(self) -> str:
        done = self._start(self.mcp_words(), b"")
        return (done.stdout + done.stderr).decode()

    def _start(self, words: list[str], stdin: bytes) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self.command, *words],
            env=self.env,
            input=stdin,
            capture_output=True,
            timeout=RUN_S,
            check=False,
            cwd=self.project,
        )


class Codex(AgentCli):
    """A model that codex knows gets the names of MCP servers and searches for tools; any other gets the tools."""

    package, program = "@openai/codex", "codex"
    model = "gpt-5.5"

    def configure(self) -> None:
        home = self.home / ".codex"
        home.mkdir()
        quoted = json.dumps  # a TOML string, as far as paths go
        registered = ""
        if self.server:
            command, *words = self.server
            registered = f"[mcp_servers.termsprawl]\ncommand = {quoted(command)}\nargs = {quoted(words)}\n"
        (home / "config.toml").write_text(
            f"""
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = {quoted(self.url + "/v1")}
wire_api = "responses"
env_key = "FAKE_API_KEY"
request_max_retries = 1
stream_max_retries = 1
[analytics]
enabled = false
[features]
plugins = false
unbounded_connection_retries = false
{registered}"""
        )
        self.env.update(CODEX_HOME=str(home), FAKE_API_KEY="fake")

    def words(self) -> list[str]:
        return [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "-C",
            str(self.project),
            "-s",
            "danger-full-access",
            "-m",
            self.model,
            "-",
        ]


class OpenCode(AgentCli):
    package, program = "opencode-ai", "opencode"

    def configure(self) -> None:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": f"{self.url}/v1", "apiKey": "fake"},
            "models": {"fake-model": {"name": "Fake", "tool_call": True, "limit": {"context": 200000, "output": 8000}}},
        }
        config = {
            "autoupdate": False,
            "share": "disabled",
            "provider": {"fake": provider},
            "mcp": {"termsprawl": {"type": "local", "command": self.server, "enabled": True}} if self.server else {},
        }
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        self.env.update({f"OPENCODE_DISABLE_{switch}": "1" for switch in switches})
        self.env["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)

    def words(self) -> list[str]:
        return ["run", "--format", "json", "--auto", "--dir", str(self.project), "-m", "fake/fake-model"]


class Claude(AgentCli):
    package, program = "@anthropic-ai/claude-code", "claude"

    def configure(self) -> None:
        servers = {}
        if self.server:
            servers["termsprawl"] = {"type": "stdio", "command": self.server[0], "args": self.server[1:], "env": {}}
        (self.home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
        self.env.update(
            ANTHROPIC_BASE_URL=self.url,
            ANTHROPIC_API_KEY="sk-fake",
            IS_SANDBOX="1",  # without it the permission mode below is refused to root
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CLAUDE_CODE_MAX_RETRIES="1",
            DISABLE_AUTOUPDATER="1",
            DISABLE_TELEMETRY="1",
            DISABLE_ERROR_REPORTING="1",
        )

    def words(self) -> list[str]:
        mode = ["--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"]
        return ["-p", "--output-format", "stream-json", "--verbose", *mode]


class Gemini(AgentCli):
    package, program = "@google/gemini-cli", "gemini"

    def configure(self) -> None:
        servers = {"termsprawl": {"command": self.server[0], "args": self.server[1:]}} if self.server else {}
        settings = {
            # Without this type a base URL of one's own is refused.
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 2},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "mcpServers": servers,
        }
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        self.env.update(GOOGLE_GEMINI_BASE_URL=self.url, GEMINI_API_KEY="fake")

    def words(self) -> list[str]:
        return ["-o", "stream-json", "--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"]


class CodexOverAcp(Codex):
    """The adapter, which brings a codex of its own."""

    package, program = "@agentclientprotocol/codex-acp", "codex-acp"

    def configure(self) -> None:
        super().configure()
        self.env.update(CODEX_API_KEY="fake", NO_BROWSER="1", INITIAL_AGENT_MODE="agent-full-access")


class ClaudeOverAcp(Claude):
    """The adapter, which brings a claude of its own."""

    package, program = "@agentclientprotocol/claude-agent-acp", "claude-agent-acp"


class Copilot(AgentCli):
    """With a provider of one's own, which needs no login."""

    package, program = "@github/copilot", "copilot"

    def configure(self) -> None:
        self.env.update(
            COPILOT_PROVIDER_BASE_URL=f"{self.url}/v1", COPILOT_PROVIDER_API_KEY="fake", COPILOT_MODEL="fake-model"
        )


class Qwen(AgentCli):
    package, program = "@qwen-code/qwen-code", "qwen"

    def configure(self) -> None:
        self.env.update(OPENAI_BASE_URL=f"{self.url}/v1", OPENAI_API_KEY="fake", OPENAI_MODEL="fake-model")


ALL = {"codex": Codex, "opencode": OpenCode, "claude": Claude, "gemini": Gemini}
# Those that speak ACP; opencode and gemini do by themselves.
OVER_ACP = {
    "codex": CodexOverAcp,
    "opencode": OpenCode,
    "claude": ClaudeOverAcp,
    "gemini": Gemini,
    "copilot": Copilot,
    "qwen": Qwen,
}
