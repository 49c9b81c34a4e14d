"""`netkit init`."""

import sys
from pathlib import Path

from netkit import design
from netkit.hardware import Catalog
from netkit.intent import load
from netkit.intent.scaffold import Size, write


def run(folder: Path, *, leaves: int, spines: int, hosts: int, units: int, platform: str, model: str) -> None:
    """Write a fabric folder, and prove that it is valid."""
    catalog = Catalog()
    size = Size(leaves=leaves, spines=spines, hosts_per_unit=hosts, units=units, platform=platform, model=model)
    file = write(folder, size, catalog)
    fabric = design.build(load(folder).intent, catalog)
    sys.stdout.write(f"{file}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")
    sys.stdout.write(f"next: netkit design --fabric {folder}, then netkit render --fabric {folder} --out out\n")
