"""The agent's side of the tool hop: find the running app, call it, describe its operations."""
