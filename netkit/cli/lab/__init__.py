"""The verbs of `netkit lab`."""
