"""A project's canvas: its file, what may be done to it, and the files that it shows."""
