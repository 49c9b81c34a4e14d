"""Configuration → FRR's own language, in the order and form FRR shows it, so that a reload finds no difference."""

from collections.abc import Iterator

from netkit.lab.personalities.nvue.frr_policy import drained_maps, prefix_lists, route_maps
from netkit.lab.personalities.nvue.frr_session import address_family, group_lines, group_profiles, neighbor_lines
from netkit.lab.personalities.nvue.tree import Path, Tree, child, is_on, is_set, number, text

BGP: Path = ("vrf", "default", "router", "bgp")
# After a link flap FRR 8.4 takes a group of next hops for installed that the kernel has dropped, and ECMP is lost.
HEAD = ("log syslog informational", "no zebra nexthop kernel enable")
DEFAULT_MULTIPLIER = 3  # FRR does not show it, so that saying it would be a difference at every reload


def frr_text(tree: Tree) -> str:
    """Return the routing configuration of a switch."""
    lines = ["frr defaults datacenter", f"hostname {text(tree, 'system', 'hostname') or 'cumulus'}", *HEAD, "!"]
    lines += _static(tree)
    if is_on(tree, *BGP):
        lines += _bgp(tree)
    lines += prefix_lists(tree)
    lines += route_maps(tree)
    lines += drained_maps(tree)
    lines += _bfd(tree)
    return "\n".join(lines) + "\n"


def _static(tree: Tree) -> Iterator[str]:
    routes = child(tree, "vrf", "default", "router", "static")
    for prefix in routes:
        yield from (f"ip route {prefix} {via}" for via in child(routes, prefix, "via"))
    if routes:
        yield "!"


def _bgp(tree: Tree) -> Iterator[str]:
    bgp, everywhere = child(tree, *BGP), child(tree, "router", "bgp")
    yield f"router bgp {text(bgp, 'autonomous-system') or text(everywhere, 'autonomous-system')}"
    yield f" bgp router-id {text(bgp, 'router-id') or text(everywhere, 'router-id')}"
    if is_draining(tree):
        yield " bgp graceful-shutdown"
    yield " no bgp default ipv4-unicast"
    if text(everywhere, "graceful-restart", "mode") == "full":
        yield " bgp graceful-restart"
    if is_set(bgp, "path-selection", "multipath", "aspath-ignore"):
        yield " bgp bestpath as-path multipath-relax"
    yield from group_lines(bgp)
    yield from neighbor_lines(bgp)
    if is_on(bgp, "address-family", "ipv4-unicast"):
        yield from address_family(bgp)
    yield from ("exit", "!")


def is_draining(tree: Tree) -> bool:
    """Whether the whole switch asks its neighbours to leave."""
    in_maintenance = text(tree, "maintenance", "unit", "all-protocols", "mode") == "enabled"
    return is_set(tree, "router", "bgp", "graceful-shutdown") or in_maintenance


def _bfd(tree: Tree) -> Iterator[str]:
    profiles = dict(child(tree, "router", "bfd", "profile")) if is_on(tree, "router", "bfd") else {}
    profiles |= group_profiles(child(tree, *BGP))
    if not profiles:
        return
    yield "bfd"
    for name in profiles:
        yield from _bfd_profile(name, child(profiles, name))
    yield from ("exit", "!")


def _bfd_profile(name: str, profile: Tree) -> Iterator[str]:
    yield f" profile {name}"
    multiplier = number(profile, "detect-multiplier", default=DEFAULT_MULTIPLIER)
    if multiplier != DEFAULT_MULTIPLIER:
        yield f"  detect-multiplier {multiplier}"
    yield f"  transmit-interval {number(profile, 'min-tx-interval', default=300)}"
    yield f"  receive-interval {number(profile, 'min-rx-interval', default=300)}"
    if is_set(profile, "shutdown"):
        yield "  shutdown"
    if is_set(profile, "passive-mode"):
        yield "  passive-mode"
    if text(profile, "minimum-ttl"):
        yield f"  minimum-ttl {number(profile, 'minimum-ttl')}"
    yield from (" exit", " !")
