"""A running copy of a fabric on one Linux machine: namespaces, real FRR, sshd, and nodes that speak their NOS."""
