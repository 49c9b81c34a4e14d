"""What leads outside the fabric: peers of spines, core switches and networks beside the rails, and static routes.

Sessions at other places, and those without a list of prefixes in both directions, are left as they run.
"""

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from netkit.adopt.fabric_values import Assumptions, Values
from netkit.adopt.hardware_values import HardwareSearch
from netkit.adopt.network_values import NAME, Hardware
from netkit.adopt.remainder import expressions
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design import Fabric
from netkit.platforms.bgp_reader import is_address
from netkit.platforms.existing import ExistingPort
from netkit.platforms.routing import BgpNeighbor


def externals(
    survey: Survey, hardware: HardwareSearch, beside: Mapping[str, Hardware], guesses: Assumptions
) -> list[Values]:
    """The peers of all spines, core switches and networks beside the rails, each with its port; others are named."""
    panels = {
        name: (hardware.catalog.switch(hardware.own_model(name)), hardware.split(role, "down"))
        for role in ("spine", "core")
        for name in hardware.placement.of_role(role)
        if name in survey.switches and survey.switches[name].external
    }
    found: list[Values] = []
    for name, (model, split) in {**panels, **beside}.items():
        switch = survey.switches.get(name) or survey.beside[name]
        for port, peer in _of_switch(switch, guesses):
            breakout = hardware.breakout(switch.platform, model, split, port)
            found.append(peer | ({"breakout": breakout} if breakout else {}))
    for name in hardware.placement.of_role("leaf"):
        for neighbor in survey.switches[name].external if name in survey.switches else ():
            _leave(guesses, name, neighbor, "an intent has no peers at leaves")
    names = [peer["name"] for peer in found]
    return [
        peer | {"name": f"{peer['name']}-{peer['device']}"} if names.count(peer["name"]) > 1 else peer for peer in found
    ]


def static_routes(survey: Survey, fabric: Fabric) -> list[Values]:
    """The static routes of the default VRF, each with the switches that have it; others stay as they run."""
    found: dict[tuple[IPv4Network, str], list[str]] = {}
    every = [one for one in (*survey.switches.values(), *survey.beside.values()) if fabric.device(one.name)]
    for switch in every:
        for route in dict.fromkeys(one for one in switch.router.static if not one.has_options):
            if isinstance(route.prefix, IPv4Network) and (not route.via or is_address(route.via)):
                found.setdefault((route.prefix, route.via), []).append(switch.name)
    return [
        {"prefix": str(prefix), **({"via": via} if via else {"discard": True}), **({"devices": one} if one else {})}
        for (prefix, via), names in sorted(found.items())
        for one in ([""] if len(names) == len(fabric.switches) else expressions(fabric, names))
    ]


def _leave(guesses: Assumptions, switch: str, neighbor: BgpNeighbor, why: str) -> None:
    guesses.add("external", f"the session of {switch} to {neighbor.interface} is left as it runs: {why}")


def _of_switch(switch: SurveyedSwitch, guesses: Assumptions) -> Iterator[tuple[ExistingPort, Values]]:
    for neighbor in switch.external:
        peer = IPv4Address(neighbor.interface)
        near = [interface for interface, one in switch.addresses.items() if peer in one.network]
        port = next((one for one in near if one in switch.ports), "")
        maps = {"in": neighbor.inbound, "out": neighbor.outbound}
        accept, announce = (_prefixes(switch, one) for one in maps.values())
        odd = [f"{name or 'no route map'} {way}" for way, name in maps.items() if not _prefixes(switch, name)]
        why = f"an intent has lists of exact prefixes in both directions, but it has {' and '.join(odd)}" if odd else ""
        why = why if neighbor.remote_asn else "it has no AS number"
        why = why if port else f"it runs on {near[0]}, which is not a port" if near else "its address is in no network"
        if why:
            _leave(guesses, switch.name, neighbor, why)
            continue
        described = switch.ports[port].description
        limit, mtu = switch.existing.limits.get(neighbor.interface), switch.ports[port].mtu_bytes
        values: Values = {
            "name": described if NAME.fullmatch(described) else f"as{neighbor.remote_asn}",
            "device": switch.name,
            "port": port,
            "address": str(switch.addresses[port]),
            "peer": neighbor.interface,
            "asn": neighbor.remote_asn,
            "accept": [str(prefix) for prefix in accept],
            "announce": [str(prefix) for prefix in announce],
            "bfd": neighbor.interface in switch.existing.with_bfd,
            **({"max_prefixes": limit} if limit else {}),
            **({"mtu_bytes": mtu} if mtu else {}),
            **_filter(switch.ports[port]),
        }
        yield switch.ports[port], values


def _filter(port: ExistingPort) -> Values:
    """The access list of a port, if an intent numbers and orders its rules in the same way."""
    sources = [source for _, source, destination in port.denied if source and not destination]
    destinations = [destination for _, source, destination in port.denied if destination and not source]
    first = port.denied[0][0] if port.denied else 0
    same = [*((source, "") for source in sources), *(("", destination) for destination in destinations)]
    if not port.denied or [(first + 10 * index, *one) for index, one in enumerate(same)] != list(port.denied):
        return {}
    return {"filter": {"deny_from": sources, "deny_to": destinations, "first_number": first}}


def _prefixes(switch: SurveyedSwitch, route_map: str) -> list[IPv4Network]:
    """The prefixes that a route map lets through; none if it does more than that."""
    clauses = switch.router.route_maps.get(route_map, ())
    lists: Iterable[str] = [name for clause in clauses if clause.is_permit for name in clause.prefix_lists]
    rows = [row for name in lists for row in switch.router.prefix_lists.get(name, ())]
    exact = all(row.is_permit and row.shortest == row.longest == row.prefix.prefixlen for row in rows)
    prefixes = [row.prefix for row in rows if isinstance(row.prefix, IPv4Network)]
    return prefixes if exact and not any(clause.unknown or clause.interface for clause in clauses) else []
