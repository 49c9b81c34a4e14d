"""Routes: every leaf over every path on switches, and out of the right NIC on hosts."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from netkit.design import Host, Nic
from netkit.facts import Absent
from netkit.facts.routing import Lookup
from netkit.judge import PASSED, Finding, Scene, Seen, device_check, fail, skip

MISSING_REMEDY = "see netkit check bgp links for the ports that are missing"
LOOKUP_REMEDY = "see the host's routes and rules: netkit plan --limit HOST, then netkit deploy"


@device_check(layer="routing", needs=["routes"], on="switch")
def paths(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every switch reaches every leaf over as many ports as the design has.

    A path that is missing makes the others carry its traffic: collectives slow down though everything is reachable.
    See `netkit check links.up bgp` for the switches in between. Paths that the intent drains are not asked for.
    """
    found, widths = seen.facts.routes, scene.expected[seen.name].widths
    if isinstance(found, Absent):
        return
    if not widths:
        yield skip("", "by design it reaches no other leaf over what is not drained")
    for prefix, width in widths.items():
        ways = [one for one in found.get(prefix, ()) if one in seen.ports]
        if len(ways) >= width:
            yield PASSED
        elif not ways:
            yield fail("", f"no route to {prefix}, which {_owner(scene, prefix)} announces", MISSING_REMEDY)
        else:
            text = f"{prefix} of {_owner(scene, prefix)} is reached over {len(ways)} ports, not over {width}"
            cause = _missing_cable(scene, seen, ways)
            yield fail("", text, MISSING_REMEDY, cause=cause, over=", ".join(ways))


def _owner(scene: Scene, prefix: str) -> str:
    return next((leaf.name for leaf in scene.fabric.tier("leaf") if leaf.leaf_prefix == prefix), "a leaf")


def _missing_cable(scene: Scene, seen: Seen, ways: list[str]) -> str:
    """Return the cable whose loss explains a narrow path: the one port alike those in use that is not."""
    roles = {seen.ports[way].role for way in ways}
    unused = [port.name for port in seen.ports.values() if port.role in roles and port.name not in ways]
    return scene.cable(seen.name, unused[0]) if len(unused) == 1 else ""


@device_check(layer="host", needs=["lookups"], on="host")
def lookups(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """What a NIC sends leaves by that NIC, through its own leaf.

    The kernel is asked, from each NIC's address, for the way to another host of its leaf, of its rail, and of every
    other rail. A packet that leaves by another NIC has a source address of the wrong rail: it is lost, or loads that
    rail. `netkit deploy` sets routes and rules again.
    """
    found = seen.facts.lookups
    if isinstance(found, Absent):
        return
    ends = {nic.address: nic for host in scene.fabric.hosts for nic in host.nics}
    for lookup in found:
        nic, far = seen.nics.get(lookup.interface), ends.get(lookup.destination)
        if nic is None or far is None:
            yield skip(lookup.interface, f"{lookup.destination} is not of this fabric")
        else:
            yield _judged(scene, lookup, nic, far)


def _judged(scene: Scene, lookup: Lookup, nic: Nic, far: Nic) -> Finding:
    where = f"to {lookup.destination} of rail {far.rail}"
    if scene.fabric.cross_rail == "blocked" and far.rail != nic.rail:
        # A kernel may call a blocked destination on-link when asked with an interface: no gateway is what counts.
        if lookup.failure or not lookup.gateway:
            return PASSED
        return fail(nic.interface, f"{where}: goes to {lookup.gateway}, though rails are kept apart", LOOKUP_REMEDY)
    if lookup.failure:
        return fail(nic.interface, f"{where}: {lookup.failure}", LOOKUP_REMEDY)
    if lookup.out_interface != nic.interface:
        return fail(nic.interface, f"{where}: leaves by {lookup.out_interface}", LOOKUP_REMEDY)
    wanted = "" if _is_on_link(nic, far) else nic.gateway
    if lookup.gateway != wanted:
        shown = lookup.gateway or "nobody, as if it were on the same link"
        return fail(nic.interface, f"{where}: goes to {shown}, not to {wanted or 'the link itself'}", LOOKUP_REMEDY)
    return PASSED


def _is_on_link(nic: Nic, far: Nic) -> bool:
    return ip_address(far.address) in ip_network(f"{nic.address}/{nic.prefix_length}", strict=False)


@device_check(layer="host", needs=["host"], on="host")
def addresses(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every NIC has the address it is designed to have, and no other of the fabric's.

    A second address of another rail makes the kernel answer on the wrong NIC. Remove what netkit did not put there,
    then `netkit deploy`.
    """
    found = seen.facts.host
    if isinstance(found, Absent) or not isinstance(seen.device, Host):
        return
    pool = ip_network(scene.fabric.host_pool)
    for name, nic in seen.nics.items():
        told = found.addresses.get(name)
        mine = [one for one in told or () if _is_in(one, pool)]
        wanted = f"{nic.address}/{nic.prefix_length}"
        if told is None:
            yield skip(name, "its addresses were not read")
        elif mine != [wanted]:
            yield fail(name, f"has {', '.join(mine) or 'no address'}, not {wanted}", LOOKUP_REMEDY)
        else:
            yield PASSED


def _is_in(address: str, pool: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address.partition("/")[0]) in pool
    except ValueError:
        return False
