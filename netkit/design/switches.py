"""The switches of a fabric, with all their ports."""

from collections.abc import Iterable, Iterator

from netkit.design.blueprint import Blueprint, InstalledUnit
from netkit.design.fabric import ManagementAddress, Port, PortProfile, Role, Switch, Vlan
from netkit.design.layout import Position, core_plane, leaf_place, plane_of_rail, spine_place
from netkit.design.numbering import dotted_quad


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
    base = numbering.leaf_base(place.pod, place.unit, rail)
    prefix = f"{dotted_quad(base)}/{numbering.leaf_length}"
    vlan = None
    if intent.attachment == "vlan":
        vlan = Vlan(
            intent.pools.first_vlan + rail, f"rail{rail}", prefix, f"{dotted_quad(base + 1)}/{numbering.leaf_length}"
        )
    ports = (*_host_ports(blueprint, place, rail, base), *_leaf_uplinks(blueprint, place, rail))
    number = numbering.leaf_number(place.pod, place.unit, rail)
    name = blueprint.leaf_name(place.pod, place.unit, rail)
    numbers = (place.pod, place.unit, rail, 0, plane_of_rail(blueprint.hardware, rail))
    return _switch(blueprint, "leaf", name, number, numbers, ports, prefix, vlan)


def _host_ports(blueprint: Blueprint, place: InstalledUnit, rail: int, base: int) -> Iterator[Port]:
    positions = blueprint.layouts["leaf"].down
    profile = blueprint.profile("leaf", "host", place.entry.host_cable_m)
    is_routed = blueprint.intent.attachment == "p2p"
    for slot in place.entry.hosts:
        at = positions[slot - 1]
        gateway, _ = blueprint.numbering.host_address(base, slot)
        address = f"{dotted_quad(gateway)}/{blueprint.numbering.link_length}" if is_routed else ""
        yield Port(at.name, at.cage, at.port, blueprint.host_name(place, slot), f"rail{rail}", 0, address, profile)


def _leaf_uplinks(blueprint: Blueprint, place: InstalledUnit, rail: int) -> Iterator[Port]:
    spine = blueprint.intent.switches.spine
    if not spine:
        return
    plane, links = plane_of_rail(blueprint.hardware, rail), blueprint.intent.switches.leaf.uplinks_per_spine
    ups, downs = blueprint.layouts["leaf"].up, blueprint.layouts["spine"].down
    profile = blueprint.profile("leaf", "up", place.entry.spine_cable_m)
    below = leaf_place(blueprint.hardware, place.unit, rail) * links
    for slot in spine.slots:
        name = blueprint.spine_name(place.pod, plane, slot)
        asn = blueprint.asn("spine", name, place.pod, blueprint.numbering.spine_number(place.pod, plane, slot))
        for link in range(links):
            yield _port(ups[(slot - 1) * links + link], name, downs[below + link], asn, profile)


def _spine(blueprint: Blueprint, pod: int, plane: int, slot: int) -> Switch:
    number = blueprint.numbering.spine_number(pod, plane, slot)
    name = blueprint.spine_name(pod, plane, slot)
    ports = (*_spine_downlinks(blueprint, pod, plane, slot), *_spine_uplinks(blueprint, pod, slot))
    own_plane = plane if blueprint.intent.topology == "two-tier" else core_plane(blueprint.hardware, slot)
    return _switch(blueprint, "spine", name, number, (pod, 0, -1, slot, own_plane), ports, "", None)


def _spine_downlinks(blueprint: Blueprint, pod: int, plane: int, slot: int) -> Iterator[Port]:
    links = blueprint.intent.switches.leaf.uplinks_per_spine
    ups, downs = blueprint.layouts["leaf"].up, blueprint.layouts["spine"].down
    for place in blueprint.places:
        if place.pod != pod:
            continue
        profile = blueprint.profile("spine", "down", place.entry.spine_cable_m)
        for rail in place.rails:
            if plane_of_rail(blueprint.hardware, rail) != plane:
                continue
            name = blueprint.leaf_name(pod, place.unit, rail)
            asn = blueprint.asn("leaf", name, pod, blueprint.numbering.leaf_number(pod, place.unit, rail))
            below = leaf_place(blueprint.hardware, place.unit, rail) * links
            for link in range(links):
                yield _port(downs[below + link], name, ups[(slot - 1) * links + link], asn, profile)


