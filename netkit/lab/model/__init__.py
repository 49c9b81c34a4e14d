"""The declared hardware model: what namespaces do not have, computed from the design, the configuration and the faults."""
