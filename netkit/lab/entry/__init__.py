"""The ways in to a node, and between a command on it and the lab's keeper."""
