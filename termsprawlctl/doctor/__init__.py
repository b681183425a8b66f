"""What `doctor --explain` looks at: each check with its evidence, its cause and its fix."""
