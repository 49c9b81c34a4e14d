"""Benchmarks of netkit as whole processes, with peers for comparison. Run by `scripts/bench`."""
