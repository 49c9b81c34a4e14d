"""The gNMI server of a node."""
