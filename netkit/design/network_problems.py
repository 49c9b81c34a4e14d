"""Reasons to refuse a network beside the rails."""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from netkit.design.fabric import Fabric
from netkit.design.networks import PEER_VLAN, NetworkPlan
from netkit.errors import Path, Problem
from netkit.hardware import Media
from netkit.intent.model import Intent, NetworkHosts, NetworkVlan
from netkit.platforms import PLATFORMS

OVERRIDES = frozenset({"version", "rack", "system_mac", "drain"})
"""Keys that an override of a switch of a network may have."""


def of_plans(intent: Intent, plans: Sequence[NetworkPlan], media: Mapping[str, Media]) -> Iterator[Problem]:
    """Yield what is wrong with networks before they are installed."""
    for plan in plans:
        yield from _of_plan(intent, plan, media)
    yield from _between(intent, plans)


def _of_plan(intent: Intent, plan: NetworkPlan, media: Mapping[str, Media]) -> Iterator[Problem]:
    """Yield what is wrong with one network."""
    entry, given, path = plan.entry, plan.entry.switches, plan.path
    platform = PLATFORMS[given.platform]
    count = 2 if given.pair else 1
    if given.names and len(given.names) != count:
        message = f"{len(given.names)} names for {count} {'switches' if given.pair else 'switch'}"
        yield Problem(message, "name each once", (*path, "switches", "names"))
        return
    for message in filter(None, map(platform.wrong_name, given.names)):
        yield Problem(message, "use hyphens or dots", (*path, "switches", "names"))
    if given.pair and not (given.management and intent.management):
        message = "each switch of a pair needs the management address of the other, should the links between them fail"
        yield Problem(message, "give switches.management, and management with pool and gateway", (*path, "switches"))
    elif given.management and intent.management and given.management not in intent.management.pool:
        remedy = "use one of its addresses that no other switch has"
        message = f"{given.management} is outside management.pool {intent.management.pool}"
        yield Problem(message, remedy, (*path, "switches", "management"))
    if given.loopback in intent.pools.loopbacks:
        message = f"{given.loopback} is within pools.loopbacks, which numbers the fabric"
        yield Problem(message, "use an address beside it", (*path, "switches", "loopback"))
    limit = int(plan.model.platforms.get(given.platform, {}).get("max_mtu_bytes") or platform.max_mtu_bytes)
    if entry.mtu_bytes > limit:
        yield Problem(f"{plan.model.name} takes {limit} bytes", f"use {limit} or less", (*path, "mtu_bytes"))
    yield from _vlans(intent, plan)
    yield from _servers(intent, plan)
    if entry.hosts:
        yield from _host_problems(intent, plan, entry.hosts)
        yield from _ports_of_hosts(plan, entry.hosts)
        yield from _cable(plan, entry.hosts.media, entry.hosts.length_m, media, (*path, "hosts"))
    cable = given.peer_cable
    if cable:
        yield from _cable(plan, cable.media, cable.length_m, media, (*path, "switches", "peer_cable"))
    elif given.pair:
        yield Problem("no cables are given for the links between the pair", "add peer_cable", (*path, "switches"))


def _vlans(intent: Intent, plan: NetworkPlan) -> Iterator[Problem]:
    reserved = PLATFORMS[plan.entry.switches.platform].reserved_vlans
    seen: set[int] = set()
    for index, vlan in enumerate(plan.entry.vlans):
        path = (*plan.path, "vlans", index)
        if vlan.number in seen:
            yield Problem(f"VLAN {vlan.number} is described twice", "describe it once", (*path, "number"))
        seen.add(vlan.number)
        if vlan.number in reserved or vlan.number == PEER_VLAN:
            kept = f"{reserved[0]} to {reserved[-1]}" if vlan.number in reserved else f"{PEER_VLAN} between a pair"
            message = f"VLAN {vlan.number} is one that switches keep for themselves: {kept}"
            yield Problem(message, "choose another", (*path, "number"))
        if vlan.prefix is None:
            if vlan.gateway or vlan.switch_addresses:
                message, key = f"VLAN {vlan.number} has no prefix", "gateway" if vlan.gateway else "switch_addresses"
                yield Problem(message, f"give it one, or remove {key}", (*path, key))
            continue
        if vlan.prefix.num_addresses < 8:
            message = f"{vlan.prefix} has no room for a gateway and two switches"
            yield Problem(message, "use a /29 or larger", (*path, "prefix"))
        else:
            yield from _gateways(intent, plan, vlan, path)
        pools = {"pools.loopbacks": intent.pools.loopbacks, "pools.hosts": intent.pools.hosts}
        if intent.management:
            pools["management.pool"] = intent.management.pool
        for name, pool in pools.items():
            if vlan.prefix.overlaps(pool):
                yield Problem(f"{vlan.prefix} overlaps {name} {pool}", "choose another prefix", (*path, "prefix"))


