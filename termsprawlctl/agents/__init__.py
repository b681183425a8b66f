"""A coding-agent CLI without its UI: run it, follow it, end it, tell what it did."""
