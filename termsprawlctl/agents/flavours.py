"""The CLIs by name; each is imported only when it is chosen."""

from __future__ import annotations

import importlib

from .flavour import Flavour

# name: the class in the module of that name
FLAVOURS = {"codex": "Codex", "opencode": "OpenCode", "claude": "Claude", "gemini": "Gemini"}


def flavour(name: str) -> Flavour:
    """The flavour of this name."""
    return getattr(importlib.import_module(f".{name}", __package__), FLAVOURS[name])()
