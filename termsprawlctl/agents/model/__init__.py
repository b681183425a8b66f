"""What a run is made of: its arguments and settings, the steps that it takes, and their text."""
