"""The embedded headless host: what the app does for its agents, over tmux, without the app."""
