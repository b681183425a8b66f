"""GitHub Copilot CLI: `copilot --acp`."""

from __future__ import annotations

from .acp import AcpCli

CLI = AcpCli(
    "copilot",
    ["copilot", "--acp"],
    install="Install it with `npm install -g @github/copilot` and log in by starting `copilot` once, then /login.",
    login="Log in by starting `copilot` once, then /login, or set GH_TOKEN.",
)
