"""Run netkit as `python -m netkit`."""

from netkit.cli import main

main()
