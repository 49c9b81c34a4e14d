"""gNMI as a source of facts, streamed or read once; netkit never sends a Set."""
