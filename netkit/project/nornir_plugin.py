"""Nornir's inventory plugin.

InitNornir(inventory={"plugin": "NetkitInventory", "options": {"fabric": "inventory/ai1"}})
"""

from pathlib import Path

from nornir.core.inventory import Inventory

from netkit.access.inventory import inventory
from netkit.project.connections import Connections
from netkit.project.project import Project


class NetkitInventory:
    """The devices of a fabric, or with `lab` those of a lab of it and nothing else."""

    def __init__(self, fabric: str, lab: str = "") -> None:
        self.folder, self.lab = Path(fabric).expanduser(), lab

    def load(self) -> Inventory:
        project = Project.open(self.folder, lab=self.lab)
        devices = Connections.of(project)
        return inventory(project.fabric, devices.endpoints, devices.secrets)
