"""How changes are applied to a Linux switch with FRR, and their risk."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from netkit.platforms.change import NOTHING, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import Situation
from netkit.platforms.config import Path

BGP = "FRR, BGP"
DERIVED = "derived"
MANAGEMENT = "netkit's own access changes: the timer reverts a mistake"
NEIGHBOR = "the session restarts"
ALL = "every BGP session restarts"

# Rules for frr.conf; SONiC in split mode has the same file.
ROUTING_RULES = (
    Rule(("interface *", "description"), Risk.NONE, source=DERIVED),
    Rule(("frr defaults",), Risk.SESSION, "FRR's defaults change with the next start", DERIVED),
    Rule(("log *",), Risk.LOW, source=DERIVED),
    Rule(("ip prefix-list *",), Risk.LOW, "routes are re-evaluated", BGP),
    Rule(("ipv6 prefix-list *",), Risk.LOW, "routes are re-evaluated", BGP),
    Rule(("route-map *",), Risk.LOW, "routes are re-evaluated", BGP),
    Rule(("ip route *",), Risk.LOW, "routes change", DERIVED),
    Rule(("ip protocol bgp route-map",), Risk.LOW, "routes are reinstalled", DERIVED),
    Rule(("ipv6 protocol bgp route-map",), Risk.LOW, "routes are reinstalled", DERIVED),
    Rule(("bfd",), Risk.SESSION, "BFD sessions renegotiate", DERIVED),
    Rule(("router bgp*", "neighbor * description"), Risk.NONE, source=BGP),
    Rule(("router bgp*", "neighbor * remote-as"), Risk.LOW, "a new neighbour", BGP, when="added"),
    Rule(("router bgp*", "neighbor * interface v6only peer-group"), Risk.LOW, "a new neighbour", BGP, when="added"),
    Rule(("router bgp*", "neighbor * graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
    Rule(("router bgp*", "neighbor * timers connect*"), Risk.LOW, "takes effect when a session is next lost", BGP),
    Rule(("router bgp*", "neighbor *"), Risk.SESSION, NEIGHBOR, BGP),
    Rule(("router bgp*", "bgp graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
    Rule(("router bgp*", "bgp log-neighbor-changes"), Risk.NONE, source=BGP),
    Rule(("router bgp*", "bgp bestpath *"), Risk.LOW, "routes change", BGP),
    Rule(("router bgp*", "address-family *", "neighbor * route-map *"), Risk.LOW, "routes are re-evaluated", BGP),
    Rule(("router bgp*", "address-family *", "neighbor *"), Risk.SESSION, NEIGHBOR, BGP),
    Rule(("router bgp*", "address-family *"), Risk.LOW, "routes change", BGP),
    Rule(("router bgp*",), Risk.SESSION, ALL, BGP),
    Rule(("fpm *",), Risk.SESSION, "how routes reach the switch chip", DERIVED),
    Rule(("no fpm *",), Risk.SESSION, "how routes reach the switch chip", DERIVED),
    Rule(("no zebra nexthop kernel enable",), Risk.SESSION, "routes are reinstalled", DERIVED),
    Rule(("hostname",), Risk.LOW, source=DERIVED),
    Rule(("service *",), Risk.LOW, source=DERIVED),
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
    """Map a line about a neighbour to the neighbour: FRR has one line per setting."""
    words = path[-1].split(" ") if path and path[0].startswith("router bgp") else []
    return (path[0], "(neighbor)", words[1]) if words[0:1] == ["neighbor"] and len(words) > 1 else path


def below(file: str, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Prefix the paths of rules with a file."""
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
        Rule((*NET, "ethernets", "eth*"), Risk.LOW, MANAGEMENT, DERIVED),
        Rule((*NET, "vrfs"), Risk.LOW, MANAGEMENT, DERIVED),
        Rule((*NET, "ethernets", "*", "mtu"), Risk.PORT, "the port may go down and up", DERIVED),
        Rule((*NET, "ethernets", "*"), Risk.SESSION, "the port is reconfigured", DERIVED),
        Rule((*NET, "bridges"), Risk.SESSION, "the gateway is reconfigured", DERIVED),
        Rule(NET, Risk.SESSION, "ports are reconfigured", DERIVED),
        Rule(("daemons",), Risk.SESSION, "FRR restarts: every session", DERIVED),
        Rule(("sysctl.conf",), Risk.LOW, source=DERIVED),
        Rule(("lldpd.conf",), Risk.LOW, source=DERIVED),
        Rule(("chrony.conf",), Risk.LOW, source=DERIVED),
        Rule(("rsyslog.conf",), Risk.LOW, source=DERIVED),
        Rule(("snmpd.conf",), Risk.LOW, source=DERIVED),
    ),
)


# File → how it takes effect, and the side effect.
STEPS = {
    "frr.conf": ("frr-reload.py applies frr.conf, line by line", ""),
    "netplan.yaml": ("write netplan.yaml, netplan apply", "netplan apply: interfaces with changed settings restart"),
    "sysctl.conf": ("write sysctl.conf, load it", ""),
    "daemons": ("write daemons, restart FRR", "daemons: FRR restarts, and every BGP session with it"),
    "lldpd.conf": ("write lldpd.conf, restart lldpd", ""),
    "chrony.conf": ("write chrony.conf, restart chrony", ""),
    "rsyslog.conf": ("write rsyslog.conf, restart rsyslog", ""),
    "snmpd.conf": ("write snmpd.conf, restart snmpd", ""),
}
KEPT = "sysctl.conf: the kernel keeps settings that are removed from it until a reboot"


def strategy(situation: Situation) -> Strategy:
    """Choose the steps: file by file, the interfaces before the routing."""
    if not situation.changes:
        return Strategy(NOTHING)
    changed = {change.path[0] for change in situation.changes}
    order = ("netplan.yaml", "sysctl.conf", "daemons", "frr.conf", *STEPS)
    files = [file for file in dict.fromkeys(order) if file in changed]
    costs = [STEPS[file][1] for file in files if STEPS[file][1]]
    if any(change.is_removal and change.path[0] == "sysctl.conf" for change in situation.changes):
        costs.append(KEPT)
    return Strategy("files", tuple(STEPS[file][0] for file in files), tuple(costs))


def constraints() -> Iterator[Constraint]:
    """Yield the side effects by file."""
    for file, (step, cost) in STEPS.items():
        yield Constraint(file, cost.partition(": ")[2] or step)
