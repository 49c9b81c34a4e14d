"""What changing a line of a Linux switch puts at risk.

Sources: FRR is docs.frrouting.org by chapter; "derived" is our own conclusion, on the careful side.
"""

from collections.abc import Iterable
from dataclasses import replace

from netkit.platforms.change import Risk
from netkit.platforms.config import Path
from netkit.platforms.risk import RiskTable, Rule

BGP = "FRR, BGP"
OURS = "derived"
MANAGEMENT = "netkit's own way in moves: the timed revert covers a mistake"
NEIGHBOR = "the session starts over"
ALL = "every BGP session starts over"

# Below frr.conf; SONiC in split mode has the same file.
ROUTING_RULES = (
    Rule(("interface *", "description"), Risk.NONE, source=OURS),
    Rule(("frr defaults",), Risk.SESSION, "FRR's defaults change with the next start", OURS),
    Rule(("log *",), Risk.LOW, source=OURS),
    Rule(("ip prefix-list *",), Risk.LOW, "routes are judged anew", BGP),
    Rule(("route-map *",), Risk.LOW, "routes are judged anew", BGP),
    Rule(("ip protocol bgp route-map",), Risk.LOW, "routes are installed anew", OURS),
    Rule(("bfd",), Risk.SESSION, "BFD sessions negotiate anew", OURS),
    Rule(("router bgp*", "neighbor * description"), Risk.NONE, source=BGP),
    Rule(("router bgp*", "neighbor * remote-as"), Risk.LOW, "a new neighbour", BGP, when="added"),
    Rule(("router bgp*", "neighbor * interface v6only peer-group"), Risk.LOW, "a new neighbour", BGP, when="added"),
    Rule(("router bgp*", "neighbor * graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
    Rule(("router bgp*", "neighbor * timers connect*"), Risk.LOW, "holds when a session is next lost", BGP),
    Rule(("router bgp*", "neighbor *"), Risk.SESSION, NEIGHBOR, BGP),
    Rule(("router bgp*", "bgp graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
    Rule(("router bgp*", "bgp log-neighbor-changes"), Risk.NONE, source=BGP),
    Rule(("router bgp*", "bgp bestpath *"), Risk.LOW, "routes move", BGP),
    Rule(("router bgp*", "address-family *", "neighbor * route-map *"), Risk.LOW, "routes are judged anew", BGP),
    Rule(("router bgp*", "address-family *", "neighbor *"), Risk.SESSION, NEIGHBOR, BGP),
    Rule(("router bgp*", "address-family *"), Risk.LOW, "routes move", BGP),
    Rule(("router bgp*",), Risk.SESSION, ALL, BGP),
    Rule(("fpm *",), Risk.SESSION, "how routes reach the switch chip", OURS),
    Rule(("no fpm *",), Risk.SESSION, "how routes reach the switch chip", OURS),
    Rule(("no zebra nexthop kernel enable",), Risk.SESSION, "routes are installed anew", OURS),
    Rule(("hostname",), Risk.LOW, source=OURS),
    Rule(("service *",), Risk.LOW, source=OURS),
)
ROUTING_OBJECTS: tuple[Path, ...] = (
    ("router bgp*",),
    ("router bgp*", "(neighbor)", "*"),
    ("bfd", "profile *"),
    ("bfd",),
)
ROUTING_IN_USE: tuple[Path, ...] = (
    ("router bgp*", "neighbor * interface v6only peer-group"),
    ("router bgp*", "neighbor * remote-as"),
)


def neighbor_of(path: Path) -> Path:
    """Return a neighbour's place: FRR says everything about it in lines of their own."""
    words = path[-1].split(" ") if path and path[0].startswith("router bgp") else []
    return (path[0], "(neighbor)", words[1]) if words[0:1] == ["neighbor"] and len(words) > 1 else path


def below(file: str, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return rules for what stands in a file."""
    return tuple(replace(rule, path=(file, *rule.path)) for rule in rules)


NET = ("netplan.yaml", "network")
RISKS = RiskTable(
    objects=(
        *(("frr.conf", *path) for path in ROUTING_OBJECTS),
        (*NET, "ethernets", "*"),
        (*NET, "bridges", "*"),
        ("daemons",),
    ),
    stands_for=lambda path: ("frr.conf", *neighbor_of(path[1:])) if path[0] == "frr.conf" else path,
    in_use=(
        *(("frr.conf", *path) for path in ROUTING_IN_USE),
        (*NET, "ethernets", "*", "addresses"),
        (*NET, "bridges", "*", "interfaces", "*"),
    ),
    rules=(
        *below("frr.conf", ROUTING_RULES),
        Rule((*NET, "ethernets", "eth*"), Risk.LOW, MANAGEMENT, OURS),
        Rule((*NET, "vrfs"), Risk.LOW, MANAGEMENT, OURS),
        Rule((*NET, "ethernets", "*", "mtu"), Risk.PORT, "the port may go down and up", OURS),
        Rule((*NET, "ethernets", "*"), Risk.SESSION, "the port is set up anew", OURS),
        Rule((*NET, "bridges"), Risk.SESSION, "the gateway is set up anew", OURS),
        Rule(NET, Risk.SESSION, "ports are set up anew", OURS),
        Rule(("daemons",), Risk.SESSION, "FRR restarts: every session", OURS),
        Rule(("sysctl.conf",), Risk.LOW, source=OURS),
        Rule(("lldpd.conf",), Risk.LOW, source=OURS),
        Rule(("chrony.conf",), Risk.LOW, source=OURS),
        Rule(("rsyslog.conf",), Risk.LOW, source=OURS),
        Rule(("snmpd.conf",), Risk.LOW, source=OURS),
    ),
)
