"""The switches of a fabric, with all their ports."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Literal

from netkit.design.blueprint import Blueprint, InstalledUnit
from netkit.design.external import EdgePanel, external_ports
from netkit.design.fabric import ManagementAddress, Port, Role, Switch, Vlan
from netkit.design.layout import core_plane, leaf_place, parallel_links, plane_of_rail, spine_place
from netkit.design.numbering import LEAF_LENGTH_V6, dotted_quad

HOST_LENGTH = 32
"""The length of an address that is given without one."""


def switches(blueprint: Blueprint) -> Iterator[Switch]:
    """Yield every switch: leaves, spines, cores, each by number."""
    tiers = blueprint.intent.switches
    for place in blueprint.places:
        for rail in place.rails:
            yield _leaf(blueprint, place, rail)
    if tiers.spine:
        planes = range(tiers.spine.planes)
        for pod in blueprint.pods:
            for plane in planes:
                for slot in tiers.spine.slots:
                    yield _spine(blueprint, pod, plane, slot)
    if tiers.core:
        for plane in range(tiers.core.planes):
            for slot in tiers.core.slots:
                yield _core(blueprint, plane, slot)


def _leaf(blueprint: Blueprint, place: InstalledUnit, rail: int) -> Switch:
    numbering, intent = blueprint.numbering, blueprint.intent
    number = numbering.leaf_number(place.pod, place.unit, rail)
    name = blueprint.leaf_name(place.pod, place.unit, rail)
    prefix = f"{dotted_quad(blueprint.leaf_base(place, rail))}/{numbering.leaf_length}"
    vlan, base_v6 = None, blueprint.leaf_base_v6(place, rail)
    if intent.attachment == "vlan":
        entry = blueprint.entry(name)
        own = (entry and entry.vlan) or numbering.vlans.get(rail) or intent.pools.first_vlan + rail
        gateway = f"{dotted_quad(blueprint.vlan_gateway(place, rail))}/{numbering.leaf_length}"
        of_ipv6 = f"{IPv6Address(base_v6 + 1)}/{LEAF_LENGTH_V6}" if base_v6 else ""
        vlan = Vlan(own, f"rail{rail}", prefix, gateway, of_ipv6)
    ports = (*_host_ports(blueprint, place, rail), *_leaf_uplinks(blueprint, place, rail))
    numbers = (place.pod, place.unit, rail, 0, plane_of_rail(blueprint.hardware, rail))
    leaf = _switch(blueprint, "leaf", name, number, numbers, ports, prefix, vlan)
    if not base_v6:
        return leaf
    prefix_v6 = f"{IPv6Address(base_v6)}/{LEAF_LENGTH_V6}"
    return replace(leaf, leaf_prefix_v6=prefix_v6, link_length_v6=numbering.link_length_v6)


def _host_ports(blueprint: Blueprint, place: InstalledUnit, rail: int) -> Iterator[Port]:
    leaf = blueprint.leaf_name(place.pod, place.unit, rail)
    positions = blueprint.layout("leaf", leaf).down
    is_routed, interface = blueprint.intent.attachment == "p2p", f"rail{rail}"
    for slot in place.entry.hosts:
        host = blueprint.host_name(place, slot)
        given = blueprint.cables.nic(host, interface)
        at = blueprint.port_at("leaf", leaf, "down", positions[slot - 1], given.peer_port)
        profile = blueprint.profile("leaf", leaf, "host", place.entry.host_cable_m, given)
        gateway, _ = blueprint.host_address(place, rail, slot, host)
        address = f"{dotted_quad(gateway)}/{blueprint.numbering.link_length}" if is_routed else ""
        own = blueprint.host_address_v6(place, rail, slot, host)[0] if is_routed else ""
        address_v6 = f"{own}/{blueprint.numbering.link_length_v6}" if own else ""
        yield Port(at.name, at.cage, at.port, host, interface, 0, address, profile, given.label, address_v6)


def _leaf_uplinks(blueprint: Blueprint, place: InstalledUnit, rail: int) -> Iterator[Port]:
    spine = blueprint.intent.switches.spine
    if not spine:
        return
    plane, leaf = plane_of_rail(blueprint.hardware, rail), blueprint.leaf_name(place.pod, place.unit, rail)
    below = leaf_place(blueprint.hardware, place.unit, rail)
    for slot in spine.slots:
        name = blueprint.spine_name(place.pod, plane, slot)
        asn = blueprint.asn("spine", name, place.pod, blueprint.numbering.spine_number(place.pod, plane, slot))
        number = blueprint.numbering.leaf_number(place.pod, place.unit, rail)
        links = _Links("leaf", leaf, slot, "spine", name, below, number)
        yield from _ports(blueprint, links, "up", asn, place.entry.spine_cable_m)


def _spine(blueprint: Blueprint, pod: int, plane: int, slot: int) -> Switch:
    number = blueprint.numbering.spine_number(pod, plane, slot)
    name = blueprint.spine_name(pod, plane, slot)
    ports = (*_spine_downlinks(blueprint, pod, plane, slot), *_spine_uplinks(blueprint, pod, plane, slot))
    own_plane = plane if blueprint.intent.topology == "two-tier" else core_plane(blueprint.hardware, slot)
    return _switch(blueprint, "spine", name, number, (pod, 0, -1, slot, own_plane), ports, "", None)


def _spine_downlinks(blueprint: Blueprint, pod: int, plane: int, slot: int) -> Iterator[Port]:
    spine = blueprint.spine_name(pod, plane, slot)
    for place in blueprint.places:
        if place.pod != pod:
            continue
        for rail in place.rails:
            if plane_of_rail(blueprint.hardware, rail) != plane:
                continue
            name = blueprint.leaf_name(pod, place.unit, rail)
            number = blueprint.numbering.leaf_number(pod, place.unit, rail)
            asn = blueprint.asn("leaf", name, pod, number)
            links = _Links("leaf", name, slot, "spine", spine, leaf_place(blueprint.hardware, place.unit, rail), number)
            yield from _ports(blueprint, links, "down", asn, place.entry.spine_cable_m)


def _spine_uplinks(blueprint: Blueprint, pod: int, plane: int, slot: int) -> Iterator[Port]:
    core, spine = blueprint.intent.switches.core, blueprint.spine_name(pod, plane, slot)
    if not core:
        return
    above, below = core_plane(blueprint.hardware, slot), spine_place(blueprint.hardware, pod, slot)
    number = blueprint.numbering.spine_number(pod, 0, slot)
    for core_slot in core.slots:
        name = blueprint.core_name(above, core_slot)
        asn = blueprint.asn("core", name, 0, blueprint.numbering.core_number(above, core_slot))
        yield from _ports(blueprint, _Links("spine", spine, core_slot, "core", name, below, number), "up", asn, None)


def _core(blueprint: Blueprint, plane: int, slot: int) -> Switch:
    number = blueprint.numbering.core_number(plane, slot)
    ports = _core_downlinks(blueprint, plane, slot)
    return _switch(
        blueprint, "core", blueprint.core_name(plane, slot), number, (0, 0, -1, slot, plane), ports, "", None
    )


def _core_downlinks(blueprint: Blueprint, plane: int, core_slot: int) -> Iterator[Port]:
    spine, core = blueprint.intent.switches.spine, blueprint.core_name(plane, core_slot)
    if not spine:
        return
    for pod in blueprint.pods:
        for slot in spine.slots:
            if core_plane(blueprint.hardware, slot) != plane:
                continue
            name = blueprint.spine_name(pod, 0, slot)
            number = blueprint.numbering.spine_number(pod, 0, slot)
            asn = blueprint.asn("spine", name, pod, number)
            links = _Links("spine", name, core_slot, "core", core, spine_place(blueprint.hardware, pod, slot), number)
            yield from _ports(blueprint, links, "down", asn, None)


@dataclass(frozen=True, slots=True)
class _Links:
    """The parallel links between two switches."""

    lower_role: str
    lower: str
    slot: int
    """Of the upper switch: it decides the ports of the lower one."""
    upper_role: str
    upper: str
    place: int
    """Of the lower switch among those below the upper one: it decides the ports there."""
    number: int
    """Of the lower switch: with the slot, it decides the addresses."""


def _ports(
    blueprint: Blueprint, links: _Links, side: Literal["up", "down"], peer_asn: int, length_m: float | None
) -> Iterator[Port]:
    """Yield the ports at one side of parallel links: `up` are those of the lower switch."""
    ups = blueprint.layout(links.lower_role, links.lower).up
    downs = blueprint.layout(links.upper_role, links.upper).down
    count = parallel_links(blueprint.hardware, links.lower_role)
    for number in range(count):
        given = blueprint.cables.link(links.lower, links.upper, number + 1)
        lower_at, upper_at = ups[(links.slot - 1) * count + number], downs[links.place * count + number]
        lower_at = blueprint.port_at(links.lower_role, links.lower, "up", lower_at, given.port)
        upper_at = blueprint.port_at(links.upper_role, links.upper, "down", upper_at, given.peer_port)
        own, other = given.address, given.peer_address
        if blueprint.intent.pools.links and not own:
            ends = blueprint.numbering.link_addresses(links.lower_role, links.number, links.slot, number)
            own, other = (f"{dotted_quad(end)}/31" for end in ends)
        if side == "up":
            at, peer, peer_at = lower_at, links.upper, upper_at
            profile = blueprint.profile(links.lower_role, links.lower, side, length_m, given)
        else:
            at, peer, peer_at = upper_at, links.lower, lower_at
            own, other = other, own
            profile = blueprint.profile(links.upper_role, links.upper, side, length_m, given)
        name, label, peer_address = at.name, given.label, other.partition("/")[0]
        yield Port(name, at.cage, at.port, peer, peer_at.name, peer_asn, own, profile, label, peer_address=peer_address)


def _switch(
    blueprint: Blueprint,
    role: Role,
    name: str,
    number: int,
    numbers: tuple[int, int, int, int, int],
    ports: Iterable[Port],
    leaf_prefix: str,
    vlan: Vlan | None,
) -> Switch:
    intent, hardware = blueprint.intent, blueprint.hardware_of(role, name)
    tier, override, entry = hardware.tier(role), blueprint.override(name), blueprint.entry(name)
    pod, unit, rail, slot, plane = numbers
    ordered = tuple(sorted(ports, key=lambda port: (port.cage, port.lane_port)))
    panel = edge_panel(blueprint, role, name, ordered)
    names = [port.name for port in ordered]
    external = tuple(external_ports(intent, panel, names)) if role != "leaf" else ()
    splits = {port.cage: port.split for port in external} | {port.cage: port.profile.split for port in ordered}
    adaptive = override.adaptive_routing
    return Switch(
        name=name,
        role=role,
        number=number,
        pod=pod,
        unit=unit,
        rail=rail,
        slot=slot,
        plane=plane,
        model=hardware.models[role],
        platform=tier.platform,
        version=override.version or tier.version,
        routing_mode=tier.routing_mode,
        object_names=tier.object_names,
        asn=blueprint.asn(role, name, pod, number),
        loopback=str(override.loopback or blueprint.numbering.loopback(role, number)),
        management=_management(blueprint, role, name, number),
        serial=(entry and entry.serial) or "",
        rack=override.rack or "",
        rack_unit=entry.rack_unit if entry else None,
        system_mac=override.system_mac or "",
        mtu_bytes=hardware.mtu_bytes,
        leaf_prefix=leaf_prefix,
        link_length=blueprint.numbering.link_length,
        vlan=vlan,
        adaptive_routing=intent.adaptive_routing if adaptive is None else adaptive,
        drain=override.drain,
        drain_neighbors=override.drain_neighbors,
        ports=ordered,
        cages=tuple(blueprint.cage(role, name, number, split) for number, split in sorted(splits.items())),
        external=external,
        loopback_v6=str((entry and entry.loopback_v6) or blueprint.numbering.loopback_v6(role, number)),
    )


def edge_panel(blueprint: Blueprint, role: str, name: str, ports: Iterable[Port]) -> EdgePanel:
    """The ports of a switch that a peer outside may use: none that the fabric needs up to the ceilings."""
    hardware, layout = blueprint.hardware_of(role, name), blueprint.layout(role, name)
    kept = {at.cage for at in (*layout.down, *layout.up)} | {port.cage for port in ports}
    platform = hardware.tier(role).platform
    return EdgePanel(name, hardware.models[role], platform, hardware.down_split(role), frozenset(kept))


def _management(blueprint: Blueprint, role: str, name: str, number: int) -> ManagementAddress | None:
    own, entry, pool = blueprint.override(name).management, blueprint.entry(name), blueprint.intent.management
    gateway = str((entry and entry.management_gateway) or (pool.gateway if pool else ""))
    address, length = blueprint.numbering.management(role, number), pool.pool.prefixlen if pool else 0
    if own is not None:
        kept = pool is not None and own.network.prefixlen == HOST_LENGTH
        address, length = str(own.ip), length if kept else own.network.prefixlen
    elif pool is None:
        return None
    return ManagementAddress(
        address,
        length,
        gateway,
        allowed=tuple(map(str, pool.allow)) if pool else (),
        address_v6=str((entry and entry.management_v6) or blueprint.numbering.management_v6(role, number)),
        prefix_length_v6=pool.pool_v6.prefixlen if pool and pool.pool_v6 else 0,
        gateway_v6=str(pool.gateway_v6) if pool and pool.gateway_v6 else "",
    )
