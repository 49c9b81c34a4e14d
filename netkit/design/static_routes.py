"""Static routes of switches, and reasons to refuse them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from netkit.design.fabric import Fabric, StaticRoute, Switch
from netkit.design.select import select
from netkit.errors import Path, Problem
from netkit.intent.model import Intent, StaticRouteIntent

DEFAULT_ROUTE = IPv4Network("0.0.0.0/0")


def with_static_routes(fabric: Fabric, entries: Iterable[StaticRouteIntent]) -> Fabric:
    """A fabric whose switches have their static routes."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for entry in entries:
        for device in _selected(fabric, entry):
            vias = found.setdefault((device.name, entry.vrf), {}).setdefault(str(entry.prefix), [])
            vias += [str(entry.via)] if entry.via else []

    def routes(switch: Switch, vrf: str) -> tuple[StaticRoute, ...]:
        prefixes = found.get((switch.name, vrf), {})
        return tuple(
            StaticRoute(prefix, tuple(sorted(prefixes[prefix], key=IPv4Address)))
            for prefix in sorted(prefixes, key=IPv4Network)
        )

    switches = (
        replace(switch, static=routes(switch, "default"), management_static=routes(switch, "management"))
        for switch in fabric.switches
    )
    return replace(fabric, switches=tuple(switches))


def _selected(fabric: Fabric, entry: StaticRouteIntent) -> Iterator[Switch]:
    return (device for device in select(fabric, entry.devices) if isinstance(device, Switch))


def problems(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield what is wrong with static routes."""
    seen: dict[tuple[str, str, IPv4Network], set[IPv4Address | None]] = {}
    for index, entry in enumerate(intent.routing.static or ()):
        path: Path = ("routing", "static", index)
        if (entry.via is None) != entry.discard:
            message = f"{entry.prefix} needs either a next hop or discard"
            yield Problem(message, "give via, or discard: true", path)
            continue
        yield from _prefix(intent, entry, path)
        for switch in _selected(fabric, entry):
            vias = seen.setdefault((switch.name, entry.vrf, entry.prefix), set())
            if entry.via in vias or (vias and None in {*vias, entry.via}):
                message = f"{switch.name} has a route to {entry.prefix} already"
                yield Problem(message, "give each of its next hops once, or discard alone", path)
                break
            vias.add(entry.via)
            if entry.via and not any(entry.via in network for network in _networks(switch, entry.vrf)):
                message = f"{entry.via} is in no network of {switch.name}: the route would not be installed"
                yield Problem(message, "name a neighbour, or limit the route with devices", (*path, "via"))
                break


def _prefix(intent: Intent, entry: StaticRouteIntent, path: Path) -> Iterator[Problem]:
    if entry.vrf == "management":
        if entry.discard or entry.prefix == DEFAULT_ROUTE:
            message = "the management VRF has a default route to management.gateway"
            yield Problem(message, "give a longer prefix and its next hop", path)
        return
    pools = {"pools.loopbacks": intent.pools.loopbacks, "pools.hosts": intent.pools.hosts}
    if intent.management:
        pools["management.pool"] = intent.management.pool
    overlapped = next((name for name, pool in pools.items() if pool.overlaps(entry.prefix)), "")
    if overlapped and entry.prefix != DEFAULT_ROUTE:
        message = f"{entry.prefix} overlaps {overlapped}: packets to it would not take the paths of the fabric"
        yield Problem(message, "route prefixes that are not the fabric's", (*path, "prefix"))


def _networks(switch: Switch, vrf: str) -> Iterator[IPv4Network]:
    """Yield the networks that a switch is attached to."""
    if vrf == "management":
        if switch.management:
            yield IPv4Interface(f"{switch.management.address}/{switch.management.prefix_length}").network
        return
    if switch.access:
        yield from (IPv4Network(vlan.prefix) for vlan in switch.access.vlans if vlan.prefix)
    if switch.vlan:
        yield IPv4Network(switch.vlan.subnet)
    yield from (IPv4Interface(port.address).network for port in switch.ports if port.address)
    yield from (IPv4Interface(port.address).network for port in switch.external)