def _gateways(intent: Intent, plan: NetworkPlan, vlan: NetworkVlan, path: Path) -> Iterator[Problem]:
    """Yield addresses of the gateway and the switches that are not in the prefix, or another's."""
    prefix, is_pair = vlan.prefix, plan.entry.switches.pair
    if prefix is None:
        return
    if vlan.switch_addresses and len(vlan.switch_addresses) != (2 if is_pair else 0):
        message = f"{plan.entry.name} has {'two switches' if is_pair else 'a single switch, which has the gateway'}"
        remedy = "give one address for each" if is_pair else "remove them"
        yield Problem(message, remedy, (*path, "switch_addresses"))
        return
    own = vlan.switch_addresses or ((prefix[2], prefix[3]) if is_pair else ())
    hosts, taken = plan.entry.hosts, dict[IPv4Address, str]()
    first = hosts.first_address if hosts and plan.host_vlan == vlan else prefix.num_addresses
    for key, address in (("gateway", vlan.gateway or prefix[1]), *(("switch_addresses", one) for one in own)):
        if address not in prefix or address in {prefix[0], prefix[-1]}:
            yield Problem(f"{address} is not an address in {prefix}", "use one within", (*path, key))
        elif address in taken:
            yield Problem(f"{address} is the address of {taken[address]} too", "give each its own", (*path, key))
        elif first <= int(address) - int(prefix[0]) < first + plan.most_hosts(intent):
            message = f"{address} is the address of a host up to the ceilings"
            yield Problem(message, "choose another, or change first_address of hosts", (*path, key))
        taken[address] = "the gateway" if key == "gateway" else "a switch"


def _servers(intent: Intent, plan: NetworkPlan) -> Iterator[Problem]:
    known, kept = {vlan.number for vlan in plan.entry.vlans}, set(plan.kept_ports(intent))
    names, taken = set[str](), dict[str, str](dict.fromkeys(plan.peer_ports, "the other switch of the pair"))
    for index, server in enumerate(plan.entry.servers):
        path = (*plan.path, "servers", index)
        if server.name in names:
            yield Problem(f"{server.name} is the name of another server", "give each its own", (*path, "name"))
        names.add(server.name)
        for name in server.ports:
            if name not in plan.panel:
                example = next(iter(plan.panel))
                message = f"{plan.model.name} split as {plan.split.mode} has no port {name}"
                yield Problem(message, f"use one it has, such as {example}", (*path, "ports"))
            elif name in kept:
                free = next((one for one in reversed(plan.free_ports) if one not in kept | taken.keys()), "")
                remedy = f"use a free one, such as {free}" if free else "lower the ceilings"
                yield Problem(f"{name} is for a host, in use or up to the ceilings", remedy, (*path, "ports"))
            elif name in taken:
                yield Problem(f"{name} leads to {taken[name]}", "give each its own port", (*path, "ports"))
            taken.setdefault(name, server.name)
        for number in ((server.vlan,) if server.vlan else ()) + server.tagged:
            if number not in known:
                key = "vlan" if number == server.vlan else "tagged"
                yield Problem(f"the network has no VLAN {number}", "add it to vlans", (*path, key))
        if server.vlan in server.tagged:
            yield Problem(f"VLAN {server.vlan} is untagged and tagged", "keep one", (*path, "tagged"))


