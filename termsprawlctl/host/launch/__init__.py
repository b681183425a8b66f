"""How an agent or a shell is started in a terminal: its tools, its folder, its environment."""
