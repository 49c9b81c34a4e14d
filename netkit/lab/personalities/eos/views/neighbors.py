"""LLDP neighbours, from the lldpd of the node."""

from collections.abc import Iterator
from typing import Any

from netkit.lab.agents.lldp.neighbor import LldpChassis
from netkit.lab.agents.lldp.neighbor import LldpNeighbor as Heard
from netkit.lab.personalities.eos.commands import Captured
from netkit.lab.personalities.eos.grammar import port_list
from netkit.lab.personalities.eos.reply import EosReply, InvalidCommandError
from netkit.lab.personalities.eos.views.lens import Lens, table

TTL_S = 120
ID_TYPES = {"mac": "macAddress", "local": "locallyAssigned"}
PORT_TYPES = {"mac": "macAddress", "ifname": "interfaceName", "local": "local"}


def _heard(lens: Lens, captured: Captured) -> Iterator[tuple[str, Heard]]:
    word = captured.get("ports", "")
    only = port_list(word, lens.machine.ports) if word else lens.machine.ports
    if not only:
        raise InvalidCommandError(f"Invalid input (at token 3: '{word}')")
    return ((port, one) for port, one in lens.lldp() if port in only)


def neighbors(lens: Lens, captured: Captured) -> EosReply:
    """Show who is at the other end; a NIC without a name shows its MAC address."""
    shown = [
        {"port": port, "neighborDevice": one.chassis.name, "neighborPort": _port_text(one), "ttl": TTL_S}
        for port, one in _heard(lens, captured)
    ]
    data: dict[str, Any] = {
        "tablesLastChangeTime": lens.now_s,
        "tablesAgeOuts": 0,
        "tablesInserts": len(shown),
        "tablesDeletes": 0,
        "tablesDrops": 0,
        "lldpNeighbors": shown,
    }
    rows = [tuple(one.values()) for one in shown]
    return EosReply(data, table(("Port", "Neighbor Device ID", "Neighbor Port ID", "TTL"), rows))


def detail(lens: Lens, captured: Captured) -> EosReply:
    """Show everything neighbours say of themselves."""
    shown: dict[str, Any] = {port: {"lldpNeighborInfo": []} for port in lens.machine.ports}
    for port, one in _heard(lens, captured):
        shown[port]["lldpNeighborInfo"].append(
            {
                "chassisId": _chassis_text(one.chassis),
                "chassisIdType": ID_TYPES.get(one.chassis.kind, one.chassis.kind),
                "systemName": one.chassis.name,
                "systemDescription": one.chassis.description,
                "systemCapabilities": {},
                "neighborInterfaceInfo": {
                    "interfaceId": f'"{one.port}"' if one.port_kind != "mac" else _dotted(one.port),
                    "interfaceId_v2": _port_text(one),
                    "interfaceIdType": PORT_TYPES.get(one.port_kind, one.port_kind),
                    "interfaceDescription": one.port_description,
                },
            }
        )
    text = "".join(
        f"Interface {port} detected {len(one['lldpNeighborInfo'])} LLDP neighbors\n" for port, one in shown.items()
    )
    return EosReply({"lldpNeighbors": shown}, text)


def _port_text(one: Heard) -> str:
    return _dotted(one.port) if one.port_kind == "mac" else one.port


def _chassis_text(chassis: LldpChassis) -> str:
    return _dotted(chassis.identifier) if chassis.kind == "mac" else chassis.identifier


def _dotted(mac: str) -> str:
    """Return a MAC address as EOS writes it: 001c.73a0.fc18."""
    digits = mac.replace(":", "").lower()
    return ".".join(digits[index : index + 4] for index in range(0, len(digits), 4))


VIEWS = (
    ("show lldp neighbors", neighbors),
    ("show lldp neighbors detail", detail),
    ("show lldp neighbors <ports> detail", detail),
    ("show lldp neighbors <ports>", neighbors),
)
