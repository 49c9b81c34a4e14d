"""A server of the Model Context Protocol: a fabric for programs that reason about it. Nothing here reaches a device."""
