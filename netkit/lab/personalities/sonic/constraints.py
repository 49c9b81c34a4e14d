"""Rules across leaves and rows: those of the models, and what the daemons behind them insist on."""

from collections import Counter
from collections.abc import Callable, Iterator

from netkit.lab.personalities.sonic.tables import View, parts, text

COLORS = ("green", "yellow", "red")


def broken_rules(tables: View) -> Iterator[str]:
    """Yield every rule the tables break."""
    for rule in _RULES:
        yield from rule(tables)


def _ports_are_unique(tables: View) -> Iterator[str]:
    ports = tables.get("PORT", {})
    lanes = Counter(lane for row in ports.values() for lane in str(row["lanes"]).split(","))
    aliases = Counter(str(row["alias"]) for row in ports.values() if "alias" in row)
    yield from (f"PORT: lane {lane} belongs to two ports" for lane, count in lanes.items() if count > 1)
    yield from (f"PORT: alias {alias} belongs to two ports" for alias, count in aliases.items() if count > 1)


def _members_are_not_routed(tables: View) -> Iterator[str]:
    routed = {parts(key)[0] for key in tables.get("INTERFACE", {})}
    seen: set[str] = set()
    for key in tables.get("VLAN_MEMBER", {}):
        port = parts(key)[1]
        if port in routed:
            yield f"VLAN_MEMBER|{key}: {port} is a router interface"
        if port in seen:
            yield f"VLAN_MEMBER|{key}: {port} is untagged in another VLAN already"
        seen.add(port)


def _addresses_have_a_base(tables: View) -> Iterator[str]:
    for table in ("INTERFACE", "VLAN_INTERFACE", "LOOPBACK_INTERFACE"):
        rows = tables.get(table, {})
        for key in rows:
            base = parts(key)[0]
            if base not in rows:
                yield f"{table}|{key}: the row {base} is missing"


def _vlan_numbers_fit(tables: View) -> Iterator[str]:
    for key, row in tables.get("VLAN", {}).items():
        if row.get("vlanid", key.removeprefix("Vlan")) != key.removeprefix("Vlan"):
            yield f"VLAN|{key}: vlanid is not the number of its name"


def _watchdog_follows_its_poll(tables: View) -> Iterator[str]:
    poll = int(text(tables, "PFC_WD", "GLOBAL", "POLL_INTERVAL", "0"))
    for key, row in tables.get("PFC_WD", {}).items():
        for leaf in ("detection_time", "restoration_time"):
            if leaf in row and int(str(row[leaf])) < poll:
                yield f"PFC_WD|{key}: {leaf} is shorter than the poll interval"


def _thresholds_are_in_order(tables: View) -> Iterator[str]:
    for key, row in tables.get("WRED_PROFILE", {}).items():
        for color in COLORS:
            low, high = row.get(f"{color}_min_threshold"), row.get(f"{color}_max_threshold")
            if high is not None and (low is None or int(str(high)) < int(str(low))):
                yield f"WRED_PROFILE|{key}: {color}_max_threshold needs a {color}_min_threshold not above it"


def _rates_are_in_order(tables: View) -> Iterator[str]:
    for key, row in tables.get("SCHEDULER", {}).items():
        cir, pir = int(str(row.get("cir", "0"))), int(str(row.get("pir", "0")))
        if "pir" in row and not 0 < cir <= pir:
            yield f"SCHEDULER|{key}: pir needs a cir above 0 and not above it"
        if row.get("type") == "STRICT" and "weight" in row:
            yield f"SCHEDULER|{key}: a strict scheduler takes no weight"


def _pools_fit_the_model(tables: View) -> Iterator[str]:
    is_dynamic = text(tables, "DEVICE_METADATA", "localhost", "buffer_model") == "dynamic"
    for key, row in tables.get("BUFFER_POOL", {}).items():
        if "percentage" in row and ("size" in row or not is_dynamic):
            yield f"BUFFER_POOL|{key}: percentage needs the dynamic buffer model and no size"
    for key, row in tables.get("BUFFER_PG", {}).items():
        if row["profile"] == "NULL" and not is_dynamic:
            yield f"BUFFER_PG|{key}: only the dynamic buffer model computes a profile"


def _management_vrf_is_there(tables: View) -> Iterator[str]:
    has_vrf = text(tables, "MGMT_VRF_CONFIG", "vrf_global", "mgmtVrfEnabled") == "true"
    for table in ("NTP", "SYSLOG_SERVER"):
        for key, row in tables.get(table, {}).items():
            if row.get("vrf") == "mgmt" and not has_vrf:
                yield f"{table}|{key}: the management VRF is not enabled"


def _snmp_users_have_their_secrets(tables: View) -> Iterator[str]:
    for key, row in tables.get("SNMP_USER", {}).items():
        needed = ("SNMP_USER_AUTH_TYPE", "SNMP_USER_AUTH_PASSWORD", "SNMP_USER_ENCRYPTION_TYPE")
        if row["SNMP_USER_TYPE"] == "Priv":
            yield from (f"SNMP_USER|{key}: Priv needs {leaf}" for leaf in needed if leaf not in row)


def _prefix_ranges_are_wide_enough(tables: View) -> Iterator[str]:
    for key in tables.get("PREFIX", {}):
        *_, prefix, lengths = parts(key)
        if lengths != "exact":
            low, high = map(int, lengths.split(".."))
            if not int(prefix.partition("/")[2]) <= low <= high <= 32:
                yield f"PREFIX|{key}: the lengths are out of range"


_RULES: tuple[Callable[[View], Iterator[str]], ...] = (
    _ports_are_unique,
    _members_are_not_routed,
    _addresses_have_a_base,
    _vlan_numbers_fit,
    _watchdog_follows_its_poll,
    _thresholds_are_in_order,
    _rates_are_in_order,
    _pools_fit_the_model,
    _management_vrf_is_there,
    _snmp_users_have_their_secrets,
    _prefix_ranges_are_wide_enough,
)
