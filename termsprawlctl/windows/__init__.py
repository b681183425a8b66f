"""A node's terminal in a real terminal window, or in the terminal at hand."""
