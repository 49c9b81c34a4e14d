"""`show`: configuration, version, platform, neighbours, interfaces and their counters."""

import json
import zlib
from collections.abc import Sequence

from netkit.lab.agents.lldp import neighbor as lldp_neighbor
from netkit.lab.personalities.sonic.command_line import Commands, SonicArguments, SonicCommand, SonicUsageError, columns
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import natural, ordered, parts, text
from netkit.lab.personality import Call
from netkit.lab.reading import PortReading


def _all(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    routing = system.node.run("vtysh", "-c", "show running-config").stdout
    call.out(json.dumps({**ordered(system.running), "bgpraw": routing}, indent=4) + "\n")


RULE = "-" * 50


def serial(system: SonicSystem) -> str:
    """Return a serial number that stays the same for a device of this name."""
    return f"LAB{zlib.crc32(system.switch.name.encode()):010d}"


def _version(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    call.out(
        f"\nSONiC Software Version: SONiC.{system.switch.version}\nSONiC OS Version: 12\nDistribution: Debian 12\n"
        f"Built by: netkit lab\n\n{_summary(system)}\n"
    )


def _summary(system: SonicSystem) -> str:
    found = {leaf: text(system.running, "DEVICE_METADATA", "localhost", leaf) for leaf in ("platform", "hwsku")}
    return (
        f"Platform: {found['platform']}\nHwSKU: {found['hwsku']}\nASIC: {system.switch.model.asic}\nASIC Count: 1\n"
        f"Serial Number: {serial(system)}\nModel Number: {system.switch.model.name}\nHardware Revision: N/A\n"
    )


def _lldp_table(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    rows = [
        (one.interface, one.chassis.name, one.port, "", one.port_description)
        for one in sorted(_neighbors(system), key=lambda one: natural(one.interface))
    ]
    call.out("Capability codes: (R) Router, (B) Bridge, (O) Other\n")
    call.out(columns(("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"), rows, right=False))
    call.out(f"{RULE}\nTotal entries displayed:  {len(rows)}\n")


def _neighbors(system: SonicSystem) -> tuple[lldp_neighbor.LldpNeighbor, ...]:
    return lldp_neighbor.neighbors(system.node.run("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors").stdout)


FORM_WORDS = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}


def _status(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    up = {reading.name: reading for reading in system.node.ports()}
    names = sorted(system.running.get("PORT", {}), key=natural)
    if line.arguments and line.arguments[0] not in names:
        raise SonicUsageError(f"Invalid interface name {line.arguments[0]}")
    titles = ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC")
    call.out(columns(titles, [_status_row(system, name, up.get(name)) for name in line.arguments or names]))


def _status_row(system: SonicSystem, name: str, reading: PortReading | None) -> Sequence[str]:
    row = {leaf: text(system.running, "PORT", name, leaf) for leaf in system.running["PORT"][name]}
    speed = int(row["speed"])
    module = reading.module if reading else None
    return (
        name,
        row["lanes"],
        f"{speed // 1000}G" if speed % 1000 == 0 else f"{speed}M",
        row.get("mtu", "9100"),
        row.get("fec", "N/A"),
        row.get("alias", name),
        "trunk" if any(parts(key)[1] == name for key in system.running.get("VLAN_MEMBER", {})) else "routed",
        "up" if reading and reading.is_up else "down",
        row.get("admin_status", "down"),
        FORM_WORDS.get(module.identifier, module.identifier) if module else "N/A",
        "off",
    )


SHOW: Commands = {
    ("runningconfiguration", "all"): SonicCommand(_all),
    ("version",): SonicCommand(_version),
    ("interfaces", "status"): SonicCommand(_status, 1),
    ("lldp", "table"): SonicCommand(_lldp_table),
}
