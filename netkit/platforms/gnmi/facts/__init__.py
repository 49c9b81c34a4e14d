"""Pure parsers: from the updates of a gNMI server to facts."""
