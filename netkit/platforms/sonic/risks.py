"""What changing a field of CONFIG_DB puts at risk, made by SONiC's generic updater.

Sources: GCU is the generic updater of sonic-utilities, 202405 to 202511, whose own code was run: it shuts a port down
and up for any change of that port's rows in some tables. "derived" is our own conclusion, on the careful side.
"""

from netkit.platforms.change import Risk
from netkit.platforms.config import Path
from netkit.platforms.frr.risks import ROUTING_IN_USE, ROUTING_OBJECTS, ROUTING_RULES, below, neighbor_of
from netkit.platforms.risk import RiskTable, Rule

GCU = "GCU, RequiredValueIdentifier"
YANG = "GCU, create-only"
OURS = "derived"
MANAGEMENT = "netkit's own way in moves: the timed revert covers a mistake"
FLAP = "the updater shuts the port and opens it again"
SHARED = "buffers or queues of every port change"

# Whose rows of one port cannot change while the port is up.
FLAPPING = (
    "QUEUE",
    "PORT_QOS_MAP",
    "BUFFER_PG",
    "BUFFER_QUEUE",
    "BUFFER_PORT_INGRESS_PROFILE_LIST",
    "BUFFER_PORT_EGRESS_PROFILE_LIST",
)
BUFFERS = (
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER",
    "DSCP_TO_TC_MAP",
    "LOSSLESS_TRAFFIC_PATTERN",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "SCHEDULER",
    "TC_TO_PRIORITY_GROUP_MAP",
    "TC_TO_QUEUE_MAP",
    "WRED_PROFILE",
)
HARMLESS = (
    "BGP_DEVICE_GLOBAL",
    "DNS_NAMESERVER",
    "FEATURE",
    "FLEX_COUNTER_TABLE",
    "NTP",
    "NTP_SERVER",
    "PFC_WD",
    "PORT_STORM_CONTROL",
    "SNMP",
    "SNMP_AGENT_ADDRESS_CONFIG",
    "SNMP_COMMUNITY",
    "SNMP_USER",
    "SYSLOG_SERVER",
)
POLICY = ("PREFIX", "PREFIX_SET", "ROUTE_MAP", "ROUTE_MAP_SET", "ROUTE_REDISTRIBUTE", "BGP_GLOBALS_AF*", "BGP_*_AF")
METADATA = ("DEVICE_METADATA", "localhost")
OF_A_PORT = frozenset(
    {*FLAPPING, "BREAKOUT_CFG", "CABLE_LENGTH", "INTERFACE", "PFC_WD", "PORT_STORM_CONTROL", "VLAN_MEMBER"}
)


def stands_for(path: Path) -> Path:
    """Return the port that a row belongs to: the rows of a new port are new with it."""
    if path[0] in OF_A_PORT and len(path) > 1:
        port = next((word for word in "|".join(path[1:]).split("|") if word.startswith("Ethernet")), "")
        return ("PORT", port, *path) if port else path
    return ("frr.conf", *neighbor_of(path[1:])) if path[0] == "frr.conf" else path


RISKS = RiskTable(
    objects=(
        ("PORT", "*"),
        ("BGP_NEIGHBOR", "*"),
        ("BGP_PEER_GROUP", "*"),
        ("BGP_GLOBALS", "*"),
        *(("frr.conf", *path) for path in ROUTING_OBJECTS),
    ),
    in_use=(
        ("INTERFACE", "*"),
        ("VLAN_MEMBER", "*"),
        ("BGP_NEIGHBOR", "*"),
        *(("frr.conf", *path) for path in ROUTING_IN_USE),
    ),
    stands_for=stands_for,
    is_buffer_per_port=True,
    rules=(
        Rule(("PORT", "*", "description"), Risk.NONE, source=OURS),
        Rule(("PORT", "*", "alias"), Risk.LOW, "LLDP neighbours see another port", OURS),
        Rule(("PORT", "*", "index"), Risk.LOW, source=OURS),
        Rule(("PORT", "*"), Risk.PORT, "the link goes down and up", OURS),
        Rule(("BREAKOUT_CFG", "*"), Risk.PORT, "the ports of the cage are made anew", OURS),
        Rule(("PORT_QOS_MAP", "global"), Risk.BUFFER, SHARED, OURS),
        *(Rule((table, "*"), Risk.PORT, FLAP, GCU) for table in FLAPPING),
        Rule(("CABLE_LENGTH", "*"), Risk.BUFFER, "the headroom of the port is laid out anew", OURS),
        *(Rule((table,), Risk.BUFFER, SHARED, OURS) for table in BUFFERS),
        *(Rule((table,), Risk.LOW, source=OURS) for table in HARMLESS),
        *(Rule((table,), Risk.LOW, "routes are judged anew", OURS) for table in POLICY),
        Rule(("SWITCH_HASH",), Risk.LOW, "flows move between equal paths", OURS),
        Rule(("INTERFACE", "*"), Risk.SESSION, "what uses the address starts over", OURS),
        Rule(("LOOPBACK_INTERFACE",), Risk.SESSION, "the router ID and its address", OURS),
        Rule(("VLAN", "*", "description"), Risk.NONE, source=OURS),
        Rule(("VLAN", "*"), Risk.LOW, "a VLAN nobody is in yet", OURS, when="added"),
        Rule(("VLAN", "*"), Risk.PORT, "hosts lose their VLAN", OURS),
        Rule(("VLAN_MEMBER", "*"), Risk.PORT, "the port changes its VLAN", OURS),
        Rule(("VLAN_INTERFACE", "*"), Risk.SESSION, "the gateway moves", OURS),
        Rule(("BGP_NEIGHBOR", "*", "name"), Risk.NONE, source=OURS),
        Rule(("BGP_NEIGHBOR", "*"), Risk.SESSION, "the session starts over", YANG),
        Rule(("BGP_PEER_GROUP", "*"), Risk.SESSION, "the sessions of the group start over", OURS),
        Rule(("BGP_GLOBALS", "*"), Risk.SESSION, "every BGP session starts over", OURS),
        Rule((*METADATA, "hostname"), Risk.LOW, "LLDP neighbours see another name", OURS),
        Rule((*METADATA, "timezone"), Risk.LOW, source=OURS),
        Rule((*METADATA, "default_*"), Risk.LOW, "holds for what is set up afterwards", OURS),
        Rule((*METADATA, "bgp_*"), Risk.SESSION, "every BGP session starts over", OURS),
        Rule(METADATA, Risk.REBOOT, "the containers start anew", OURS),
        Rule(("MGMT_*",), Risk.LOW, MANAGEMENT, OURS),
        *below("frr.conf", ROUTING_RULES),
    ),
)
