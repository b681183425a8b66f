"""A user's tmux with a client in it, for every suite here."""

from support.tui_fixtures import client, prepared, tmux

__all__ = ["client", "prepared", "tmux"]
