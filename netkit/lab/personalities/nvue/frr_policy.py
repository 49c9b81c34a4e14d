"""Prefix lists and route maps in FRR's language.

FRR as Debian has it lacks the graceful shutdown of a single neighbour, which Cumulus Linux has: here it is a copy of
the session's route maps that also lowers the preference inwards and adds the community outwards.
"""

import ipaddress
from collections.abc import Iterator

from netkit.lab.personalities.nvue.frr_session import DIRECTIONS, applied_map, drained_name, is_drained
from netkit.lab.personalities.nvue.tree import Tree, child, text

BANDWIDTH = {"multipaths": "num-multipaths", "cumulative": "cumulative"}
LEAVE = {"in": " set local-preference 0", "out": " set community graceful-shutdown additive"}


def prefix_lists(tree: Tree) -> Iterator[str]:
    """Yield the prefix lists."""
    lists = child(tree, "router", "policy", "prefix-list")
    for name in lists:
        rules = child(lists, name, "rule")
        for number in sorted(rules, key=int):
            action = text(rules, number, "action")
            for prefix in child(rules, number, "match"):
                lengths = _lengths(prefix, child(rules, number, "match", prefix))
                yield f"ip prefix-list {name} seq {number} {action} {prefix}{lengths}"
        yield "!"


def _lengths(prefix: str, match: Tree) -> str:
    own = ipaddress.IPv4Interface(prefix).network.prefixlen
    low, high = text(match, "min-prefix-len"), text(match, "max-prefix-len")
    longer = f" ge {low}" if low and int(low) > own else ""
    shorter = f" le {high}" if high and int(high) > own else ""
    return longer + shorter


def route_maps(tree: Tree) -> Iterator[str]:
    """Yield the route maps."""
    for name in child(tree, "router", "policy", "route-map"):
        yield from _map(tree, name, name, "")


def drained_maps(tree: Tree) -> Iterator[str]:
    """Yield the copies that make traffic leave single sessions."""
    bgp = child(tree, "vrf", "default", "router", "bgp")
    wanted: dict[str, tuple[str, str]] = {}
    for kind in ("peer-group", "neighbor"):
        for name in child(bgp, kind):
            session = child(bgp, kind, name)
            if is_drained(bgp, session):
                for direction, short in DIRECTIONS:
                    chosen = applied_map(bgp, session, direction)
                    wanted[drained_name(chosen, short)] = (chosen, short)
    for name, (chosen, short) in wanted.items():
        if chosen:
            yield from _map(tree, chosen, name, LEAVE[short])
        else:
            yield from (f"route-map {name} permit 10", LEAVE[short], "exit", "!")


def _map(tree: Tree, source: str, name: str, extra: str) -> Iterator[str]:
    rules = child(tree, "router", "policy", "route-map", source, "rule")
    for number in sorted(rules, key=int):
        rule = child(rules, number)
        action = next(iter(child(rule, "action")), "permit")
        yield f"route-map {name} {action} {number}"
        if text(rule, "match", "interface"):
            yield f" match interface {text(rule, 'match', 'interface')}"
        if text(rule, "match", "ip-prefix-list"):
            yield f" match ip address prefix-list {text(rule, 'match', 'ip-prefix-list')}"
        if extra and action == "permit":
            yield extra
        elif text(rule, "set", "local-preference"):
            yield f" set local-preference {text(rule, 'set', 'local-preference')}"
        if text(rule, "set", "ext-community-bw"):
            yield f" set extcommunity bandwidth {BANDWIDTH[text(rule, 'set', 'ext-community-bw')]}"
        yield from ("exit", "!")
