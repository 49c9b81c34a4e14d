"""What the kernel is asked for: namespaces, links, loopback networks, processes that end together."""
