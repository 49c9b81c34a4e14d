"""The distance of two NICs in the fabric."""

from typing import Literal

from netkit.design.fabric import Fabric, Nic, Switch

NicDistance = Literal["same leaf", "same unit", "across spines", "across cores"]
NIC_DISTANCES: tuple[NicDistance, ...] = ("same leaf", "same unit", "across spines", "across cores")


def nic_distance(fabric: Fabric, near: Nic, far: Nic) -> NicDistance:
    """Return the distance of two NICs; those in one unit on two leaves also meet at a spine."""
    one, other = fabric.switch(near.leaf), fabric.switch(far.leaf)
    if one is other:
        return "same leaf"
    if one.pod != other.pod:
        return "across cores"
    return "same unit" if one.unit == other.unit else "across spines"


def is_joined(fabric: Fabric, one: Switch, other: Switch) -> bool:
    """Whether a path connects two leaves: spine planes, and the rails of a rail-only fabric, are separate."""
    if one.name == other.name:
        return True
    above, beyond = _above(one), _above(other)
    if above & beyond or one.pod == other.pod:
        return bool(above & beyond)
    return bool(_tops(fabric, above) & _tops(fabric, beyond))


def _tops(fabric: Fabric, names: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*(_above(fabric.switch(name)) for name in names))


def _above(switch: Switch) -> frozenset[str]:
    return frozenset(port.peer for port in switch.fabric_ports if port.role == "up")
