"""How changes are applied to a SONiC switch: by patch if its generic updater accepts them, else by a full reload.

What the updater accepts was found by running it (202405, 202411, 202505, 202511) with the hwskus of `LISTED`, and by
reading its rules (202305 to 202605). On other hwskus it refuses every change in the tables that it checks by ASIC.
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
DERIVED = "derived"
FILTER = "the filter for packets from outside changes"
MANAGEMENT = "netkit's own access changes: the timer reverts a mistake"
FLAP = "the updater shuts the port and opens it again"
SHARED = "buffers or queues of every port change"

# Tables whose rows cannot change while the port is up.
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
    """The port that a row belongs to: the rows of a new port are new with it."""
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
        Rule(("PORT", "*", "description"), Risk.NONE, source=DERIVED),
        Rule(("PORT", "*", "alias"), Risk.LOW, "LLDP neighbours see another port", DERIVED),
        Rule(("PORT", "*", "index"), Risk.LOW, source=DERIVED),
        Rule(("PORT", "*"), Risk.PORT, "the link goes down and up", DERIVED),
        Rule(("BREAKOUT_CFG", "*"), Risk.PORT, "the ports of the cage are created again", DERIVED),
        Rule(("PORT_QOS_MAP", "global"), Risk.BUFFER, SHARED, DERIVED),
        *(Rule((table, "*"), Risk.PORT, FLAP, GCU) for table in FLAPPING),
        Rule(("CABLE_LENGTH", "*"), Risk.BUFFER, "the headroom of the port is reallocated", DERIVED),
        *(Rule((table,), Risk.BUFFER, SHARED, DERIVED) for table in BUFFERS),
        *(Rule((table,), Risk.LOW, source=DERIVED) for table in HARMLESS),
        Rule(("BGP_*_AF", "*|ipv6_unicast", "admin_status"), Risk.SESSION, "the session restarts", DERIVED),
        *(Rule((table,), Risk.LOW, "routes are re-evaluated", DERIVED) for table in POLICY),
        Rule(("SWITCH_HASH",), Risk.LOW, "flows move between equal paths", DERIVED),
        Rule(("INTERFACE", "*"), Risk.SESSION, "sessions that use the address restart", DERIVED),
        Rule(("LOOPBACK_INTERFACE",), Risk.SESSION, "the router ID and its address", DERIVED),
        Rule(("VLAN", "*", "description"), Risk.NONE, source=DERIVED),
        Rule(("VLAN", "*"), Risk.LOW, "a VLAN without members yet", DERIVED, when="added"),
        Rule(("VLAN", "*"), Risk.PORT, "hosts lose their VLAN", DERIVED),
        Rule(("VLAN_MEMBER", "*"), Risk.PORT, "the port changes its VLAN", DERIVED),
        Rule(("VLAN_INTERFACE", "*"), Risk.SESSION, "the gateway changes", DERIVED),
        Rule(("BGP_NEIGHBOR", "*", "name"), Risk.NONE, source=DERIVED),
        Rule(("BGP_NEIGHBOR", "*"), Risk.SESSION, "the session restarts", YANG),
        Rule(("BGP_PEER_GROUP", "*"), Risk.SESSION, "the sessions of the group restart", DERIVED),
        Rule(("BGP_GLOBALS", "*"), Risk.SESSION, "every BGP session restarts", DERIVED),
        Rule((*METADATA, "hostname"), Risk.LOW, "LLDP neighbours see another name", DERIVED),
        Rule((*METADATA, "timezone"), Risk.LOW, source=DERIVED),
        Rule((*METADATA, "default_*"), Risk.LOW, "applies to what is set up afterwards", DERIVED),
        Rule((*METADATA, "bgp_*"), Risk.SESSION, "every BGP session restarts", DERIVED),
        Rule(METADATA, Risk.REBOOT, "the containers restart", DERIVED),
        Rule(("STATIC_ROUTE",), Risk.LOW, "routes change", DERIVED),
        Rule(("ACL_*", "NETKIT-EDGE-*"), Risk.LOW, FILTER, DERIVED),
        Rule(("ACL_*",), Risk.LOW, MANAGEMENT, DERIVED),
        Rule(("MGMT_*",), Risk.LOW, MANAGEMENT, DERIVED),
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
"""Also fields of neighbours, but the updater removes and adds those rows by itself."""
NEVER_REMOVED = (("PFC_WD", "GLOBAL"), ("LOOPBACK_INTERFACE", "Loopback0"))
READ_AT_START = ("docker_routing_config_mode", "buffer_model", "frr_mgmt_framework_config", "synchronous_mode", "type")
INSTALLED = ("hwsku", "platform")

# Ports that flap → seconds of one patch, measured with the real sorter on a PC, a 64-port configuration.
PATCH_S = ((1, 1.5), (4, 6.2), (16, 46.0), (64, 593.0))
LONGEST_PATCH_S = 60.0

PATCH = "config apply-patch, with a timed rollback to a checkpoint"
RELOAD = "validate, write {}, config reload, with a timed reload of the previous files"
ROUTING = "frr-reload.py in the bgp container loads frr.conf into FRR, line by line"
OUTAGE = "config reload: every container stops and starts; the switch forwards nothing for minutes"


def strategy(situation: Situation) -> Strategy:
    """Choose a patch if the generic updater accepts it in time, else a reload."""
    if not situation.changes:
        return Strategy(NOTHING)
    tables = [change for change in situation.changes if change.path[0] != "frr.conf"]
    routing = (ROUTING,) if len(tables) < len(situation.changes) else ()
    installed = [change for change in tables if change.path[0] == "DEVICE_METADATA" and change.path[-1] in INSTALLED]
    if any(not change.is_addition for change in installed):
        names = ", ".join(change.path[-1] for change in installed)
        return Strategy(REFUSED, reasons=(f"{names}: the switch is installed with another one; reinstall it",))
    reasons = tuple(dict.fromkeys(_refusals(tables, situation)))
    of_ports = [change for change in tables if change.path[0] in FLAPPING and len(change.path) > 1]
    flapping = sorted({change.path[1].partition("|")[0] for change in of_ports if change.path[1] != "global"} - {""})
    seconds = patch_s(len(flapping))
    if seconds > LONGEST_PATCH_S:
        reasons += (f"a patch that flaps {len(flapping)} ports takes the updater about {seconds:.0f} s",)
    if reasons:
        # The bgp container reads frr.conf when it starts, so it has to be there before.
        files = "config_db.json and frr.conf" if routing else "config_db.json"
        return Strategy("reload", (RELOAD.format(files),), (OUTAGE,), reasons, Risk.REBOOT)
    if not tables:
        return Strategy("patch", routing)
    return Strategy("patch", (PATCH, *routing), tuple(_costs(tables, flapping, situation)))


def _costs(changes: list[Change], flapping: list[str], situation: Situation) -> Iterator[str]:
    if flapping:
        yield f"the updater shuts these ports and opens them again, one after the other: {', '.join(flapping)}"
    if any(change.path[0] == "PORT" and change.path[-1] == "lanes" for change in changes):
        yield "ports are added or removed by patch: unverified; if the updater refuses it, nothing is changed"
    # the updater accepts some patches in one direction only
    undo = [Change(change.path, change.intended, change.running) for change in changes]
    swapped = Situation(tuple(undo), situation.intended, situation.running, situation.version)
    for reason in dict.fromkeys(_refusals(undo, swapped)):
        yield f"reverting, by rollback or for want of a confirmation, takes a config reload with its outage: {reason}"


def patch_s(ports: int) -> float:
    """Estimate the time of a patch that flaps some ports: linear between measurements, quadratic beyond."""
    if ports == 0:
        return 0.0
    for (few, low), (many, high) in pairwise(PATCH_S):
        if ports <= many:
            return low + (high - low) * (ports - few) / (many - few)
    most, seconds = PATCH_S[-1]
    return seconds * (ports / most) ** 2


def _refusals(changes: list[Change], situation: Situation) -> Iterator[str]:
    """Yield the reasons for which the generic updater would refuse a change."""
    version = version_key(situation.version)
    hwsku = situation.intended.get(("DEVICE_METADATA", "localhost", "hwsku"), "")
    since = next((branch for pattern, branch in LISTED.items() if fnmatchcase(hwsku, pattern)), "")
    is_listed = bool(since) and version >= version_key(since)
    if {change.path[0] for change in changes} & {"PFC_WD"} and not any(
        path[0] == "PFC_WD" for path in situation.running
    ):
        yield "PFC_WD: the updater cannot create this table"
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
    """Whether an existing value changes."""
    is_removal: bool
    is_row: bool
    """Whether its whole row is added or removed, in a table that has rows before and after."""
    is_listed: bool
    """Whether the updater knows the ASIC by its hwsku."""
    is_free: bool
    """Whether this release accepts changes of more tables."""


def _is_accepted_wred(edit: Edit) -> bool:
    """Whether a change of WRED_PROFILE is one of the few that every release accepts."""
    return edit.is_listed and edit.is_change and edit.key == WRED[0] and edit.field in WRED[1]


def _is_accepted_profile(edit: Edit) -> bool:
    is_known = edit.is_free or any(char.isdecimal() for char in edit.key)
    return _is_free_row(edit) or (edit.is_change and edit.field in PROFILE_FIELDS and is_known)


RULES: tuple[tuple[Callable[[Edit], bool], str], ...] = (
    (lambda e: e.is_removal and (e.table, e.key) in NEVER_REMOVED, "{table}|{key}: the updater never removes it"),
    (
        lambda e: e.table in BY_ASIC and not e.is_listed and not _is_free_row(e),
        "{table}: the updater refuses every change of it on this hwsku",
    ),
    (
        lambda e: e.table == "WRED_PROFILE" and not e.is_free and not _is_accepted_wred(e),
        "{table}: before 202511 the updater changes only green thresholds and probability of AZURE_LOSSLESS",
    ),
    (
        lambda e: e.table == "BUFFER_POOL" and (e.is_free or not e.is_change or e.field not in POOLS.get(e.key, ())),
        "{table}|{key}: the updater refuses this change of a pool",
    ),
    (
        lambda e: e.table == "BUFFER_PROFILE" and not _is_accepted_profile(e),
        "{table}|{key}: the updater refuses this change of a profile",
    ),
    (
        lambda e: e.is_change and e.field in FIXED_AT_CREATION.get(e.table, ()),
        "{table}|{key}: {field} is fixed when the row is created",
    ),
    (
        lambda e: e.table == "BREAKOUT_CFG" and e.is_change,
        "{table}: no patch is known to replace ports",
    ),
    (
        lambda e: e.table == "DEVICE_METADATA" and e.field in READ_AT_START,
        "{table}: {field} is read when the containers start",
    ),
)
"""What the updater refuses, and the message; the first match counts."""


def _refusal(change: Change, version: tuple[int, ...], rows: tuple[Rows, Rows], *, is_listed: bool) -> Iterator[str]:
    table, key, field = (*change.path, "", "")[:3]
    is_change = not change.is_addition and not change.is_removal
    before, after = (one.get(table, frozenset[str]()) for one in rows)
    is_row = bool(before and after) and (key in before) != (key in after)
    edit = Edit(table, key, field, is_change, change.is_removal, is_row, is_listed, is_free=version >= FREE_SINCE)
    reasons = (text.format(table=table, key=key, field=field) for is_refused, text in RULES if is_refused(edit))
    yield from islice(reasons, 1)


def _is_free_row(edit: Edit) -> bool:
    """Whether a whole row is added or removed that the updater accepts on any ASIC."""
    return edit.table == "BUFFER_PROFILE" and edit.is_free and edit.is_row


def constraints() -> Iterator[Constraint]:
    for table in FLAPPING:
        yield Constraint(table, "by patch: the updater shuts the port and opens it again")
    listed = ", ".join(LISTED)
    for table in BY_ASIC:
        yield Constraint(table, f"config reload on a hwsku that the updater does not list; it lists {listed}")
    yield Constraint("WRED_PROFILE", "config reload before 202511, but for green thresholds of AZURE_LOSSLESS")
    yield Constraint("BUFFER_POOL", f"config reload, but for sizes of {', '.join(POOLS)} before 202511")
    yield Constraint("BUFFER_PROFILE", f"config reload, but for {' and '.join(PROFILE_FIELDS)}; rows from 202511")
    for table, key in NEVER_REMOVED:
        yield Constraint(f"{table}|{key}", "config reload to remove it: the updater never removes it")
    for table, names in FIXED_AT_CREATION.items():
        yield Constraint(f"{table}: {', '.join(names)}", "config reload: fixed when the row is created")
    yield Constraint("BREAKOUT_CFG", "config reload: ports are replaced")
    yield Constraint(f"DEVICE_METADATA: {', '.join(READ_AT_START)}", "config reload: read when the containers start")
    yield Constraint(f"DEVICE_METADATA: {', '.join(INSTALLED)}", "refused: the switch is installed with it")
    yield Constraint("any patch", f"config reload if the updater would take longer than {LONGEST_PATCH_S:g} s")
