"""SNMP as a source of facts, for switches whose management allows nothing else; netkit never sends a SET."""
