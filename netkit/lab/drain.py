"""Which ports of a switch ask traffic to go elsewhere, from what its FRR runs."""

import re
from collections.abc import Collection, Mapping

from netkit.design.fabric import Switch

WHOLE = "bgp graceful-shutdown"
MAP = re.compile(r"^route-map (\S+) permit \d+\n((?:(?!exit|route-map).*\n)*)", re.MULTILINE)
LEAVES = re.compile(r"^ +set community .*\bgraceful-shutdown\b", re.MULTILINE)
GROUP = re.compile(r"^ *neighbor (\S+)(?: interface)? peer-group (\S+)$", re.MULTILINE)
OUTWARDS = re.compile(r"^ *neighbor (\S+) route-map (\S+) out$", re.MULTILINE)


def ports(config: str, switch: Switch, kernel_names: Mapping[str, str]) -> frozenset[str]:
    """Return the ports whose neighbours are asked to go around. A leaf keeps one way: its hosts have no other."""
    found = _interfaces(config, kernel_names.values())
    drained = frozenset(name for name, interface in kernel_names.items() if interface in found)
    is_cut_off = switch.role == "leaf" and drained >= {port.name for port in switch.fabric_ports}
    return frozenset() if is_cut_off else drained


def _interfaces(config: str, interfaces: Collection[str]) -> frozenset[str]:
    """Return those of a whole switch, or of single sessions whose routes leave with the community that says so."""
    if WHOLE in (line.strip() for line in config.splitlines()):
        return frozenset(interfaces)
    leaving = {name for name, body in MAP.findall(config) if LEAVES.search(body)}
    group_of = dict(GROUP.findall(config))
    maps = dict(OUTWARDS.findall(config))
    return frozenset(name for name in interfaces if maps.get(name, maps.get(group_of.get(name, ""))) in leaving)
