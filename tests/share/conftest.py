"""A user's tmux with a client in it, and shares of that, for every suite here."""

from support.tui_fixtures import client, ids, prepared, share, start, tmux

__all__ = ["client", "ids", "prepared", "share", "start", "tmux"]
