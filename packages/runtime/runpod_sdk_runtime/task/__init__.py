"""Tasks: one function in a worker of its own."""
