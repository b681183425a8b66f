"""The CLIs by name; each is imported only when it is run."""

from __future__ import annotations

import importlib
from collections import namedtuple

# kind: the class in the module of that name; takes_effort: whether it has such a setting
Known = namedtuple("Known", "kind takes_effort")

FLAVOURS = {
    "codex": Known("Codex", takes_effort=True),
    "opencode": Known("OpenCode", takes_effort=False),
    "claude": Known("Claude", takes_effort=True),
    "gemini": Known("Gemini", takes_effort=False),
}


def flavour(name: str):
    """The flavour.Flavour of this name."""
    return getattr(importlib.import_module(f".{name}", __package__), FLAVOURS[name].kind)()
