"""termsprawlctl: talk to a running terminal app through one file."""

__version__ = "0.1.0"