def _host_problems(intent: Intent, plan: NetworkPlan, hosts: NetworkHosts) -> Iterator[Problem]:
    path, vlan = (*plan.path, "hosts"), plan.host_vlan
    most, per_switch = plan.most_hosts(intent), plan.nics_per_switch
    if most * per_switch > len(plan.host_ports):
        message = f"{most} hosts at the ceilings take {most * per_switch} ports of each switch, {len(plan.host_ports)}"
        remedy = "attach fewer units, split cages further, or choose a larger model"
        yield Problem(f"{message} are left", remedy, path)
    if hosts.first_port and hosts.first_port not in plan.free_ports:
        message = f"{plan.model.name} split as {plan.split.mode} has no port {hosts.first_port} for hosts"
        yield Problem(message, f"use one it has, such as {plan.free_ports[0]}", (*path, "first_port"))
    if len(hosts.interfaces) % len(plan.names):
        message = f"{len(hosts.interfaces)} NICs cannot be dealt evenly to {len(plan.names)} switches"
        yield Problem(message, "name as many for each, or set pair: false", (*path, "interfaces"))
    names = (*hosts.interfaces, *((hosts.bond,) if len(hosts.interfaces) > 1 else ()))
    if intent.hosts.management_interface in names:
        message = f"{intent.hosts.management_interface} of the hosts is hosts.management_interface"
        yield Problem(message, "name another", (*path, "interfaces"))
    if len(set(names)) < len(names):
        yield Problem("names an interface twice", "name each once", (*path, "interfaces"))
    if vlan is None:
        yield Problem(f"the network has no VLAN {hosts.vlan}", "add it to vlans", (*path, "vlan"))
    elif vlan.prefix is None:
        yield Problem(
            f"VLAN {vlan.number} has no prefix for its hosts", "give it one, or name another", (*path, "vlan")
        )
    elif hosts.first_address + most + 1 >= vlan.prefix.num_addresses:
        message = f"{vlan.prefix} ends before host {most} of the ceilings"
        yield Problem(message, "use a shorter prefix, or lower first_address", (*path, "first_address"))
    for route in hosts.routes:
        if route.overlaps(intent.pools.hosts) and route.prefixlen:
            message = f"{route} overlaps pools.hosts: traffic of the rails would leave by this network"
            yield Problem(message, "name other prefixes", (*path, "routes"))


def _ports_of_hosts(plan: NetworkPlan, hosts: NetworkHosts) -> Iterator[Problem]:
    """Yield ports of single hosts that the model does not have."""
    for host, port in hosts.ports.items():
        if port not in plan.free_ports or len(plan.ports_of(host, 0)) < plan.nics_per_switch:
            wanted = f"{plan.nics_per_switch} ports for hosts from {port} on"
            message = f"{plan.model.name} split as {plan.split.mode} has no {wanted}"
            yield Problem(
                message, f"use one it has, such as {plan.free_ports[0]}", (*plan.path, "hosts", "ports", host)
            )


def _cable(plan: NetworkPlan, name: str, length_m: float, media: Mapping[str, Media], path: Path) -> Iterator[Problem]:
    known = media.get(name)
    if known is None:
        yield Problem(f"no media {name!r}", f"use one of {', '.join(sorted(media))}", (*path, "media"))
    elif known.speed_gbps != plan.split.speed_gbps:
        message = f"{known.name} carries {known.speed_gbps}G a port, {plan.split.mode} makes {plan.split.speed_gbps}G"
        yield Problem(message, "give both one speed", (*path, "media"))
    elif known.reach_m is not None and length_m > known.reach_m:
        message = f"{known.name} reaches {known.reach_m:g} m, the cable is {length_m:g} m"
        yield Problem(message, "shorten it or choose other media", (*path, "length_m"))


