"""The command line: from argv to an exit status."""
