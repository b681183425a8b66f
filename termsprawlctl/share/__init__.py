"""A live TUI shared with an agent: the adapter that drives one, and a share of a tmux client (`sharing/`).

Both sides meet in one private directory: `endpoint.json` (who shares, and the token) and
the unix socket `s`, on which each request has a connection of its own.
"""
