"""Kernel interfaces: namespaces, links, loopback networks, and the process tree of a lab."""
