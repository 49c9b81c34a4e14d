"""From the tables of an SNMP agent to facts; pure."""
