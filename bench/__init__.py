"""Measures netkit as whole processes, and a peer beside it. Started by `scripts/bench`."""
