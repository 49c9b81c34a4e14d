"""How changes are applied to a switch with EOS, and their risk."""

from collections.abc import Iterator

from netkit.platforms.change import NOTHING, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import Situation

DERIVED = "derived"
BGP = "UM, Border Gateway Protocol"
MAINTENANCE = "UM, Maintenance Mode"
FILTER = "the filter for packets from outside changes"
MANAGEMENT = "netkit's own access changes: the commit timer reverts a mistake"
BUFFERS = "queues or buffers of every port change"
NEIGHBOR = "the session restarts"
PORT = "interface Ethernet*"
LAG = "interface Port-Channel*"

RISKS = RiskTable(
    is_buffer_per_port=True,
    objects=((PORT,), (LAG,), ("router bgp",), ("router bgp", "neighbor interface *"), ("router bfd",)),
    in_use=(
        (PORT, "ip address *"),
        (PORT, "switchport access vlan"),
        (PORT, "switchport trunk allowed vlan"),
        (PORT, "channel-group"),
        (PORT, "ipv6 enable"),
        ("router bgp", "neighbor interface *"),
    ),
    rules=(
        Rule((PORT, "description"), Risk.NONE, source=DERIVED),
        Rule((PORT, "service-profile"), Risk.BUFFER, "the queues of the port are reallocated", DERIVED),
        Rule((PORT, "speed"), Risk.PORT, "the speed also selects the breakout of the cage", "UM, Ethernet Ports"),
        Rule((PORT, "ip address *"), Risk.SESSION, "sessions that use the address restart", DERIVED),
        Rule((PORT, "ip access-group *"), Risk.LOW, FILTER, DERIVED),
        Rule((PORT, "ipv6 enable"), Risk.SESSION, NEIGHBOR, DERIVED),
        Rule((PORT, "ipv6 address *"), Risk.LOW, "an address beside that of IPv4", DERIVED),
        Rule((PORT, "storm-control *"), Risk.LOW, source=DERIVED),
        Rule((PORT, "spanning-tree *"), Risk.LOW, source=DERIVED),
        Rule((PORT,), Risk.PORT, "the link goes down and up", DERIVED),
        Rule((LAG, "description"), Risk.NONE, source=DERIVED),
        Rule((LAG,), Risk.PORT, "the LAG goes down and up", DERIVED),
        Rule(("interface Vlan*", "description"), Risk.NONE, source=DERIVED),
        Rule(("interface Vlan*",), Risk.SESSION, "the gateway changes", DERIVED),
        Rule(("interface Loopback0", "ipv6 address *"), Risk.LOW, "an address beside that of IPv4", DERIVED),
        Rule(("interface Loopback0",), Risk.SESSION, "the router ID and its address", DERIVED),
        Rule(("interface Management*",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("mlag configuration",), Risk.PORT, "the pair may take its LAGs down until both switches agree", DERIVED),
        Rule(("ip virtual-router mac-address",), Risk.SESSION, "hosts learn the gateway again", DERIVED),
        Rule(("no spanning-tree *",), Risk.LOW, "between a pair", DERIVED),
        Rule(("vlan internal order",), Risk.LOW, "ports that have a VLAN keep it until they are recreated", DERIVED),
        Rule(("vlan *", "name"), Risk.NONE, source=DERIVED),
        Rule(("vlan *",), Risk.LOW, "a VLAN without members yet", DERIVED, when="added"),
        Rule(("vlan *",), Risk.PORT, "hosts lose their VLAN", DERIVED),
        Rule(("service routing protocols model",), Risk.REBOOT, "another routing model needs a reload", BGP),
        Rule(("platform trident mmu *",), Risk.BUFFER, BUFFERS, DERIVED),
        Rule(("qos profile *",), Risk.BUFFER, BUFFERS, DERIVED),
        Rule(("qos map *",), Risk.BUFFER, "traffic changes its queue", DERIVED),
        Rule(("priority-flow-control pause watchdog *",), Risk.LOW, source=DERIVED),
        Rule(("ip hardware fib load-balance*",), Risk.LOW, "flows move between equal paths", DERIVED),
        Rule(("ip prefix-list *",), Risk.LOW, "routes are re-evaluated", BGP),
        Rule(("ipv6 prefix-list *",), Risk.LOW, "routes are re-evaluated", BGP),
        Rule(("peer-filter *",), Risk.LOW, "no session restarts before its neighbor changes", DERIVED),
        Rule(("route-map *",), Risk.LOW, "routes are re-evaluated", BGP),
        Rule(("maintenance",), Risk.LOW, "traffic moves to other paths", MAINTENANCE),
        Rule(("group interface *",), Risk.LOW, "traffic moves to other paths", MAINTENANCE),
        Rule(("ip routing*",), Risk.SESSION, "routing stops and starts", DERIVED),
        Rule(("ipv6 unicast-routing",), Risk.SESSION, "routing stops and starts", DERIVED),
        Rule(("router bfd",), Risk.SESSION, "BFD sessions renegotiate", DERIVED),
        Rule(("router bgp", "neighbor * description"), Risk.NONE, source=BGP),
        Rule(("router bgp", "neighbor * route-map *"), Risk.LOW, "routes are re-evaluated", BGP),
        Rule(("router bgp", "neighbor * missing-policy *"), Risk.LOW, "routes are re-evaluated", BGP),
        Rule(("router bgp", "neighbor *"), Risk.SESSION, NEIGHBOR, BGP),
        Rule(("router bgp", "aggregate-address *"), Risk.LOW, "routes change", BGP),
        Rule(("router bgp", "redistribute *"), Risk.LOW, "routes change", BGP),
        Rule(("router bgp", "maximum-paths"), Risk.LOW, "routes change", BGP),
        Rule(("router bgp",), Risk.SESSION, "every BGP session restarts", BGP),
        Rule(("username *",), Risk.LOW, "a login account", DERIVED),
        Rule(("vrf instance *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("no ip routing vrf *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("ip access-list NETKIT-EDGE-*",), Risk.LOW, FILTER, DERIVED),
        Rule(("ip access-list *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("ip route vrf *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("ip route *",), Risk.LOW, "routes change", DERIVED),
        Rule(("ipv6 route *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("management *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("aaa *",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("hostname",), Risk.LOW, "LLDP neighbours see another name", DERIVED),
        Rule(("lldp *",), Risk.LOW, source=DERIVED),
        Rule(("logging *",), Risk.LOW, source=DERIVED),
        Rule(("ip name-server *",), Risk.LOW, source=DERIVED),
        Rule(("snmp-server *",), Risk.LOW, source=DERIVED),
        Rule(("no snmp-server *",), Risk.LOW, source=DERIVED),
        Rule(("clock timezone",), Risk.LOW, source=DERIVED),
        Rule(("ntp *",), Risk.LOW, source=DERIVED),
        Rule(("mac address-table aging-time",), Risk.LOW, source=DERIVED),
    ),
)


# Start of a section's header → side effect of applying it. Unverified on a switch.
COSTS = {
    "service routing protocols model": "another routing model takes effect only after a reload",
    "platform trident mmu": "MMU profile: buffers of every port are reallocated",
}


def strategy(situation: Situation) -> Strategy:
    """Apply all changes in one session, committed with a timer."""
    if not situation.changes:
        return Strategy(NOTHING)
    heads = {change.path[0] for change in situation.changes}
    costs = tuple(cost for begin, cost in COSTS.items() if any(head.startswith(begin) for head in heads))
    return Strategy("session", ("a configuration session, committed with a timer, confirmed",), costs)


def constraints() -> Iterator[Constraint]:
    """Yield the side effects of changes, and commands that are unverified."""
    for section, cost in COSTS.items():
        yield Constraint(section, cost)
    for form in ("no seq N permit", "no maintenance"):
        yield Constraint(form, "no public source documents this command; try it on one switch first")
