"""What must hold within the routing of a configuration: every reference leads somewhere."""

import ipaddress
from collections.abc import Iterator

from netkit.lab.personalities.nvue.kinds import PORT, SVI
from netkit.lab.personalities.nvue.schema import Issue
from netkit.lab.personalities.nvue.tree import Path, Tree, child, has, is_on, text

BGP = "vrf.default.router.bgp"


def broken(tree: Tree) -> Iterator[Issue]:
    """Yield every reason the routing cannot be applied."""
    yield from _bgp(tree)
    yield from _sessions(tree)
    yield from _prefix_lists(child(tree, "router", "policy", "prefix-list"))
    yield from _route_maps(tree)
    if has(tree, "vrf", "mgmt", "router", "bgp"):
        yield Issue("vrf.mgmt.router.bgp", "BGP is not supported in the management VRF")


def _bgp(tree: Tree) -> Iterator[Issue]:
    bgp, everywhere = child(tree, *BGP.split(".")), child(tree, "router", "bgp")
    if not is_on(bgp):
        return
    if not is_on(everywhere):
        yield Issue(f"{BGP}.enable", "BGP is not enabled under router")
    if not (text(bgp, "router-id") or text(everywhere, "router-id")):
        yield Issue("router.bgp.enable", "BGP requires router-id to be set globally or in the VRF.")
    if not (text(bgp, "autonomous-system") or text(everywhere, "autonomous-system")):
        yield Issue("router.bgp.enable", "BGP requires autonomous-system to be set globally or in the VRF.")
    families = child(bgp, "address-family", "ipv4-unicast", "redistribute")
    for source in families:
        yield from _map(tree, families, (source,), f"{BGP}.address-family.ipv4-unicast.redistribute")


def _sessions(tree: Tree) -> Iterator[Issue]:
    bgp = child(tree, *BGP.split("."))
    groups = child(bgp, "peer-group")
    for name in groups:
        yield from _session(tree, child(groups, name), f"{BGP}.peer-group.{name}")
    for name in child(bgp, "neighbor"):
        neighbor, here = child(bgp, "neighbor", name), f"{BGP}.neighbor.{name}"
        group = text(neighbor, "peer-group")
        yield from _session(tree, neighbor, here)
        yield from _neighbor_port(tree, name, text(neighbor, "type"), here)
        if group and group not in groups:
            yield Issue(f"{here}.peer-group", f"there is no peer-group {group}")
        if not text(neighbor, "remote-as") and not text(groups, group or "-", "remote-as"):
            yield Issue(here, "neither the neighbor nor its peer-group has a remote-as")


def _neighbor_port(tree: Tree, name: str, kind: str, here: str) -> Iterator[Issue]:
    if PORT.fullmatch(name):
        if name not in child(tree, "interface"):
            yield Issue(here, f"interface {name} is not configured")
        if kind != "unnumbered":
            yield Issue(f"{here}.type", "a neighbor on an interface needs the type unnumbered")
    elif kind == "unnumbered":
        yield Issue(f"{here}.type", "an unnumbered neighbor is named by its interface")


def _session(tree: Tree, session: Tree, here: str) -> Iterator[Issue]:
    for direction in ("inbound", "outbound"):
        yield from _map(tree, session, ("address-family", "ipv4-unicast", "policy", direction), here)
    profile = text(session, "bfd", "profile")
    if profile and profile not in child(tree, "router", "bfd", "profile"):
        yield Issue(f"{here}.bfd.profile", f"there is no BFD profile {profile}")
    if profile and not is_on(tree, "router", "bfd"):
        yield Issue(f"{here}.bfd.profile", "BFD is not enabled under router")


def _map(tree: Tree, owner: Tree, path: Path, here: str) -> Iterator[Issue]:
    name = text(owner, *path, "route-map")
    if name and name not in child(tree, "router", "policy", "route-map"):
        yield Issue(".".join((here, *path, "route-map")), f"there is no route-map {name}")


def _prefix_lists(lists: Tree) -> Iterator[Issue]:
    for name in lists:
        for number in child(lists, name, "rule"):
            here = f"router.policy.prefix-list.{name}.rule.{number}"
            rule = child(lists, name, "rule", number)
            if not text(rule, "action") or not child(rule, "match"):
                yield Issue(here, "a rule needs an action and a match")
            for prefix in child(rule, "match"):
                yield from _lengths(child(rule, "match", prefix), prefix, here)


def _lengths(match: Tree, prefix: str, here: str) -> Iterator[Issue]:
    network = ipaddress.IPv4Interface(prefix).network
    low = int(text(match, "min-prefix-len") or network.prefixlen)
    high = int(text(match, "max-prefix-len") or max(low, network.prefixlen))
    if not network.prefixlen <= low <= high:
        yield Issue(f"{here}.match.{prefix}", f"lengths {low} to {high} do not follow from {prefix}")


def _route_maps(tree: Tree) -> Iterator[Issue]:
    maps = child(tree, "router", "policy", "route-map")
    for name in maps:
        for number in child(maps, name, "rule"):
            rule = child(maps, name, "rule", number)
            here = f"router.policy.route-map.{name}.rule.{number}"
            if not child(rule, "action"):
                yield Issue(here, "a rule needs an action")
            wanted, interface = text(rule, "match", "ip-prefix-list"), text(rule, "match", "interface")
            if wanted and wanted not in child(tree, "router", "policy", "prefix-list"):
                yield Issue(f"{here}.match.ip-prefix-list", f"there is no prefix-list {wanted}")
            if wanted and text(rule, "match", "type") != "ipv4":
                yield Issue(f"{here}.match.type", "a match on a prefix-list needs a type")
            is_port = PORT.fullmatch(interface) or SVI.fullmatch(interface)
            if is_port and interface not in child(tree, "interface"):
                yield Issue(f"{here}.match.interface", f"interface {interface} is not configured")
