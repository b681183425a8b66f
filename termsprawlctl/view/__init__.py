"""A canvas as people see it: in a terminal, or as a picture."""
