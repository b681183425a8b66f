"""What the bytes of a terminal look like on a screen, and as text to read."""
