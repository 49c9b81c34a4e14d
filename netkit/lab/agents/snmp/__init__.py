"""The SNMP agent of a node: real snmpd, and the tables its NOS would show."""
