"""The host's life: its start, its lock, what it watches and writes down, its end."""
