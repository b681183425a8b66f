"""Who may call, and which folder a project id means."""
