"""What runs in a pane: how a shell is given a command, and how its run is recorded and waited for."""
