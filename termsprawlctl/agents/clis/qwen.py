"""Qwen Code: `qwen --acp`."""

from __future__ import annotations

from .acp import AcpCli

CLI = AcpCli(
    "qwen",
    ["qwen", "--acp"],
    install="Install it with `npm install -g @qwen-code/qwen-code` and log in by starting `qwen` once.",
    login="Log in by starting `qwen` once, or set OPENAI_API_KEY.",
)
