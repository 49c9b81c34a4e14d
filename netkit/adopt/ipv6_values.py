"""IPv6 beside IPv4: the pools, and the prefixes of rails and leaves, from the addresses that interfaces have."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Interface, IPv6Network

from netkit.adopt.fabric_values import Addressing, Assumptions, free_prefixes, rails_to_come, smallest
from netkit.adopt.names import some
from netkit.adopt.placement import Placement
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design.numbering import LEAF_LENGTH_V6
from netkit.platforms.existing import most


@dataclass(frozen=True)
class AddressingV6:
    """What most devices have, and an intent can express; None: they do not have it."""

    loopbacks: IPv6Network | None = None
    hosts: IPv6Network | None = None
    management: IPv6Network | None = None
    management_gateway: str = ""
    leaf_prefixes: Mapping[str, IPv6Network] = field(default_factory=dict)
    rail_prefixes: Mapping[int, IPv6Network] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.loopbacks or self.management)


def addressing_v6(survey: Survey, placement: Placement, addresses: Addressing, guesses: Assumptions) -> AddressingV6:
    """Find what most devices have; what an intent cannot have is named, and left as it runs."""
    placed = [switch for switch in survey.switches.values() if switch.name in placement.places]
    managed = [one.network for switch in placed if (one := switch.management_v6)]
    management = most(managed) if len(managed) * 2 > len(placed) else None
    gateway = most(
        via for switch in placed for via in switch.existing.gateways_v6 if management and IPv6Address(via) in management
    )
    if not gateway:
        management = None
    loopbacks = [IPv6Network(one.ip) for switch in placed if (one := switch.loopback_v6)]
    if addresses.links or len(loopbacks) * 2 <= len(placed):
        if holders := [switch.name for switch in placed if switch.loopback_v6]:
            why = "sessions by address have no next hop for it" if addresses.links else "most switches have none"
            guesses.add("pools", f"IPv6 of {some(holders)} is left as it runs: {why}")
        return AddressingV6(management=management, management_gateway=gateway or "")
    leaves = {
        name: prefix
        for name in placement.of_role("leaf")
        if (leaf := survey.switches.get(name)) and (prefix := _leaf_prefix(leaf, addresses))
    }
    read = [name for name in placement.of_role("leaf") if name in survey.switches]
    odd = [name for name in read if name not in leaves and any(_host_addresses(survey.switches[name]))]
    if odd:
        length = _host_length(addresses)
        guesses.add("pools", f"IPv6 of hosts at {some(odd)} is left as it runs: its prefixes are not of /{length}")
    leaves |= {
        unread: address.network.supernet(new_prefix=LEAF_LENGTH_V6)
        for host in survey.hosts.values()
        for nic in host.existing.nics
        if (unread := placement.leaf_of.get((host.name, nic.interface), "")) and unread not in survey.switches
        if (address := nic.address_v6) and address.network.prefixlen >= LEAF_LENGTH_V6
    }
    texts = (*(switch.networks_v6 for switch in placed), *(host.networks_v6 for host in survey.hosts.values()))
    networks = frozenset[IPv6Network]().union(*texts)
    # Filters and routes of hosts name the pools: that of loopbacks most narrowly, that of hosts most widely.
    named = _around(loopbacks, networks, leaves.values())
    pool = named[0] if named else smallest(loopbacks)
    if len(leaves.keys() & set(read)) * 2 <= len(read):
        return AddressingV6(pool, management=management, management_gateway=gateway or "")
    named = _around(leaves.values(), networks, [one for one in (pool, management) if one])
    hosts = named[-1] if named else smallest(leaves.values())
    rails = _rail_prefixes(survey, placement, leaves, hosts) if addresses.rail_prefixes else {}
    rails |= free_prefixes(rails, hosts, placement.rails)
    return AddressingV6(pool, hosts, management, gateway or "", leaves, rails)


def _host_length(addresses: Addressing) -> int:
    return LEAF_LENGTH_V6 if addresses.attachment == "vlan" else 96 + addresses.link_length


def _host_addresses(leaf: SurveyedSwitch) -> Iterator[IPv6Interface]:
    """Yield the address of each port to hosts, or of their VLAN."""
    for port in leaf.host_ports:
        if own := leaf.existing.addresses_v6.get(leaf.members.get(port, port)):
            yield own


def _leaf_prefix(leaf: SurveyedSwitch, addresses: Addressing) -> IPv6Network | None:
    """Return the /64 around most ports to hosts, or of their VLAN, where these are numbered as in a design."""
    return most(
        one.network.supernet(new_prefix=LEAF_LENGTH_V6)
        for one in _host_addresses(leaf)
        if one.network.prefixlen == _host_length(addresses)
    )


def _around(
    prefixes: Iterable[IPv6Network], networks: Iterable[IPv6Network], others: Iterable[IPv6Network]
) -> list[IPv6Network]:
    """Return the networks that contain all prefixes and overlap none of the others, smallest first."""
    inner, outer = list(prefixes), list(others)
    found = [one for one in networks if all(map(one.supernet_of, inner)) and not any(map(one.overlaps, outer))]
    return sorted(found, key=lambda network: -network.prefixlen)


def _rail_prefixes(
    survey: Survey, placement: Placement, leaves: Mapping[str, IPv6Network], pool: IPv6Network
) -> dict[int, IPv6Network]:
    """Return the prefix of each rail that hosts have a route to: around all its leaves, and none of another rail."""
    known = {one for host in survey.hosts.values() for one in host.routed_v6 if one.subnet_of(pool)}
    by_rail: dict[int, list[IPv6Network]] = {}
    for name, prefix in leaves.items():
        by_rail.setdefault(placement.places[name].rail, []).append(prefix)
    found: dict[int, IPv6Network] = {}
    for rail, own in by_rail.items():
        others = [one for other, prefixes in by_rail.items() if other != rail for one in prefixes]
        fitting = [one for one in known if all(map(one.supernet_of, own)) and not any(map(one.supernet_of, others))]
        if fitting:
            found[rail] = max(fitting, key=lambda one: one.prefixlen)
    if len(found) != len(by_rail):
        return {}
    to_come = sorted(one for one in known - {pool} if not any(map(one.overlaps, found.values())))
    return found | rails_to_come(found, to_come)