def _spine_uplinks(blueprint: Blueprint, pod: int, slot: int) -> Iterator[Port]:
    core, spine = blueprint.intent.switches.core, blueprint.intent.switches.spine
    if not core or not spine:
        return
    plane, links = core_plane(blueprint.hardware, slot), spine.uplinks_per_core
    ups, downs = blueprint.layouts["spine"].up, blueprint.layouts["core"].down
    profile = blueprint.profile("spine", "up", None)
    below = spine_place(blueprint.hardware, pod, slot) * links
    for core_slot in core.slots:
        name = blueprint.core_name(plane, core_slot)
        asn = blueprint.asn("core", name, 0, blueprint.numbering.core_number(plane, core_slot))
        for link in range(links):
            yield _port(ups[(core_slot - 1) * links + link], name, downs[below + link], asn, profile)


def _core(blueprint: Blueprint, plane: int, slot: int) -> Switch:
    number = blueprint.numbering.core_number(plane, slot)
    ports = _core_downlinks(blueprint, plane, slot)
    return _switch(
        blueprint, "core", blueprint.core_name(plane, slot), number, (0, 0, -1, slot, plane), ports, "", None
    )


def _core_downlinks(blueprint: Blueprint, plane: int, core_slot: int) -> Iterator[Port]:
    spine = blueprint.intent.switches.spine
    if not spine:
        return
    links = spine.uplinks_per_core
    ups, downs = blueprint.layouts["spine"].up, blueprint.layouts["core"].down
    profile = blueprint.profile("core", "down", None)
    for pod in blueprint.pods:
        for slot in spine.slots:
            if core_plane(blueprint.hardware, slot) != plane:
                continue
            name = blueprint.spine_name(pod, 0, slot)
            asn = blueprint.asn("spine", name, pod, blueprint.numbering.spine_number(pod, 0, slot))
            below = spine_place(blueprint.hardware, pod, slot) * links
            for link in range(links):
                yield _port(downs[below + link], name, ups[(core_slot - 1) * links + link], asn, profile)


def _port(at: Position, peer: str, peer_at: Position, peer_asn: int, profile: PortProfile) -> Port:
    return Port(at.name, at.cage, at.port, peer, peer_at.name, peer_asn, "", profile)


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
    intent, hardware = blueprint.intent, blueprint.hardware
    tier, override = hardware.tier(role), blueprint.override(name)
    pod, unit, rail, slot, plane = numbers
    ordered = tuple(sorted(ports, key=lambda port: (port.cage, port.lane_port)))
    splits = {port.cage: port.profile.split for port in ordered}
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
        asn=blueprint.asn(role, name, pod, number),
        loopback=str(override.loopback or blueprint.numbering.loopback(role, number)),
        management=_management(blueprint, role, name, number),
        system_mac=override.system_mac or "",
        mtu_bytes=hardware.mtu_bytes,
        leaf_prefix=leaf_prefix,
        link_length=blueprint.numbering.link_length,
        vlan=vlan,
        adaptive_routing=intent.adaptive_routing if adaptive is None else adaptive,
        drain=override.drain,
        drain_neighbors=override.drain_neighbors,
        ports=ordered,
        cages=tuple(blueprint.cage(role, number, split) for number, split in splits.items()),
    )


def _management(blueprint: Blueprint, role: str, name: str, number: int) -> ManagementAddress | None:
    intent, own = blueprint.intent, blueprint.override(name).management
    gateway = str(intent.management.gateway) if intent.management else ""
    if own is not None:
        return ManagementAddress(str(own.ip), own.network.prefixlen, gateway)
    if intent.management is None:
        return None
    address = blueprint.numbering.management(role, number)
    return ManagementAddress(address, intent.management.pool.prefixlen, gateway)
