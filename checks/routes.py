"""Routes: every leaf over every path on switches, and out of the right NIC on hosts."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from operator import attrgetter

from netkit.design import Host, Switch
from netkit.design.fabric import CableEnd
from netkit.facts import Absent
from netkit.facts.host import DefaultRoute, HostFacts
from netkit.judge import (
    CABLE_FAULTS,
    PASSED,
    CheckContext,
    DeviceContext,
    Finding,
    device_check,
    fabric_check,
    fail,
    skip,
    warn,
)
from netkit.judge.lookup import astray, wrong

MISSING_REMEDY = "see netkit check bgp links for the ports that are missing"
LOOKUP_REMEDY = "see the host's routes and rules: netkit plan --limit HOST, then netkit deploy"
DEFAULT_REMEDY = "see what set it on the NIC: a gateway, DHCP or router advertisements"
TWICE_REMEDY = "see ip address on both; remove it where it does not belong"
Owners = Mapping[str, tuple[str, str]]
"""Address → device and interface that are to have it."""


@device_check(
    layer="routing",
    needs=["routes"],
    on="switch",
    follows=["bgp.sessions", "bgp.prefixes", "bgp.drained", *CABLE_FAULTS],
)
def paths(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every switch reaches every leaf over as many ports as the design has.

    The other paths carry the traffic of a missing one: collectives slow down though everything is reachable. See
    `netkit check links.up bgp` for the switches in between. Paths that the intent drains do not count.
    """
    found, widths = device.facts.routes, context.expected[device.name].widths
    if isinstance(found, Absent):
        return
    if not widths:
        yield skip("", "by design it reaches no other leaf over what is not drained")
    designed: dict[tuple[str, ...], list[str]] = {}
    """Next hops, which most routes share → those that are ports of the design."""
    for prefix, width in widths.items():
        hops = found.get(prefix, ())
        ways = designed.get(hops) or designed.setdefault(hops, [one for one in hops if one in device.ports])
        if len(ways) >= width:
            yield PASSED
        elif not ways:
            text = f"no route to {prefix}, which {_owner(context, prefix)} announces"
            yield fail(
                "",
                text,
                MISSING_REMEDY,
                cause=_way(context, device, prefix),
                touches=_missing(context, device, prefix, ()),
            )
        else:
            text = f"{prefix} of {_owner(context, prefix)} is reached over {len(ways)} ports, not over {width}"
            touched, cause = _missing(context, device, prefix, ways), _way(context, device, prefix)
            yield fail("", text, MISSING_REMEDY, cause=cause, touches=touched, over=", ".join(ways))


def _owner(context: CheckContext, prefix: str) -> str:
    return next((leaf.name for leaf in context.fabric.tier("leaf") if leaf.leaf_prefix == prefix), "a leaf")


def _way(context: CheckContext, device: DeviceContext, prefix: str) -> str:
    return f"paths from {device.name} to {_owner(context, prefix)}"


def _missing(context: CheckContext, device: DeviceContext, prefix: str, ways: Sequence[str]) -> Iterator[str]:
    """Yield what may be missing on narrow paths: own cables that are not used, then those of the switches behind them.

    What one switch lacks its neighbour may lack because of a cable further on: of those, the owner's come first.
    """
    roles = {device.ports[way].role for way in ways} or {"up", "down"}
    unused = [port for port in device.ports.values() if port.role in roles and port.name not in ways]
    yield from (context.cable(device.name, port.name) for port in unused)
    behind = {port.peer for port in unused}
    owner = context.fabric.device(_owner(context, prefix))
    for one in owner.ports if isinstance(owner, Switch) else ():
        if one.peer in behind or (owner is not None and owner.name in behind):
            yield context.cable(owner.name if owner else "", one.name)
    yield _owner(context, prefix)
    yield from (name for name in behind if isinstance(context.fabric.device(name), Switch))


