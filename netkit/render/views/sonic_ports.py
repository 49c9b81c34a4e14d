"""SONiC: cages, ports and what is layered on them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import PortProfile, Switch
from netkit.platforms.sonic.hardware import SonicHardware


@dataclass(frozen=True, slots=True)
class CageRow:
    """A cage with its breakout, under the name of its first port."""

    port: str
    mode: str


@dataclass(frozen=True, slots=True)
class PortRow:
    """One PORT row. A cage that is split has all its ports, those without a cable down."""

    name: str
    alias: str
    index: int
    lanes: str
    speed: int
    mtu: int
    fec: str
    subport: int
    admin_status: str
    description: str
    cable: str


@dataclass(frozen=True, slots=True)
class Interface:
    """A routed port: unnumbered towards switches, with an address towards a host."""

    name: str
    link_local: str
    addresses: tuple[str, ...]


def cages(switch: Switch, hardware: SonicHardware) -> Iterator[CageRow]:
    """Yield the cages in use."""
    for cage in switch.cages:
        yield CageRow(cage.ports[0], hardware.breakout_mode(cage.split))


def ports(switch: Switch, hardware: SonicHardware) -> Iterator[PortRow]:
    """Yield all ports of all cages in use."""
    used = {port.name: port for port in switch.ports}
    profiles = {port.cage: port.profile for port in switch.ports}
    cables = {id(profile): cable_length(profile) for profile in profiles.values()}
    for cage in switch.cages:
        profile, split = profiles[cage.number], cage.split
        for number, name in enumerate(cage.ports):
            port = used.get(name)
            yield PortRow(
                name=name,
                alias=hardware.port_alias(split, cage.number, number),
                index=hardware.port_index_base + cage.number - 1,
                lanes=hardware.port_lanes(split, cage.number, number),
                speed=split.speed_gbps * 1000,
                mtu=profile.mtu_bytes,
                fec=profile.fec,
                subport=number + 1 if split.ports > 1 else 0,
                admin_status="up" if port else "down",
                description=port.description if port else "unused",
                cable=cables[id(profile)],
            )


def cable_length(profile: PortProfile) -> str:
    """Return the length as CABLE_LENGTH takes it: the vendor's row, so that switch and design get the same headroom."""
    room = profile.headroom
    length = room.table_cable_m if room and room.table_cable_m else profile.cable.length_m
    return f"{math.ceil(length)}m"


def interfaces(switch: Switch) -> Iterator[Interface]:
    """Yield the routed ports; with a host VLAN its members are not among them."""
    for port in switch.ports:
        # Without link-local only, SONiC keeps IPv6 off on a port that has no address, and the BGP session never starts.
        if port.role != "host":
            yield Interface(port.name, "enable", ())
        elif port.address:
            yield Interface(port.name, "disable", (port.address,))


def members(switch: Switch) -> Iterator[str]:
    """Yield the ports in the host VLAN."""
    # CONFIG_DB has no timers for ARP and MAC ageing. The image ages MACs after 600 s, and its arp_update asks every
    # neighbour in a VLAN again each few minutes, so that no MAC of a live host ages out and is flooded.
    if switch.vlan:
        yield from (port.name for port in switch.host_ports)