def _between(intent: Intent, plans: Iterable[NetworkPlan]) -> Iterator[Problem]:
    """Yield what two networks, or a network and the fabric, have both."""
    names, prefixes = set[str](), list[tuple[IPv4Network, str]]()
    asns: dict[int, NetworkPlan] = {}
    interfaces: list[tuple[NetworkPlan, set[str]]] = []
    for plan in plans:
        entry, path = plan.entry, plan.path
        if entry.name in names:
            yield Problem(f"{entry.name} is the name of another network", "give each its own", (*path, "name"))
        names.add(entry.name)
        if (other := asns.setdefault(entry.switches.asn, plan)) is not plan:
            message = f"{entry.switches.asn} is the AS number of {other.entry.name} too"
            yield Problem(message, "give each network its own", (*path, "switches", "asn"))
        for index, vlan in enumerate(entry.vlans):
            for prefix, owner in prefixes:
                if vlan.prefix and vlan.prefix.overlaps(prefix):
                    message = f"{vlan.prefix} overlaps {prefix} of {owner}"
                    yield Problem(message, "choose another prefix", (*path, "vlans", index, "prefix"))
            if vlan.prefix:
                prefixes.append((vlan.prefix, entry.name))
        if entry.hosts is None:
            continue
        own = {*entry.hosts.interfaces, *((entry.hosts.bond,) if len(entry.hosts.interfaces) > 1 else ())}
        for other_plan, others in interfaces:
            if (both := sorted(own & others)) and _share_hosts(intent, plan, other_plan):
                message = f"{both[0]} of the same hosts is attached to {other_plan.entry.name} too"
                yield Problem(message, "name other interfaces", (*path, "hosts", "interfaces"))
        interfaces.append((plan, own))


def _share_hosts(intent: Intent, one: NetworkPlan, other: NetworkPlan) -> bool:
    return any(
        one.attaches(pod, unit) and other.attaches(pod, unit)
        for entry in intent.units
        for pod in entry.pod
        for unit in entry.unit
    )


def installed(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield what only shows beside the rest of the fabric: names, addresses and AS numbers that others have."""
    others = [switch for switch in designed.switches if switch.access is None]
    hosts = {host.name for host in designed.hosts}
    owners = {switch.name: switch.asn for switch in others}
    loopbacks = {switch.loopback: switch.name for switch in others}
    managed = {switch.management.address: switch.name for switch in others if switch.management}
    managed |= {host.management: host.name for host in designed.hosts if host.management}
    if intent.management:
        managed[str(intent.management.gateway)] = "the gateway"
    yield from _overridden(designed, intent)
    yield from _given_ports(designed, intent)
    for index, entry in enumerate(intent.networks):
        path: Path = ("networks", index, "switches")
        for switch in designed.switches:
            if switch.access is None or switch.access.network != entry.name:
                continue
            key = "names" if entry.switches.names else "pair"
            if switch.name in owners or switch.name in hosts:
                message = f"{switch.name} is the name of another device"
                remedy = "choose another" if entry.switches.names else "give switches.names"
                yield Problem(message, remedy, (*path, key))
            owners[switch.name] = switch.asn
            if other := loopbacks.get(switch.loopback):
                yield Problem(f"{switch.loopback} is the loopback of {other}", "use another", (*path, "loopback"))
            loopbacks[switch.loopback] = switch.name
            address = switch.management.address if switch.management else ""
            if address and (other := managed.get(address)):
                remedy = "use one that no switch has at the ceilings"
                yield Problem(f"{address} is the management address of {other}", remedy, (*path, "management"))
            managed[address] = switch.name
        if owner := next((switch.name for switch in others if switch.asn == entry.switches.asn), ""):
            message = f"{entry.switches.asn} is the AS number of {owner}"
            yield Problem(message, "give the network its own", (*path, "asn"))


def _given_ports(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield hosts with ports of their own that are not there, and ports with two users."""
    hosts = {host.name for host in designed.hosts}
    for index, entry in enumerate(intent.networks):
        path: Path = ("networks", index, "hosts", "ports")
        for host in (host for host in (entry.hosts.ports if entry.hosts else ()) if host not in hosts):
            yield Problem(f"there is no host {host}", "name one by its current name", (*path, host))
        for switch in designed.switches:
            if not entry.hosts or not switch.access or switch.access.network != entry.name:
                continue
            users: dict[str, str] = {}
            for port in switch.access.ports:
                if users.setdefault(port.name, port.peer) != port.peer:
                    message = f"{port.name} of {switch.name} would lead to {users[port.name]} and {port.peer}"
                    yield Problem(message, "give one of them another port", path)


def _overridden(designed: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield keys that an override of a switch of a network must not have, and those that its network sets already."""
    for name, override in intent.overrides.items():
        matched = [switch for switch in designed.switches if fnmatch.fnmatchcase(switch.name, name)]
        if matched and all(switch.access for switch in matched):
            for key in sorted(override.model_fields_set - OVERRIDES):
                message = f"{key} of {matched[0].name} is given by its network"
                yield Problem(message, "change it in networks", ("overrides", name, key))
