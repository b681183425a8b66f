"""THE table of operations, the schemas that it makes, and the guides that teach them."""
