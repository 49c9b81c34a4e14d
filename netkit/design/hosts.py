"""The GPU hosts of a fabric, and the static routes that take every flow out of the right NIC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import Literal

from netkit.design.blueprint import Blueprint, InstalledUnit
from netkit.design.fabric import Fabric, Host, Nic, Rail, Switch
from netkit.design.numbering import LEAF_LENGTH_V6, dotted_quad
from netkit.hardware import RailNic

MAIN_TABLE = 254
# The source decides before the interface does, whatever the order in which the rules are added.
RULE_PRIORITY = 1000
OIF_RULE_PRIORITY = 1100


@dataclass(frozen=True, slots=True)
class Route:
    """A static route of a host NIC; `via` is empty unless the kind is via."""

    prefix: str
    kind: Literal["via", "link", "unreachable"]
    via: str
    table: int


def hosts(blueprint: Blueprint) -> Iterator[Host]:
    """Yield every host by number."""
    intent, hardware = blueprint.intent, blueprint.hardware
    for place in blueprint.places:
        for slot in place.entry.hosts:
            name = blueprint.host_name(place, slot)
            entry, override = blueprint.entry(name), blueprint.override(name)
            known = hardware.host(place.entry.host_model, entry.model if entry else None)
            yield Host(
                name=name,
                number=blueprint.numbering.host_number(place.pod, place.unit, slot),
                pod=place.pod,
                unit=place.unit,
                slot=slot,
                model=known.model,
                mtu_bytes=intent.hosts.mtu_bytes,
                backend=intent.hosts.backend,
                management_interface=intent.hosts.management_interface,
                management=str(entry.management.ip) if entry and entry.management else "",
                serial=(entry and entry.serial) or "",
                rack=override.rack or "",
                rack_unit=entry.rack_unit if entry else None,
                nics=tuple(_nics(blueprint, place, slot, name, known.rail_nics)),
            )


def _nics(blueprint: Blueprint, place: InstalledUnit, slot: int, name: str, cards: Sequence[RailNic]) -> Iterator[Nic]:
    numbering, intent = blueprint.numbering, blueprint.intent
    is_routed = intent.attachment == "p2p"
    for rail in place.rails:
        gateway, address = blueprint.host_address(place, rail, slot, name)
        gateway_v6, address_v6 = blueprint.host_address_v6(place, rail, slot, name)
        known, interface = cards[rail], f"rail{rail}"
        leaf = blueprint.leaf_name(place.pod, place.unit, rail)
        position, own = blueprint.layout("leaf", leaf).down[slot - 1], blueprint.cables.nic(name, interface)
        at = blueprint.port_at("leaf", leaf, "down", position, own.peer_port)
        yield Nic(
            rail=rail,
            interface=interface,
            pci=known.pci,
            rdma=known.rdma,
            mac=blueprint.mac(name, rail),
            address=dotted_quad(address),
            prefix_length=numbering.link_length if is_routed else numbering.leaf_length,
            gateway=dotted_quad(gateway),
            table=intent.hosts.table_base + rail,
            leaf=leaf,
            leaf_port=at.name,
            address_v6=address_v6,
            prefix_length_v6=(numbering.link_length_v6 if is_routed else LEAF_LENGTH_V6) if address_v6 else 0,
            gateway_v6=gateway_v6,
        )


class RoutePlan:
    """The static routes of every host NIC.

    The main table sends each rail's prefixes out of that rail's own NIC. A table per NIC, selected by source address
    and by interface, keeps whatever is bound to the NIC on it, also towards other rails. Each such table ends in an
    unreachable route for the whole fabric: without it, packets bound to the address would fall through to the main
    table and leave by another NIC. For packets bound to the interface this does not work: Linux then treats any address
    without a route as on-link, so they stay on their NIC and end in an ARP timeout.
    """

    def __init__(self, fabric: Fabric, version: Literal[4, 6] = 4) -> None:
        """Plan the routes of IPv4, or the same ones of IPv6."""
        self.fabric, self._is_ipv6 = fabric, version == 6
        self._rails: dict[int, tuple[str, ...]] = {rail.number: (self._of(rail),) for rail in fabric.rails}
        if fabric.host_routes == "per-leaf":
            prefixes: dict[int, list[str]] = {rail.number: [] for rail in fabric.rails}
            for leaf in fabric.tier("leaf"):
                prefixes[leaf.rail].append(self._of(leaf))
            self._rails = {rail: tuple(found) for rail, found in prefixes.items()}
        self._others: dict[int, tuple[str, ...]] = dict.fromkeys(self._rails, ())
        if fabric.cross_rail == "routed":
            for own in self._rails:
                others = (prefixes for rail, prefixes in self._rails.items() if rail != own)
                self._others[own] = tuple(prefix for prefixes in others for prefix in prefixes)

    def _of(self, place: Rail | Switch) -> str:
        """The prefix of a rail or of a leaf."""
        if isinstance(place, Rail):
            return place.prefix_v6 if self._is_ipv6 else place.prefix
        return place.leaf_prefix_v6 if self._is_ipv6 else place.leaf_prefix

    def gateway(self, nic: Nic) -> str:
        return nic.gateway_v6 if self._is_ipv6 else nic.gateway

    def routes(self, nic: Nic) -> Iterator[Route]:
        """Yield the routes of one NIC: the main table first, then the NIC's own."""
        own, gateway = self.own_rail(nic), self.gateway(nic)
        for prefix in own:
            yield Route(prefix, "via", gateway, MAIN_TABLE)
        yield Route(self.connected(nic), "link", "", nic.table)
        for prefix in (*own, *self.other_rails(nic)):
            yield Route(prefix, "via", gateway, nic.table)
        for prefix in self.unreachable(nic):
            yield Route(prefix, "unreachable", "", nic.table)

    def connected(self, nic: Nic) -> str:
        """The on-link prefix of a NIC."""
        if self._is_ipv6 and self.fabric.attachment == "p2p":
            return str(IPv6Interface(f"{nic.address_v6}/{nic.prefix_length_v6}").network)
        if nic.prefix_length == 31 and not self._is_ipv6:
            return f"{nic.gateway if int(nic.gateway.rpartition('.')[2]) % 2 == 0 else nic.address}/31"
        if self.fabric.attachment == "vlan":
            return self._of(self.fabric.switch(nic.leaf))
        return str(IPv4Interface(f"{nic.address}/{nic.prefix_length}").network)

    def prefixes(self, rail: int) -> tuple[str, ...]:
        """The prefixes that hosts have a route to on a rail."""
        return self._rails[rail]

    def own_rail(self, nic: Nic) -> tuple[str, ...]:
        """The prefixes of the NIC's rail behind its gateway, as one object for similar NICs."""
        # A second route to the prefix on the wire would replace the connected one, or be refused.
        prefixes, connected = self._rails[nic.rail], self.connected(nic)
        return tuple(prefix for prefix in prefixes if prefix != connected) if connected in prefixes else prefixes

    def other_rails(self, nic: Nic) -> tuple[str, ...]:
        """The reachable prefixes of other rails, as one object for similar NICs."""
        return self._others[nic.rail]

    def unreachable(self, nic: Nic) -> tuple[str, ...]:
        """The rest of the fabric's address space; empty if a route already has that very prefix."""
        pool = self.fabric.host_pool_v6 if self._is_ipv6 else self.fabric.host_pool
        return () if pool == self.connected(nic) or pool in self._rails[nic.rail] else (pool,)
