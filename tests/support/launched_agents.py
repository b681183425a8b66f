"""Real coding agents set up so that a host can launch them: configured by their own files, asking nothing."""

from __future__ import annotations

import json


def configure_codex(cli) -> None:
    config = cli.home / ".codex" / "config.toml"
    # Only what the host gives it: the server of the batch tests goes.
    text = config.read_text().partition("[mcp_servers.termsprawl]")[0]
    trusted = f'[projects.{json.dumps(str(cli.project))}]\ntrust_level = "trusted"\n'
    # With an older model it greets with an offer to change to this one.
    settings = 'model = "gpt-6-sol"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
    config.write_text(settings + text + trusted)


def configure_opencode(cli) -> None:
    config = json.loads(cli.env.pop("OPENCODE_CONFIG_CONTENT"))
    del config["mcp"]
    folder = cli.home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps({**config, "model": "fake/fake-model"}))


def configure_claude(cli) -> None:
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-fake"], "rejected": []},
        "projects": {str(cli.project): {"hasTrustDialogAccepted": True}},
    }
    (cli.home / ".claude.json").write_text(json.dumps(state))
    (cli.home / ".claude").mkdir()
    settings = {"permissions": {"allow": ["mcp__termsprawl"], "defaultMode": "default"}, "model": "claude-sonnet-4-5"}
    (cli.home / ".claude" / "settings.json").write_text(json.dumps(settings))


def configure_gemini(cli) -> None:
    path = cli.home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text())
    # Only what the host gives it, which is no server; its shell tool would ask first.
    del settings["mcpServers"]
    settings.update(model={"name": "gemini-2.5-pro"}, tools={"allowed": ["run_shell_command"]}, ui={"hideTips": True})
    path.write_text(json.dumps(settings))


CONFIGURE = {"codex": configure_codex, "opencode": configure_opencode, "claude": configure_claude}
# These take no server, and use the helper from their shell.
CONFIGURE_FOR_THE_SHELL = {"gemini": configure_gemini}
# What the prompt of each looks like once it takes input.
READY = {"codex": "Ask Codex", "opencode": "Ask anything", "claude": "\u276f", "gemini": "Type your message"}
