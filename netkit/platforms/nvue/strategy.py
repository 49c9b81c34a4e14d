"""How changes are applied to a switch that runs NVUE, and what that costs."""

import re
from collections.abc import Iterable, Iterator

from netkit.platforms.change import NOTHING, Change, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import Situation
from netkit.platforms.config import Config, Path
from netkit.platforms.platform import version_key

QOS = "UG, Quality of Service"
BGP = "UG, BGP"
PORTS = "UG, Switch Port Attributes"
BFD = "UG, BFD"
AR = "UG, Adaptive Routing"
DERIVED = "derived"

PEERS = ("vrf", "default", "router", "bgp")
WATCHDOG = "reloads switchd, with the buffers as they are"
RELOAD = "reloads switchd: brief loss on every port"
FILTER = "the filter for packets from outside changes"
MANAGEMENT = "netkit's own access changes: the timer reverts a mistake"

RISKS = RiskTable(
    objects=(
        ("interface", "*"),
        ("router", "bgp"),
        ("router", "bfd"),
        (*PEERS, "state"),
        (*PEERS, "address-family", "*"),
        (*PEERS, "neighbor", "*"),
        (*PEERS, "peer-group", "*"),
    ),
    in_use=(
        ("interface", "*", "ip*", "address"),
        ("interface", "*", "bridge"),
        ("interface", "*", "bond", "member", "*"),
        (*PEERS, "neighbor", "*"),
    ),
    rules=(
        Rule(("interface", "eth*", "description"), Risk.NONE, source=DERIVED),
        Rule(("interface", "eth*"), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("interface", "*", "description"), Risk.NONE, source=DERIVED),
        Rule(("interface", "*", "type"), Risk.NONE, source=DERIVED),
        Rule(("interface", "*", "acl"), Risk.LOW, FILTER, DERIVED),
        Rule(("interface", "*", "qos", "pfc-watchdog"), Risk.LOW, WATCHDOG, DERIVED),
        Rule(("interface", "*", "qos"), Risk.BUFFER, RELOAD, QOS),
        Rule(("interface", "*", "router", "adaptive-routing"), Risk.BUFFER, RELOAD, AR),
        Rule(("interface", "*", "link", "breakout"), Risk.PORT, "the ports of the cage are created again", PORTS),
        Rule(("interface", "*", "link"), Risk.PORT, "the link goes down and up", PORTS),
        Rule(("interface", "*", "ip*"), Risk.SESSION, "sessions that use the address restart", DERIVED),
        Rule(("interface", "*", "vrf"), Risk.SESSION, "the port leaves its routing table", DERIVED),
        Rule(("interface", "*", "bridge"), Risk.PORT, "the port changes its VLAN", DERIVED),
        Rule(("interface", "*", "vlan"), Risk.SESSION, "the gateway changes", DERIVED),
        Rule(("interface", "*"), Risk.PORT, "the port is created again", DERIVED),
        Rule(("acl", "NETKIT-EDGE-*"), Risk.LOW, FILTER, DERIVED),
        Rule(("acl",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("system", "control-plane"), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("bridge", "domain", "*", "ageing"), Risk.LOW, source=DERIVED),
        Rule(("bridge", "domain", "*", "vlan", "*"), Risk.LOW, "a VLAN without members yet", DERIVED, when="added"),
        Rule(("bridge",), Risk.PORT, "hosts lose their VLAN", DERIVED),
        Rule(("mlag",), Risk.PORT, "the pair may take its LAGs down until both switches agree", DERIVED),
        Rule(("qos", "pfc-watchdog"), Risk.LOW, WATCHDOG, DERIVED),
        Rule(("qos",), Risk.BUFFER, RELOAD, QOS),
        Rule(("router", "adaptive-routing"), Risk.BUFFER, RELOAD, AR),
        Rule(("router", "bfd", "state"), Risk.SESSION, "restarts FRR: every session", BFD),
        Rule(("router", "bfd", "offload"), Risk.SESSION, "every BFD session goes down while it switches", BFD),
        Rule(("router", "bfd"), Risk.SESSION, "BFD sessions renegotiate", DERIVED),
        Rule(("router", "bgp", "graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
        Rule(("router", "bgp"), Risk.SESSION, "every BGP session restarts", BGP),
        Rule(("router", "policy"), Risk.LOW, "routes are re-evaluated", BGP),
        Rule((*PEERS, "neighbor", "*", "graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
        Rule((*PEERS, "neighbor", "*"), Risk.SESSION, "the session restarts", BGP),
        Rule((*PEERS, "peer-group", "*", "address-family", "*", "policy"), Risk.LOW, "routes are re-evaluated", BGP),
        Rule((*PEERS, "peer-group"), Risk.SESSION, "the sessions of the group restart", DERIVED),
        Rule((*PEERS, "state"), Risk.SESSION, "every BGP session restarts", BGP),
        Rule((*PEERS, "address-family", "*", "state"), Risk.SESSION, "every BGP session renegotiates", DERIVED),
        Rule((*PEERS, "address-family"), Risk.LOW, "routes change", BGP),
        Rule((*PEERS, "path-selection"), Risk.LOW, "routes change", BGP),
        Rule(PEERS, Risk.SESSION, "every BGP session may restart", DERIVED),
        Rule(("vrf", "default", "router", "static"), Risk.LOW, "routes change", DERIVED),
        Rule(("vrf", "mgmt"), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("system", "aaa", "user"), Risk.LOW, "a login account", DERIVED),
        Rule(("system", "hostname"), Risk.LOW, "LLDP neighbours see another name", DERIVED),
        Rule(("system",), Risk.LOW, source=DERIVED),
        Rule(("service",), Risk.LOW, source=DERIVED),
    ),
)


SUB_PORT = re.compile(r"(swp\d+)s\d+")

# Side effects of applying a branch (Cumulus Linux user guide: Quality of Service, Adaptive Routing, BFD). Unverified on
# a switch. The first entry that matches a path counts.
COSTS: dict[Path, str] = {
    ("qos", "pfc-watchdog"): "PFC watchdog: switchd reloads",
    ("qos",): "QoS: switchd reloads, with brief loss on every port",
    ("router", "bfd", "state"): "BFD on or off: FRR restarts, and every BGP session with it",
    ("router", "adaptive-routing"): "adaptive routing: switchd reloads, with brief loss on every port",
}
RESTARTING_SWITCHD = "adaptive routing: up to 5.12 switchd restarts, and traffic stops for seconds"
LAST_RESTARTING = (5, 12)


def strategy(situation: Situation) -> Strategy:
    """Choose one patch, or two if ports of a cage are removed."""
    if not situation.changes:
        return Strategy(NOTHING)
    cages = sorted(joined_cages(situation.changes, situation.running))
    patch = "nv config patch, nv config apply with a timed revert, confirm"
    steps: tuple[str, ...] = (patch,)
    if cages:
        names = ", ".join(cages)
        steps = (
            f"remove the ports of {names} and apply",
            f"change the breakout of {names} with everything else: {patch}",
        )
    paths = [path[2:] if path[0] == "interface" else path for path in (change.path for change in situation.changes)]
    heads = {next((head for head in COSTS if path[: len(head)] == head), None) for path in paths}
    costs = {head: cost for head, cost in COSTS.items() if head in heads}
    adaptive = ("router", "adaptive-routing")
    if adaptive in costs and version_key(situation.version)[:2] <= LAST_RESTARTING:
        costs[adaptive] = RESTARTING_SWITCHD
    return Strategy("patch", steps, tuple(costs.values()))


def joined_cages(changes: Iterable[Change], running: Config) -> set[str]:
    """Find cages whose breakout changes while their ports are configured: NVUE wants the ports removed first."""
    broken = {change.path[1] for change in changes if is_breakout(change) and not change.is_addition}
    ports = (SUB_PORT.fullmatch(path[1]) for path in running if path[0] == "interface")
    return broken & {port[1] for port in ports if port}


def is_breakout(change: Change) -> bool:
    return change.path[0] == "interface" and change.path[2:4] == ("link", "breakout")


def constraints() -> Iterator[Constraint]:
    for path, cost in COSTS.items():
        yield Constraint(" ".join(path), cost.partition(": ")[2])
    yield Constraint("interface * link breakout", "two applies when ports of the cage are configured")
