"""`netkit inventory`."""

import sys
from pathlib import Path

from netkit.access import ansible_inventory
from netkit.cli.fabric import open_project
from netkit.design.select import select
from netkit.project.fleet import fleet


def run(folder: Path, *, limit: str, lab: str) -> None:
    """Write the devices as an Ansible inventory."""
    project = open_project(folder, lab)
    devices = fleet(project)
    chosen = {device.name for device in select(project.fabric, limit)}
    found = {name: endpoint for name, endpoint in devices.endpoints.items() if name in chosen}
    sys.stdout.write(ansible_inventory.text(ansible_inventory.inventory(project.fabric, found)))