@device_check(layer="routing", needs=["routes"], on="switch", follows=["links.up", "external.sessions"])
def static(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every static route with a next hop is in the forwarding table of its switch.

    A switch drops the route while the port towards the next hop is down, or if the next hop is in none of its networks.
    Routes that discard packets have no port that could be read, and those of the management VRF are not read.
    """
    del context
    found = device.facts.routes
    if isinstance(found, Absent) or not isinstance(device.device, Switch):
        return
    for route in device.device.static:
        if route.vias and not found.get(route.prefix):
            text = f"no route to {route.prefix} by {' and '.join(route.vias)}"
            yield fail("", text, "see whether the port towards the next hop is up", cause=f"route to {route.prefix}")
        elif route.vias:
            yield PASSED


@device_check(
    layer="host",
    needs=["lookups"],
    on="host",
    follows=["links.up", "links.flaps", "routes.addresses"],
)
def lookups(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Traffic from a NIC's address leaves by that NIC, through its own leaf.

    The kernel is asked, from each NIC's address, for the route to another host of its leaf, of its rail, and of every
    other rail. A packet that leaves by another NIC has a source address of the wrong rail: it is lost, or loads that
    rail. Asked without the address, the kernel skips the rule for it; this distinguishes a rule that leads to the table
    of another NIC from a missing route. `netkit deploy` sets routes and rules again.
    """
    found, ends = device.facts.lookups, context.nics_by_address
    if isinstance(found, Absent):
        return
    by_nic = {(one.interface, one.destination): one for one in found if not one.source}
    for one in filter(attrgetter("source"), found):
        nic, far = device.nics.get(one.interface), ends.get(one.destination)
        if nic is None or far is None:
            yield skip(one.interface, f"{one.destination} is not of this fabric")
            continue
        text, end = wrong(context, one, nic, far), CableEnd(device.name, nic.interface)
        if not text:
            yield PASSED
            continue
        unsourced = by_nic.get((one.interface, one.destination))
        is_rule = unsourced is not None and not wrong(context, unsourced, nic, far)
        what = f"the rule for {one.source}" if is_rule else f"a route of {end}"
        cause = f"{what} {'is missing' if one.failure else 'leads elsewhere'}"
        where = f"to {one.destination} of rail {far.rail}{f' from {one.source}' if is_rule else ''}: {text}"
        yield fail(nic.interface, where, LOOKUP_REMEDY, cause=cause, explains=[astray(end)])


@device_check(layer="host", needs=["host"], on="host", follows=["links.up"])
def addresses(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every NIC has the address it is designed to have, and no other of the fabric's.

    A second address of another rail makes the kernel answer on the wrong NIC. Remove what netkit did not put there,
    then `netkit deploy`.
    """
    found = device.facts.host
    if isinstance(found, Absent) or not isinstance(device.device, Host):
        return
    pools = [ip_network(pool) for pool in (context.fabric.host_pool, context.fabric.host_pool_v6) if pool]
    for name, nic in device.nics.items():
        present = found.addresses.get(name)
        if present is None:
            yield skip(name, "its addresses were not read")
            continue
        for pool in pools:
            own = [one for one in present if _is_in(one, pool)]
            is_ipv6 = isinstance(pool, IPv6Network)
            wanted = f"{nic.address_v6}/{nic.prefix_length_v6}" if is_ipv6 else f"{nic.address}/{nic.prefix_length}"
            if own == [wanted]:
                yield PASSED
            else:
                yield fail(name, f"has {', '.join(own) or 'no address'}, not {wanted}", LOOKUP_REMEDY)


def _is_in(address: str, pool: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(_bare(address)) in pool
    except ValueError:
        return False


@device_check(layer="host", needs=["host"], on="host", follows=[])
def default(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The default route of a host leaves by management, never by a NIC of a rail.

    Otherwise DNS, storage, logs and SSH go into the fabric and are lost, or load a rail. A gateway on the NIC, DHCP, or
    router advertisements of the leaf can set it. One with a worse metric than another default route is a warning: it
    takes effect as soon as management is down. The routing tables of the NICs themselves are not judged.
    """
    del context
    found = device.facts.host
    if isinstance(found, Absent):
        return
    if found.default_routes is None:
        yield skip("", "its default routes were not read")
        return
    for name in device.nics:
        ways = [way for way in found.default_routes if way.interface == name]
        yield from (_through(way, found.default_routes) for way in ways)
        if not ways:
            yield PASSED


def _through(way: DefaultRoute, ways: tuple[DefaultRoute, ...]) -> Finding:
    """What a default route through a rail means: whether it is the one that holds."""
    to = f"IPv{way.family} default route" + (f" to {way.gateway}" if way.gateway else "")
    if way.metric > min(one.metric for one in ways if one.family == way.family):
        return warn(way.interface, f"has an {to}, which waits behind another", DEFAULT_REMEDY)
    return fail(way.interface, f"has the {to}", DEFAULT_REMEDY)


@fabric_check(layer="host", needs=["host"], follows=["routes.addresses"], reads=[])
def duplicates(context: CheckContext) -> Iterator[Finding]:
    """No address of a NIC or a switch is also on another interface of any host.

    Two owners of one address take each other's packets in turn: queue pairs time out, and neither looks wrong by
    itself. All interfaces of all hosts are compared, except those inside containers. Remove the address where it does
    not belong.
    """
    owners = dict(_owners(context))
    for device in context.hosts:
        found = device.facts.host
        if isinstance(found, Absent):
            continue
        if not found.addresses:
            yield skip("", "its addresses were not read", device=device.name)
        for name, present in found.addresses.items():
            taken = [one for one in present if _is_twice(owners, device, found, name, one)]
            yield from (_twice(owners, device, name, one) for one in taken)
            if not taken:
                yield PASSED


def _owners(context: CheckContext) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield every address of the design with the device and the interface that are to have it."""
    for switch in context.fabric.switches:
        yield from ((one, (switch.name, "its loopback")) for one in (switch.loopback, switch.loopback_v6) if one)
    for host in context.fabric.hosts:
        for nic in host.nics:
            gateways = (nic.gateway, nic.gateway_v6) if nic.gateway_v6 else (nic.gateway,)
            yield from ((one, (nic.leaf, nic.leaf_port)) for one in gateways)
            yield from ((one, (host.name, nic.interface)) for one in nic.addresses)


def _is_twice(owners: Owners, seen: DeviceContext, found: HostFacts, name: str, address: str) -> bool:
    """Whether an address is another's; one that only moved to an interface of the same host is there once."""
    device, interface = owners.get(_bare(address), (seen.name, name))
    if device != seen.name:
        return True
    return interface != name and _bare(address) in map(_bare, found.addresses.get(interface, ()))


def _twice(owners: Owners, seen: DeviceContext, name: str, address: str) -> Finding:
    device, interface = owners[_bare(address)]
    text = f"has {_bare(address)}, the address of {device}, {interface}"
    return fail(name, text, TWICE_REMEDY, device=seen.name)


def _bare(address: str) -> str:
    return address.partition("/")[0]
