"""GPU hosts of the lab: netplan and systemd-networkd as shipped, and the tools of their NICs."""

import threading
from collections.abc import Callable, Mapping
from typing import ClassVar

from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node, ProgramResult
from netkit.lab.personalities.linux_host import (
    declared,
    ethtool,
    measuring,
    mft,
    networkd,
    qos_tools,
    systemctl,
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
    "ibv_devinfo": ethtool.ibv_devinfo,
    "lspci": ethtool.lspci,
    "mlnx_qos": qos_tools.mlnx_qos,
    "mlxconfig": mft.mlxconfig,
    "mlxlink": mft.mlxlink,
    "mlxreg": mft.mlxreg,
    "mstconfig": mft.mlxconfig,
    "mstlink": mft.mlxlink,
    "mstreg": mft.mlxreg,
    "nicctl": qos_tools.nicctl,
    "rdma": ethtool.rdma,
    "setpci": ethtool.setpci,
}
"""Programs that only need the NICs."""


def _networkctl(host: "LinuxHost", call: Call) -> int:
    result = networkd.control(host.node, *call.arguments)
    call.out(result.stdout)
    call.err(result.stderr)
    return result.exit_code


def _udevadm(host: "LinuxHost", call: Call) -> int:
    verb = next((word for word in call.arguments if not word.startswith("-")), "")
    if verb == "trigger":
        for name in udev.wanted_units(host.machine):
            host.units.start(name)
        return 0
    if verb in {"control", "settle"}:
        return 0  # rules are read when they are used
    call.err(f"udevadm: the lab has no command {verb or '(none)'}\n")
    return 1


def _mlxfwreset(host: "LinuxHost", call: Call) -> int:
    arguments = mft.parse([word for word in call.arguments if word not in {"-l", "--level", "3", "4"}])
    card = host.machine.find(arguments.device)
    if card is None or arguments.verb not in {"reset", "query", "q"}:
        call.err(f"-E- Failed to open device {arguments.device or '(none)'}, or unknown command\n")
        return 1
    if arguments.verb != "reset":
        call.out("Reset-levels:\n3: Driver restart and PCI reset                       -Supported     (default)\n")
        return 0
    host.machine.firmware.reset(card.pci)
    card.power_up()
    host.tree.reset(card)
    for name in udev.outcome_of(host.machine, card).wants:
        host.units.restart(name)
    call.out("-I- Sending Reset Command To Fw             -Done\n-I- FW was loaded successfully.\n")
    return 0


SYSTEM_PROGRAMS: Mapping[str, Callable[["LinuxHost", Call], int]] = {
    "systemctl": lambda host, call: systemctl.systemctl(host.units, call),
    "systemd-run": lambda host, call: systemctl.systemd_run(host.units, call),
    "networkctl": _networkctl,
    "udevadm": _udevadm,
    "mlxfwreset": _mlxfwreset,
}
OF_FAMILY: Mapping[str, frozenset[str]] = {
    "mlx5_core": frozenset(name for name in (*TOOLS, *SYSTEM_PROGRAMS) if name.startswith(("mlx", "mst", "mlnx"))),
    "ionic": frozenset({"nicctl"}),
}
"""Driver → programs that only hosts with its NICs have."""
BOOT_MTU_BYTES = 1500


class LinuxHost(Personality):
    """Real netplan, systemd-networkd and kernel; NIC tools and systemd are emulated."""

    programs: ClassVar[tuple[str, ...]] = (*SYSTEM_PROGRAMS, *TOOLS, *measuring.PROGRAMS)
    refreshes: ClassVar[bool] = True
    prompt: ClassVar[str] = "{user}@{host}:~# "

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.machine = HostMachine(node)
        self.tree = SysfsTree(self.machine)
        self.units: Units = Units(node, self._run_for_unit)
        self._tree_lock = threading.Lock()

    @classmethod
    def locks(cls, call: Call) -> bool:
        return call.program not in measuring.PROGRAMS

    def installed(self) -> tuple[str, ...]:
        """The programs of this host: tools of other vendors' NICs are not on it."""
        others = {name for driver, names in OF_FAMILY.items() if driver != self.machine.family.driver for name in names}
        return tuple(name for name in self.programs if name not in others)

    def provision(self, files: Mapping[str, str]) -> None:
        """Install rendered files on the disk, and the NICs' firmware parameters."""
        disk = self.node.saved / "disk"
        declared.write(disk, files, declared.installs(files))
        firmware = declared.declare(disk, self.machine.host).firmware
        for card in self.machine.cards.values():
            self.machine.firmware.set(card.pci, firmware)

    def boot(self) -> None:
        """Boot from the disk. A new disk gets the provisioned files; without any, the NICs stay down."""
        declared.restore(self.node)
        self.machine.power_up()
        self.tree.build()
        lines = ["link set lo up"]
        for card in self.machine.cards.values():
            mac = f" address {card.nic.mac}" if card.nic.mac else ""
            lines.append(f"link set dev {card.interface} mtu {BOOT_MTU_BYTES}{mac}")
        self.node.ip(lines)
        self.units.power_up()
        self.units.start_early()
        networkd.start(self.node)
        apply_sysctls(self.node)
        udev.start_units(self.machine, self.tree, self.units, self._run_for_unit)

    def stop(self) -> None:
        """Save the installed files."""
        declared.save(self.node)

    def run(self, call: Call) -> int:
        if call.program in TOOLS:
            return self._tool(call)
        if call.program in measuring.PROGRAMS:
            if self.rdma is None:
                raise RuntimeError("the lab has no traffic")
            return measuring.PROGRAMS[call.program](self.machine, call, self.rdma)
        self.nic_changes += 1  # a unit may have changed a NIC
        return SYSTEM_PROGRAMS[call.program](self, call)

    def settings(self, interface: str) -> NicSettings:
        """A NIC's settings for the hardware model and the traffic engine."""
        with self._tree_lock:
            return nic_settings(self.machine, self.tree, self.machine.cards[interface])

    def data_tos(self, interface: str) -> int:
        """The TOS of NCCL's traffic: NCCL_IB_TC if set, else the NIC's traffic class."""
        of_nic = traffic_class(self.tree, self.machine.cards[interface])
        of_nccl = declared.assignments(self.node.file("/etc/nccl.conf")).get("NCCL_IB_TC", "")
        return int(of_nccl) if of_nccl.isdecimal() and int(of_nccl) <= 255 else of_nic

    def refresh(self) -> None:
        with self._tree_lock:
            self.tree.refresh()

    def _tool(self, call: Call) -> int:
        before = [card.state for card in self.machine.cards.values()]
        try:
            return TOOLS[call.program](self.machine, call)
        finally:
            self.nic_changes += before != [card.state for card in self.machine.cards.values()]

    def _run_for_unit(self, command: list[str]) -> ProgramResult:
        with units.answering(self.node, tuple(set(TOOLS) & set(self.installed())), self._tool):
            return self.node.run("env", f"PATH={units.PATH}", *command, timeout_s=300)


PERSONALITY = LinuxHost
