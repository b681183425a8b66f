"""clis."""
