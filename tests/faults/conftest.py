"""A user's tmux with a client in it, for the suite about shares under faults."""

from support.tui_fixtures import prepared, tmux

__all__ = ["prepared", "tmux"]
