"""`doctor --explain`: what is looked at, what was found, and what to do about it."""
