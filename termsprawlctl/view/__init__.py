"""A project's canvas as a picture: in the terminal, or as SVG."""
