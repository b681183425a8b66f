"""The sharing side: rules, socket server, and a live tmux client as the view."""
