"""`netkit check` and what goes with it: snapshots, reports, the store, pytest, measurements."""
