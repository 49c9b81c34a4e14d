"""A GPU host as a personality: its NIC tools and programs, its files, and how it boots."""

import threading
from collections.abc import Mapping
from typing import ClassVar

from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node, ProgramResult
from netkit.lab.personalities.linux_host import (
    declared,
    ethtool,
    mlxconfig,
    mlxlink,
    networkd,
    pci,
    programs,
    qos_tools,
    udev,
    units,
)
from netkit.lab.personalities.linux_host.declared import apply_sysctls
from netkit.lab.personalities.linux_host.machine import HostMachine, Tool
from netkit.lab.personalities.linux_host.sysfs import SysfsTree, nic_settings, traffic_class
from netkit.lab.personalities.linux_host.units import Units
from netkit.lab.personality import Call, Personality

TOOLS: Mapping[str, Tool] = {
    "dcb": qos_tools.dcb,
    "ethtool": ethtool.ethtool,
    "ibv_devinfo": pci.ibv_devinfo,
    "lspci": pci.lspci,
    "mlnx_qos": qos_tools.mlnx_qos,
    "mlxconfig": mlxconfig.mlxconfig,
    "mlxlink": mlxlink.mlxlink,
    "mlxreg": mlxconfig.mlxreg,
    "mstconfig": mlxconfig.mlxconfig,
    "mstlink": mlxlink.mlxlink,
    "mstreg": mlxconfig.mlxreg,
    "rdma": pci.rdma,
    "setpci": pci.setpci,
}


FRESH_MTU_BYTES = 1500
SHOWS_ADDRESSES = frozenset({"show_gids"})


class LinuxHost(Personality):
    """Real netplan, systemd-networkd and kernel; NIC tools and systemd itself are stood in for."""

    programs: ClassVar[tuple[str, ...]] = (*programs.PROGRAMS, *TOOLS)
    refreshes: ClassVar[bool] = True
    prompt: ClassVar[str] = "{user}@{host}:~# "

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.machine = HostMachine(node)
        self.tree = SysfsTree(self.machine)
        self.units = Units(node, self._run_for_unit)
        self._reading = threading.Lock()

    def provision(self, files: Mapping[str, str]) -> None:
        """Install rendered files on the disk that the host will boot from, and tell the NICs' firmware."""
        found = declared.installs(files)
        declared.write(self.node.saved / "disk", files, found)
        meant = declared.declare(self.node.saved / "disk", self.machine.host)
        for card in self.machine.cards.values():
            self.machine.firmware.set(card.pci, meant.firmware)

    def boot(self) -> None:
        """Come up as the disk says: a new disk gets what was provisioned, and an empty one leaves the NICs down."""
        declared.restore(self.node)
        self.machine.power_up()
        self.tree.build()
        lines = ["link set lo up"]
        for card in self.machine.cards.values():
            mac = f" address {card.nic.mac}" if card.nic.mac else ""
            lines.append(f"link set dev {card.interface} mtu {FRESH_MTU_BYTES}{mac}")
        self.node.ip(lines)
        self.units.power_up()
        self.units.start_early()
        networkd.start(self.node)
        apply_sysctls(self.node)
        udev.start_units(self.machine, self.tree, self.units, self._run_for_unit)

    def stop(self) -> None:
        """Keep what was installed meanwhile."""
        declared.save(self.node)

    def run(self, call: Call) -> int:
        """Answer a program."""
        if call.program in TOOLS:
            return self._tool(call)
        self.nic_changes += 1  # a unit may have set one
        return programs.answer(self, call)

    def settings(self, interface: str) -> NicSettings:
        """Return how a NIC is set, as the hardware model and the traffic between hosts need it."""
        with self._reading:
            return nic_settings(self.machine, self.tree, self.machine.cards[interface])

    def data_tos(self, interface: str) -> int:
        """Return the TOS that NCCL's traffic leaves a NIC with: its own setting, or else the NIC's traffic class."""
        found = traffic_class(self.tree, self.machine.cards[interface])
        own = declared.assignments(self.node.file("/etc/nccl.conf")).get("NCCL_IB_TC", "")
        return int(own) if own.isdecimal() and int(own) <= 255 else found

    def refresh(self) -> None:
        """Bring the files below /sys to what the hardware shows now."""
        with self._reading:
            self.tree.refresh()

    def _tool(self, call: Call) -> int:
        if call.program in SHOWS_ADDRESSES:
            self.tree.refresh_gids()
        before = [card.state for card in self.machine.cards.values()]
        try:
            return TOOLS[call.program](self.machine, call)
        finally:
            self.nic_changes += before != [card.state for card in self.machine.cards.values()]

    def _run_for_unit(self, command: list[str]) -> ProgramResult:
        with units.answering(self.node, tuple(TOOLS), self._tool):
            return self.node.run("env", f"PATH={units.PATH}", *command, timeout_s=300)
