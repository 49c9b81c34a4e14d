"""From the updates of a gNMI server to facts; pure."""
