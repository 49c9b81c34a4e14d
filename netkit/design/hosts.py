"""The GPU hosts of a fabric, and the static routes that take every flow out of the right NIC."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from netkit.design.blueprint import Blueprint, Place
from netkit.design.fabric import Fabric, Host, Nic
from netkit.design.numbering import dotted_quad

MAIN_TABLE = 254
RULE_PRIORITY = 1000


@dataclass(frozen=True, slots=True)
class Route:
    """One static route of a host NIC; `via` is empty unless the kind is via."""

    prefix: str
    kind: Literal["via", "link", "unreachable"]
    via: str
    table: int


def hosts(blueprint: Blueprint) -> Iterator[Host]:
    """Yield every host by number."""
    intent, premises = blueprint.intent, blueprint.premises
    for place in blueprint.places:
        for slot in place.entry.hosts:
            name = blueprint.host_name(place, slot)
            yield Host(
                name=name,
                number=blueprint.numbering.host_number(place.pod, place.unit, slot),
                pod=place.pod,
                unit=place.unit,
                slot=slot,
                model=premises.host_model,
                mtu_bytes=intent.hosts.mtu_bytes,
                backend=intent.hosts.backend,
                management_interface=intent.hosts.management_interface,
                nics=tuple(_nics(blueprint, place, slot, name)),
            )


def _nics(blueprint: Blueprint, place: Place, slot: int, name: str) -> Iterator[Nic]:
    numbering, intent = blueprint.numbering, blueprint.intent
    macs = blueprint.override(name).macs
    position = blueprint.layouts["leaf"].down[slot - 1]
    is_routed = intent.attachment == "p2p"
    for rail in place.rails:
        base = numbering.leaf_base(place.pod, place.unit, rail)
        known = blueprint.premises.rail_nics[rail]
        yield Nic(
            rail=rail,
            interface=f"rail{rail}",
            pci=known.pci,
            rdma=known.rdma,
            mac=macs.get(rail, ""),
            address=dotted_quad(base + 2 * slot - 1 if is_routed else base + 1 + slot),
            prefix_length=31 if is_routed else numbering.leaf_length,
            gateway=dotted_quad(base + 2 * slot - 2 if is_routed else base + 1),
            table=intent.hosts.table_base + rail,
            leaf=blueprint.leaf_name(place.pod, place.unit, rail),
            leaf_port=position.name,
        )


class RoutePlan:
    """The static routes of every host NIC of a fabric.

    The main table sends each rail's prefixes out of that rail's own NIC. A table per NIC, chosen by its source
    address and by its interface, keeps whatever is bound to the NIC on it, also towards other rails.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._leaves: dict[int, list[tuple[str, str]]] = {rail.number: [] for rail in fabric.rails}
        for leaf in fabric.tier("leaf"):
            self._leaves[leaf.rail].append((leaf.name, leaf.leaf_prefix))
        self._rail_prefix = {rail.number: rail.prefix for rail in fabric.rails}

    def routes(self, nic: Nic) -> Iterator[Route]:
        """Yield the routes of one NIC: the main table first, then the NIC's own."""
        own = tuple(self._own_rail(nic))
        for prefix in own:
            yield Route(prefix, "via", nic.gateway, MAIN_TABLE)
        yield Route(self.connected(nic), "link", "", nic.table)
        for prefix in own:
            yield Route(prefix, "via", nic.gateway, nic.table)
        for prefix in self._other_rails(nic):
            if self.fabric.cross_rail == "routed":
                yield Route(prefix, "via", nic.gateway, nic.table)
            else:
                yield Route(prefix, "unreachable", "", nic.table)

    def connected(self, nic: Nic) -> str:
        """Return the prefix that is on the wire of a NIC."""
        return f"{nic.gateway}/31" if nic.prefix_length == 31 else self.fabric.switch(nic.leaf).leaf_prefix

    def _own_rail(self, nic: Nic) -> Iterator[str]:
        if self.fabric.host_routes == "supernet":
            yield self._rail_prefix[nic.rail]
            return
        is_on_link = self.fabric.attachment == "vlan"
        for leaf, prefix in self._leaves[nic.rail]:
            if not (is_on_link and leaf == nic.leaf):
                yield prefix

    def _other_rails(self, nic: Nic) -> Iterator[str]:
        for rail, prefix in self._rail_prefix.items():
            if rail == nic.rail:
                continue
            if self.fabric.host_routes == "supernet" or self.fabric.cross_rail == "blocked":
                yield prefix
            else:
                yield from (leaf_prefix for _, leaf_prefix in self._leaves[rail])
