"""The files below /sys of one host: built at boot, brought up to date while somebody looks."""

import json
import time

from netkit.lab.personalities.linux_host import slots, sysfs
from netkit.lab.personalities.linux_host.machine import Card, Machine
from netkit.lab.personalities.linux_host.sysfs import Sysfs

ADDRESSES_S = 5.0


class Tree:
    """What a host shows below /sys."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.files = Sysfs(machine.node)
        self._addresses_at_s = 0.0

    def build(self) -> None:
        """Make the tree, with the settings of NICs that were just powered up."""
        self.files.top.mkdir(parents=True, exist_ok=True)
        for part in ("bus", "class", "devices/virtual/net", "kernel/config", "fs", "module/mlx5_core"):
            (self.files.top / part).mkdir(parents=True, exist_ok=True)
        self.files.link([("class/net/lo", "../../devices/virtual/net/lo")])
        readings = {reading.interface: reading for reading in self._machine.node.nics()}
        for card in self._machine.cards.values():
            self.files.write(sysfs.identity(card, self._machine.host.model.nic, readings[card.interface]))
            self.files.write(sysfs.readings(card, readings[card.interface]))
            self.files.link(sysfs.links(card))
            self.reset(card)
        self.files.write(slots.files(self._machine.host))
        self.files.link(slots.links(self._machine.host))
        self.files.mount()

    def reset(self, card: Card) -> None:
        """Put the volatile settings of a NIC back to what they are after power-up."""
        self.files.write(sysfs.settings(card, self._machine.firmware), is_forced=True)

    def refresh(self) -> None:
        """Write what changed."""
        readings = {reading.interface: reading for reading in self._machine.node.nics()}
        for card in self._machine.cards.values():
            self.files.write(sysfs.readings(card, readings[card.interface]))
        if time.monotonic() - self._addresses_at_s > ADDRESSES_S:
            self.refresh_gids()

    def refresh_gids(self) -> None:
        """Write the GID tables, which follow the addresses of the interfaces."""
        self._addresses_at_s = time.monotonic()
        links = {link["ifname"]: link for link in json.loads(self._machine.node.run("ip", "-j", "addr").stdout or "[]")}
        for card in self._machine.cards.values():
            link = links.get(card.interface, {})
            found = [one["local"] for one in link.get("addr_info", ()) if one["family"] == "inet"]
            self.files.write(sysfs.gids(card, link.get("address", ""), found[0] if found else ""))
