"""GPU hosts, and what Linux switches share with them: configuration files."""
