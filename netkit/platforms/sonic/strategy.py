"""How changes get onto a SONiC switch: by patch where its generic updater takes them, else by a reload of everything.

What the updater takes was learnt by running it (202405, 202411, 202505, 202511) with the hwskus of `LISTED`, and read
in its rules (202305 to 202605); of other hwskus it refuses every change of a field in the tables it knows by ASIC.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from netkit.platforms.change import NOTHING, REFUSED, Change, Constraint, Risk, RiskTable, Rule, Strategy
from netkit.platforms.compare import Situation
from netkit.platforms.config import Config, Path
from netkit.platforms.frr.strategy import ROUTING_IN_USE, ROUTING_OBJECTS, ROUTING_RULES, below, neighbor_of
from netkit.platforms.platform import version_key

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


# hwsku → the first branch whose list of ASICs has it.
LISTED = {"Mellanox-SN5600*": "202311", "ACS-SN5600*": "202305", "ACS-MSN4700": "202305", "Arista-7060X6*": "202411"}
BY_ASIC = ("PFC_WD", "BUFFER_POOL", "BUFFER_PROFILE")
FREE_SINCE = (202511,)  # WRED profiles and buffer profiles of any name; pools not at all

WRED = ("AZURE_LOSSLESS", ("green_min_threshold", "green_max_threshold", "green_drop_probability"))
POOLS = {"ingress_lossless_pool": ("size", "xoff"), "egress_lossy_pool": ("size",)}
PROFILE_FIELDS = ("dynamic_th", "xoff")
FIXED_AT_CREATION = {"PORT": ("lanes",)}
"""Of neighbours too, but those rows the updater removes and adds again by itself."""
NEVER_REMOVED = (("PFC_WD", "GLOBAL"), ("LOOPBACK_INTERFACE", "Loopback0"))
STARTS_ANEW = ("docker_routing_config_mode", "buffer_model", "frr_mgmt_framework_config", "synchronous_mode", "type")
INSTALLED = ("hwsku", "platform")

# Ports that flap → seconds of one patch, measured with the real sorter on a PC, a 64-port configuration.
PATCH_S = ((1, 1.5), (4, 6.2), (16, 46.0), (64, 593.0))
LONGEST_PATCH_S = 60.0

PATCH = "config apply-patch, with a timed rollback to a checkpoint"
RELOAD = "validate, write {}, config reload, with a timed reload of the files from before"
ROUTING = "frr-reload.py in the bgp container brings FRR to frr.conf, line by line"
OUTAGE = "config reload: every container stops and starts; the switch forwards nothing for minutes"


def strategy(situation: Situation) -> Strategy:
    """Return the gentlest way the switch takes."""
    if not situation.changes:
        return Strategy(NOTHING)
    tables = [change for change in situation.changes if change.path[0] != "frr.conf"]
    routing = (ROUTING,) if len(tables) < len(situation.changes) else ()
    installed = [change for change in tables if change.path[0] == "DEVICE_METADATA" and change.path[-1] in INSTALLED]
    if any(not change.is_addition for change in installed):
        names = ", ".join(change.path[-1] for change in installed)
        return Strategy(REFUSED, reasons=(f"{names}: the switch is installed with another one; install it anew",))
    reasons = tuple(dict.fromkeys(_refusals(tables, situation)))
    flapping = sorted({port for change in tables if (port := _flapped(change))})
    seconds = patch_s(len(flapping))
    if seconds > LONGEST_PATCH_S:
        reasons += (f"a patch that flaps {len(flapping)} ports takes the updater about {seconds:.0f} s",)
    if reasons:
        # The bgp container reads frr.conf when it starts, so it has to be there before.
        files = "config_db.json and frr.conf" if routing else "config_db.json"
        return Strategy("reload", (RELOAD.format(files),), (OUTAGE,), reasons, Risk.REBOOT)
    if not tables:
        return Strategy("patch", routing)
    return Strategy("patch", (PATCH, *routing), (*_costs(tables, flapping), *_costs_of_going_back(tables, situation)))


def _costs(changes: list[Change], flapping: list[str]) -> Iterator[str]:
    if flapping:
        yield f"the updater shuts these ports and opens them again, one after the other: {', '.join(flapping)}"
    if any(change.path[0] == "PORT" and change.path[-1] == "lanes" for change in changes):
        yield "ports come or go by patch: unverified; if the updater refuses it, nothing is changed"


def _costs_of_going_back(changes: list[Change], situation: Situation) -> Iterator[str]:
    """Yield what it costs to take back a patch that the updater makes in one direction only."""
    back = [Change(change.path, change.intended, change.running) for change in changes]
    swapped = Situation(tuple(back), situation.intended, situation.running, situation.version)
    for reason in dict.fromkeys(_refusals(back, swapped)):
        yield f"taken back, unconfirmed or by rollback, only by a config reload with its outage: {reason}"


def patch_s(ports: int) -> float:
    """Return how long a patch that flaps some ports takes, between the measured points and beyond by the square."""
    if ports == 0:
        return 0.0
    for (few, low), (many, high) in pairwise(PATCH_S):
        if ports <= many:
            return low + (high - low) * (ports - few) / (many - few)
    most, seconds = PATCH_S[-1]
    return seconds * (ports / most) ** 2


def _flapped(change: Change) -> str:
    if change.path[0] not in FLAPPING or len(change.path) < 2 or change.path[1] == "global":
        return ""
    return change.path[1].partition("|")[0]


def _refusals(changes: list[Change], situation: Situation) -> Iterator[str]:
    """Yield why the generic updater would not take a change."""
    version = version_key(situation.version)
    hwsku = situation.intended.get(("DEVICE_METADATA", "localhost", "hwsku"), "")
    since = next((branch for pattern, branch in LISTED.items() if fnmatchcase(hwsku, pattern)), "")
    is_listed = bool(since) and version >= version_key(since)
    if {change.path[0] for change in changes} & {"PFC_WD"} and not any(
        path[0] == "PFC_WD" for path in situation.running
    ):
        yield "PFC_WD: the updater cannot make this table from nothing"
    rows = _rows(situation.running), _rows(situation.intended)
    for change in changes:
        yield from _refusal(change, version, rows, is_listed=is_listed)


Rows = Mapping[str, frozenset[str]]
"""Table → the keys of its rows."""


def _rows(config: Config) -> Rows:
    found: dict[str, set[str]] = {}
    for path in config:
        found.setdefault(path[0], set()).update(path[1:2])
    return {table: frozenset(keys) for table, keys in found.items()}


@dataclass(frozen=True, slots=True)
class Edit:
    """One change as the updater sees it."""

    table: str
    key: str
    field: str
    is_change: bool
    """Whether a value that is there becomes another."""
    is_removal: bool
    is_row: bool
    """Whether its whole row comes or goes, in a table that has rows before and after."""
    is_listed: bool
    """Whether the updater knows the ASIC by its hwsku."""
    is_free: bool
    """Whether this release takes changes of more tables."""


def _is_narrow(edit: Edit) -> bool:
    """Whether an edit is one of the few of WRED_PROFILE that every release takes."""
    return edit.is_listed and edit.is_change and edit.key == WRED[0] and edit.field in WRED[1]


RULES: tuple[tuple[Callable[[Edit], bool], str], ...] = (
    (lambda e: e.is_removal and (e.table, e.key) in NEVER_REMOVED, "{table}|{key}: the updater never removes it"),
    (
        lambda e: e.table in BY_ASIC and not e.is_listed and not _is_free_row(e),
        "{table}: the updater takes no change of it on this hwsku",
    ),
    (
        lambda e: e.table == "WRED_PROFILE" and not e.is_free and not _is_narrow(e),
        "{table}: before 202511 the updater changes only green thresholds and probability of AZURE_LOSSLESS",
    ),
    (
        lambda e: e.table == "BUFFER_POOL" and (e.is_free or not e.is_change or e.field not in POOLS.get(e.key, ())),
        "{table}|{key}: the updater does not take this change of a pool",
    ),
    (
        lambda e: e.table == "BUFFER_PROFILE" and not _takes_profile(e),
        "{table}|{key}: the updater does not take this change of a profile",
    ),
    (
        lambda e: e.is_change and e.field in FIXED_AT_CREATION.get(e.table, ()),
        "{table}|{key}: {field} is fixed when the row is made",
    ),
    (
        lambda e: e.table == "BREAKOUT_CFG" and e.is_change,
        "{table}: ports become other ports, which no patch has been seen to do",
    ),
    (
        lambda e: e.table == "DEVICE_METADATA" and e.field in STARTS_ANEW,
        "{table}: {field} is read when the containers start",
    ),
)
"""What the updater refuses, and in which words that is told; the first that fits is told."""


def _refusal(change: Change, version: tuple[int, ...], rows: tuple[Rows, Rows], *, is_listed: bool) -> Iterator[str]:
    table, key, field = (*change.path, "", "")[:3]
    is_change = not change.is_addition and not change.is_removal
    before, after = (one.get(table, frozenset[str]()) for one in rows)
    is_row = bool(before and after) and (key in before) != (key in after)
    edit = Edit(table, key, field, is_change, change.is_removal, is_row, is_listed, is_free=version >= FREE_SINCE)
    told = (text.format(table=table, key=key, field=field) for is_refused, text in RULES if is_refused(edit))
    yield from islice(told, 1)


def _is_free_row(edit: Edit) -> bool:
    """Whether a whole row comes or goes where the updater asks for no ASIC."""
    return edit.table == "BUFFER_PROFILE" and edit.is_free and edit.is_row


def _takes_profile(edit: Edit) -> bool:
    is_known = edit.is_free or any(char.isdecimal() for char in edit.key)
    return _is_free_row(edit) or (edit.is_change and edit.field in PROFILE_FIELDS and is_known)


def constraints() -> Iterator[Constraint]:
    """Yield what changes cost, and what is refused."""
    for table in FLAPPING:
        yield Constraint(table, "by patch: the updater shuts the port and opens it again")
    listed = ", ".join(LISTED)
    for table in BY_ASIC:
        yield Constraint(table, f"config reload on a hwsku the updater does not list; it lists {listed}")
    yield Constraint("WRED_PROFILE", "config reload before 202511, but for green thresholds of AZURE_LOSSLESS")
    yield Constraint("BUFFER_POOL", f"config reload, but for sizes of {', '.join(POOLS)} before 202511")
    yield Constraint("BUFFER_PROFILE", f"config reload, but for {' and '.join(PROFILE_FIELDS)}; rows from 202511")
    for table, key in NEVER_REMOVED:
        yield Constraint(f"{table}|{key}", "config reload to remove it: the updater never does")
    for table, names in FIXED_AT_CREATION.items():
        yield Constraint(f"{table}: {', '.join(names)}", "config reload: fixed when the row is made")
    yield Constraint("BREAKOUT_CFG", "config reload: ports become other ports")
    yield Constraint(f"DEVICE_METADATA: {', '.join(STARTS_ANEW)}", "config reload: read when the containers start")
    yield Constraint(f"DEVICE_METADATA: {', '.join(INSTALLED)}", "refused: the switch is installed with it")
    yield Constraint("any patch", f"config reload when the updater would take longer than {LONGEST_PATCH_S:g} s")
