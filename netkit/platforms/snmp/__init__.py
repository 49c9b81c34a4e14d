"""SNMP as a source of facts: for switches whose management only allows that. It reads, and never sets."""
