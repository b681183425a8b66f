"""The agent CLIs, one file each: all that is known of one stands there."""
