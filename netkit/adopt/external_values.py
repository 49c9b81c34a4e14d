"""What leads outside the fabric: peers of spines and core switches, and static routes.

Sessions at other places, and those without a list of prefixes in both directions, are left as they run.
"""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from netkit.adopt.fabric_values import Values
from netkit.adopt.placement import Placement
from netkit.adopt.remainder import expressions
from netkit.adopt.survey import Survey, SurveyedSwitch
from netkit.design import Fabric
from netkit.platforms.bgp_reader import is_address

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def externals(survey: Survey, placement: Placement) -> list[Values]:
    """The peers of all spines and core switches, each with its port."""
    found: list[Values] = []
    for role in ("spine", "core"):
        for name in placement.of_role(role):
            if switch := survey.switches.get(name):
                found += _of_switch(switch)
    names = [peer["name"] for peer in found]
    return [
        peer | {"name": f"{peer['name']}-{peer['device']}"} if names.count(peer["name"]) > 1 else peer for peer in found
    ]


def static_routes(survey: Survey, fabric: Fabric) -> list[Values]:
    """The static routes of the default VRF, each with the switches that have it."""
    found: dict[tuple[IPv4Network, str], list[str]] = {}
    every = [switch for switch in survey.switches.values() if fabric.device(switch.name)]
    for switch in every:
        for route in dict.fromkeys(switch.router.static):
            if not route.via or is_address(route.via):
                found.setdefault((route.prefix, route.via), []).append(switch.name)
    return [
        {"prefix": str(prefix), **({"via": via} if via else {"discard": True}), **({"devices": one} if one else {})}
        for (prefix, via), names in sorted(found.items())
        for one in ([""] if len(names) == len(fabric.switches) else expressions(fabric, names))
    ]


def _of_switch(switch: SurveyedSwitch) -> Iterator[Values]:
    for neighbor in switch.external:
        peer = IPv4Address(neighbor.interface)
        port = next(
            (port for port, one in switch.addresses.items() if peer in one.network and port in switch.ports), ""
        )
        accept, announce = (_prefixes(switch, one) for one in (neighbor.inbound, neighbor.outbound))
        if not port or not neighbor.remote_asn or not accept or not announce:
            continue
        described = switch.ports[port].description
        values: Values = {
            "name": described if NAME.fullmatch(described) else f"as{neighbor.remote_asn}",
            "device": switch.name,
            "port": port,
            "address": str(switch.addresses[port]),
            "peer": neighbor.interface,
            "asn": neighbor.remote_asn,
            "accept": [str(prefix) for prefix in accept],
            "announce": [str(prefix) for prefix in announce],
        }
        mtu = switch.ports[port].mtu_bytes
        yield values | ({"mtu_bytes": mtu} if mtu else {})


def _prefixes(switch: SurveyedSwitch, route_map: str) -> list[IPv4Network]:
    """The prefixes that a route map lets through; none if it does more than that."""
    clauses = switch.router.route_maps.get(route_map, ())
    lists: Iterable[str] = [name for clause in clauses if clause.is_permit for name in clause.prefix_lists]
    rows = [row for name in lists for row in switch.router.prefix_lists.get(name, ())]
    exact = all(row.is_permit and row.shortest == row.longest == row.prefix.prefixlen for row in rows)
    return [row.prefix for row in rows] if exact and not any(clause.unknown for clause in clauses) else []
