"""What changing an NVUE object puts at risk.

Sources: UG is the Cumulus Linux user guide (5.14 to 5.17) by chapter; "derived" is our own conclusion, on the careful
side, that no document states. Nothing here was measured on a switch.
"""

from netkit.platforms.change import Risk
from netkit.platforms.risk import RiskTable, Rule

QOS = "UG, Quality of Service"
BGP = "UG, BGP"
PORTS = "UG, Switch Port Attributes"
BFD = "UG, BFD"
AR = "UG, Adaptive Routing"
OURS = "derived"

PEERS = ("vrf", "default", "router", "bgp")
WATCHDOG = "reloads switchd, with the buffers as they are"
RELOAD = "reloads switchd: a moment of loss on every port"
MANAGEMENT = "netkit's own way in moves: the timed revert covers a mistake"

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
    in_use=(("interface", "*", "ip*", "address"), ("interface", "*", "bridge"), (*PEERS, "neighbor", "*")),
    rules=(
        Rule(("interface", "eth*", "description"), Risk.NONE, source=OURS),
        Rule(("interface", "eth*"), Risk.LOW, MANAGEMENT, OURS),
        Rule(("interface", "*", "description"), Risk.NONE, source=OURS),
        Rule(("interface", "*", "type"), Risk.NONE, source=OURS),
        Rule(("interface", "*", "qos", "pfc-watchdog"), Risk.LOW, WATCHDOG, OURS),
        Rule(("interface", "*", "qos"), Risk.BUFFER, RELOAD, QOS),
        Rule(("interface", "*", "router", "adaptive-routing"), Risk.BUFFER, RELOAD, AR),
        Rule(("interface", "*", "link", "breakout"), Risk.PORT, "the ports of the cage are made anew", PORTS),
        Rule(("interface", "*", "link"), Risk.PORT, "the link goes down and up", PORTS),
        Rule(("interface", "*", "ip*"), Risk.SESSION, "what uses the address starts over", OURS),
        Rule(("interface", "*", "vrf"), Risk.SESSION, "the port leaves its routing table", OURS),
        Rule(("interface", "*", "bridge"), Risk.PORT, "the port changes its VLAN", OURS),
        Rule(("interface", "*", "vlan"), Risk.SESSION, "the gateway moves", OURS),
        Rule(("interface", "*"), Risk.PORT, "the port is made anew", OURS),
        Rule(("bridge", "domain", "*", "ageing"), Risk.LOW, source=OURS),
        Rule(("bridge", "domain", "*", "vlan", "*"), Risk.LOW, "a VLAN nobody is in yet", OURS, when="added"),
        Rule(("bridge",), Risk.PORT, "hosts lose their VLAN", OURS),
        Rule(("qos", "pfc-watchdog"), Risk.LOW, WATCHDOG, OURS),
        Rule(("qos",), Risk.BUFFER, RELOAD, QOS),
        Rule(("router", "adaptive-routing"), Risk.BUFFER, RELOAD, AR),
        Rule(("router", "bfd", "state"), Risk.SESSION, "restarts FRR: every session", BFD),
        Rule(("router", "bfd", "offload"), Risk.SESSION, "every BFD session goes down while it switches", BFD),
        Rule(("router", "bfd"), Risk.SESSION, "BFD sessions negotiate anew", OURS),
        Rule(("router", "bgp", "graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
        Rule(("router", "bgp"), Risk.SESSION, "every BGP session starts over", BGP),
        Rule(("router", "policy"), Risk.LOW, "routes are judged anew", BGP),
        Rule((*PEERS, "neighbor", "*", "graceful-shutdown"), Risk.LOW, "traffic moves to other paths", BGP),
        Rule((*PEERS, "neighbor", "*"), Risk.SESSION, "the session starts over", BGP),
        Rule((*PEERS, "peer-group", "*", "address-family", "*", "policy"), Risk.LOW, "routes are judged anew", BGP),
        Rule((*PEERS, "peer-group"), Risk.SESSION, "the sessions of the group start over", OURS),
        Rule((*PEERS, "state"), Risk.SESSION, "every BGP session starts over", BGP),
        Rule((*PEERS, "address-family", "*", "state"), Risk.SESSION, "every BGP session negotiates anew", OURS),
        Rule((*PEERS, "address-family"), Risk.LOW, "routes move", BGP),
        Rule((*PEERS, "path-selection"), Risk.LOW, "routes move", BGP),
        Rule(PEERS, Risk.SESSION, "every BGP session may start over", OURS),
        Rule(("vrf", "mgmt"), Risk.LOW, MANAGEMENT, OURS),
        Rule(("system", "aaa", "user"), Risk.LOW, "an account to log in with", OURS),
        Rule(("system", "hostname"), Risk.LOW, "LLDP neighbours see another name", OURS),
        Rule(("system",), Risk.LOW, source=OURS),
        Rule(("service",), Risk.LOW, source=OURS),
    ),
)
