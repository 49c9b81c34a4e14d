"""gNMI as a source of counters: what a switch streams by itself, or is asked for once. It reads, and never sets."""
