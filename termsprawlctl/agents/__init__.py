"""A coding-agent CLI without its UI: run it, follow it, end it, report what it did."""
