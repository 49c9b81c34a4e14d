"""The agents of the lab: SNMP of every switch, LLDP of every device."""
