"""What every room uses: errors, console, files, text, processes, tmux. It imports no other room."""
