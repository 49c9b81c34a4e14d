"""LLDP on a node: real lldpd, and what it tells."""
