"""The design of a switch, read from CONFIG_DB and, in split mode, frr.conf.

References are followed and names ignored, so that maps, profiles and schedulers may have any. Where ports differ in
what is one value in an intent, most ports count.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache

from netkit.hardware import Catalog
from netkit.platforms.bgp_reader import interface_address, is_address
from netkit.platforms.config import Config
from netkit.platforms.existing import (
    ExistingEcn,
    ExistingPort,
    ExistingQos,
    ExistingServices,
    ExistingSessions,
    ExistingSwitch,
    addresses_v6,
    most,
    number,
    numbers,
)
from netkit.platforms.frr.reply import session_timers
from netkit.platforms.secrets import SECRET
from netkit.platforms.sonic.router import SPLIT_MODES
from netkit.platforms.sonic.tables import CONTROL_LISTS, HIGHEST_PRIORITY

Row = Mapping[str, str]
Table = Mapping[str, Row]
Tables = Mapping[str, Table]
NOTHING: Table = {}
NO_ROW: Row = {}
BYTES_PER_S_PER_GBPS = 125_000_000
CONTROL_QUEUE = 7
DENIAL = {"PRIORITY", "PACKET_ACTION", "SRC_IP", "DST_IP"}
GENERATED = (("frr.conf",), ("BGP_NEIGHBOR",), ("DEVICE_METADATA", "localhost", "docker_routing_config_mode"))
"""What netkit leaves alone in the mode in which SONiC's own templates make the configuration of FRR."""
SYSLOG_PORT, SYSLOG_PROTOCOL = 514, "udp"
PORTS_OF_BREAKOUT = re.compile(r"(\d{1,2})x")
LENGTH = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)m")


def existing(config: Config) -> ExistingSwitch:
    tables = _tables(config)
    device = tables.get("DEVICE_METADATA", NOTHING).get("localhost", NO_ROW)
    mode = device.get("docker_routing_config_mode", "separated")
    is_split = mode in SPLIT_MODES or any(path[0] == "frr.conf" for path in config)
    is_generated = mode not in SPLIT_MODES and mode != "unified"
    timers = session_timers(config) if is_split else _unified_timers(tables)
    access_lists = _control_lists(tables)
    address, gateway = _management(tables)
    return ExistingSwitch(
        hostname=device.get("hostname", ""),
        models=_models(device.get("hwsku", ""), device.get("platform", "")),
        routing_mode="split" if is_split or is_generated else mode,
        generated=GENERATED if is_generated else (),
        asn=number(device.get("bgp_asn")),
        system_mac=device.get("mac", ""),
        management=address,
        management_gateway=gateway,
        allow=_allow(tables, access_lists.get(next(iter(CONTROL_LISTS)), "")),
        access_lists=access_lists,
        ports=tuple(_Ports(tables).read()),
        vlans=_vlans(tables),
        qos=_qos(tables),
        services=_services(tables, device),
        **asdict(timers),
        addresses_v6=addresses_v6(
            (name, address)
            for table, rows in tables.items()
            if table.endswith("INTERFACE")
            for name, _, address in (key.partition("|") for key in rows)
        ),
        gateways_v6=tuple(
            gateway
            for row in tables.get("MGMT_INTERFACE", NOTHING).values()
            if ":" in (gateway := row.get("gwaddr", ""))
        ),
    )


def _tables(config: Config) -> Tables:
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for path, value in config.items():
        if len(path) in {2, 3}:
            row = tables.setdefault(path[0], {}).setdefault(path[1], {})
            if len(path) == 3:
                row[path[2]] = value
    return tables


@cache
def _hardware() -> tuple[tuple[str, frozenset[str], str], ...]:
    """(model, its hwskus, its platform) of the shipped catalogue."""
    catalog, found = Catalog(), []
    for name in catalog.names("switches"):
        data = catalog.switch(name).platforms.get("sonic", {})
        hwsku = data.get("hwsku")
        hwskus = hwsku.values() if isinstance(hwsku, Mapping) else [hwsku]
        found.append((name, frozenset(map(str, hwskus)), str(data.get("platform"))))
    return tuple(found)


def _models(hwsku: str, platform: str) -> tuple[str, ...]:
    """The models with the hwsku; a chassis has more hwskus than the catalogue, but one platform."""
    named = tuple(name for name, hwskus, _ in _hardware() if hwsku and hwsku in hwskus)
    return named or tuple(name for name, _, known in _hardware() if platform and known == platform)


def _management(tables: Tables) -> tuple[str, str]:
    for key, row in tables.get("MGMT_INTERFACE", NOTHING).items():
        _, _, address = key.partition("|")
        if interface_address(address) is not None and "/" in address:
            return address, row.get("gwaddr", "")
    return "", ""


def _control_lists(tables: Tables) -> dict[str, str]:
    """Netkit's lists of the control plane, each with the first one that serves the same."""
    found: dict[str, str] = {}
    for own, (service, *_) in CONTROL_LISTS.items():
        for name, table in tables.get("ACL_TABLE", NOTHING).items():
            serves = table.get("type") == "CTRLPLANE" and service in re.split(r"\W+", table.get("services", ""))
            if serves and own not in found and name not in found.values():
                found[own] = name
    return found


def _allow(tables: Tables, name: str) -> tuple[str, ...]:
    """The sources that a list accepts; none where it has other rules."""
    rules = [row for key, row in tables.get("ACL_RULE", NOTHING).items() if key.partition("|")[0] == name]
    rules.sort(key=lambda row: -(number(row.get("PRIORITY")) or 0))
    fits = all(row.get("PACKET_ACTION") == "ACCEPT" and interface_address(row.get("SRC_IP", "")) for row in rules)
    return tuple(row["SRC_IP"] for row in rules) if fits else ()


def _denied(tables: Tables, port: str) -> tuple[tuple[int, str, str], ...]:
    """What the ingress list of a port drops, with the number that netkit's priority of the rule stands for."""
    lists = [
        name
        for name, table in tables.get("ACL_TABLE", NOTHING).items()
        if table.get("type") == "L3" and f'"{port}"' in table.get("ports", "") and table.get("stage") == "ingress"
    ]
    rules = [row for key, row in tables.get("ACL_RULE", NOTHING).items() if key.partition("|")[0] in lists[:1]]
    rules.sort(key=lambda row: -(number(row.get("PRIORITY")) or 0))
    if len(lists) != 1 or any(row.get("PACKET_ACTION") != "DROP" or row.keys() - DENIAL for row in rules):
        return ()
    return tuple(
        (HIGHEST_PRIORITY - (number(row.get("PRIORITY")) or 0), row.get("SRC_IP", ""), row.get("DST_IP", ""))
        for row in rules
    )


def _vlans(tables: Tables) -> dict[int, str]:
    found = {}
    for name, row in tables.get("VLAN", NOTHING).items():
        vlan = number(row.get("vlanid") or name.removeprefix("Vlan"))
        if vlan is not None:
            found[vlan] = name
    return found


def _unified_timers(tables: Tables) -> ExistingSessions:
    """Read the timers of most peer groups; CONFIG_DB has none for the BFD of an unnumbered peer."""
    instance = tables.get("BGP_GLOBALS", NOTHING).get("default", NO_ROW)
    groups = tables.get("BGP_PEER_GROUP", NOTHING)
    rows = [row for table in ("BGP_PEER_GROUP", "BGP_NEIGHBOR") for row in tables.get(table, NOTHING).values()]
    return ExistingSessions(
        keepalive_s=_first_number(most(row.get("keepalive") for row in rows), instance.get("keepalive")),
        hold_s=_first_number(most(row.get("holdtime") for row in rows), instance.get("holdtime")),
        connect_s=number(most(row.get("conn_retry") for row in rows)),
        limits={
            parts[1]: limit
            for key, row in tables.get("BGP_NEIGHBOR_AF", NOTHING).items()
            if len(parts := key.split("|")) > 1
            and is_address(parts[1])
            and (limit := number(row.get("max_prefix_limit")))
        },
        with_bfd=frozenset(
            name
            for key, row in tables.get("BGP_NEIGHBOR", NOTHING).items()
            if is_address(name := key.rpartition("|")[2])
            and "true" in {row.get("bfd"), groups.get(f"default|{row.get('peer_group_name')}", NO_ROW).get("bfd")}
        ),
    )


def _first_number(*texts: str | None) -> int | None:
    return next((found for found in map(number, texts) if found is not None), None)


def _cells(table: Table) -> Iterator[tuple[str, int, Row]]:
    """Yield (port, number, row) of a table whose keys are ports and queues; both may be lists."""
    for key, row in table.items():
        ports, _, queues = key.partition("|")
        for port in ports.split(","):
            for one in numbers(queues):
                yield port, one, row


def _reference(row: Row, field: str) -> str:
    """The name in a field; up to 201911 it was [TABLE|name]."""
    return row.get(field, "").strip("[]").rpartition("|")[2]


class _Ports:
    """The ports, with their values from other tables."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.rows = tables.get("PORT", NOTHING)
        lengths = tables.get("CABLE_LENGTH", NOTHING).values()
        self.lengths = {port: text for row in lengths for port, text in row.items()}
        self.vlans = dict(self._untagged())
        self.splits = dict(self._splits())
        self.queues = {(port, queue): row for port, queue, row in _cells(tables.get("QUEUE", NOTHING))}
        profiles = tables.get("BUFFER_PROFILE", NOTHING)
        self.headroom = {
            port: xoff
            for port, _, row in _cells(tables.get("BUFFER_PG", NOTHING))
            if (xoff := number(profiles.get(_reference(row, "profile"), NO_ROW).get("xoff")))
        }

    def read(self) -> Iterator[ExistingPort]:
        for name, row in self.rows.items():
            speed = _gbps(row)
            lossless = _lossless(self.tables.get("PORT_QOS_MAP", NOTHING).get(name, NO_ROW))
            yield ExistingPort(
                name=name,
                description=row.get("description", ""),
                split=self.splits.get(name, ""),
                lanes=len(row["lanes"].split(",")) if row.get("lanes") else None,
                speed_gbps=speed,
                mtu_bytes=number(row.get("mtu")),
                vlan=self.vlans.get(name),
                cable_m=_metres(self.lengths.get(name, "")),
                is_lossless=bool(lossless),
                ecn=next(filter(None, (self._ecn(name, queue) for queue in lossless)), None),
                xoff_bytes=self.headroom.get(name),
                denied=_denied(self.tables, name),
                alias=row.get("alias", ""),
            )

    def _untagged(self) -> Iterator[tuple[str, int]]:
        vlans = {name: vlan for vlan, name in _vlans(self.tables).items()}
        for key, row in self.tables.get("VLAN_MEMBER", NOTHING).items():
            vlan, _, port = key.partition("|")
            if row.get("tagging_mode") == "untagged" and vlan in vlans:
                yield port, vlans[vlan]

    def _splits(self) -> Iterator[tuple[str, str]]:
        """Yield how the cage of each port is split.

        The index is that of the front panel: ports that share it share a cage. Without one, BREAKOUT_CFG counts, under
        the name of the first port.
        """
        cages: dict[str, list[str]] = {}
        for name, row in self.rows.items():
            if row.get("index"):
                cages.setdefault(row["index"], []).append(name)
        for names in cages.values():
            speeds = {_gbps(self.rows[name]) for name in names}
            speed = speeds.pop()
            if not speeds and speed:
                for name in names:
                    yield name, f"{len(names)}x{speed}G"
        modes = self.tables.get("BREAKOUT_CFG", NOTHING)
        counts = {}
        for name, row in modes.items():
            match, first = PORTS_OF_BREAKOUT.match(row.get("brkout_mode", "")), _port_number(name)
            if match and first is not None:
                counts[first] = int(match[1])
        for name, row in self.rows.items():
            place, speed = _port_number(name), _gbps(row)
            first = max((first for first in counts if place is not None and first <= place), default=None)
            if not row.get("index") and first is not None and speed:
                yield name, f"{counts[first]}x{speed}G"

    def _ecn(self, port: str, queue: int) -> ExistingEcn | None:
        name = _reference(self.queues.get((port, queue), NO_ROW), "wred_profile")
        row = self.tables.get("WRED_PROFILE", NOTHING).get(name, NO_ROW)
        low, high = number(row.get("green_min_threshold")), number(row.get("green_max_threshold"))
        percent = number(row.get("green_drop_probability"))
        is_marking = "green" in row.get("ecn", "") or row.get("ecn") == "ecn_all"
        if low is None or high is None or percent is None or not is_marking:
            return None
        return ExistingEcn(low, high, percent)


def _port_number(name: str) -> int | None:
    return number(name.removeprefix("Ethernet"))


def _gbps(row: Row) -> int | None:
    speed = number(row.get("speed"))
    return speed // 1000 if speed and speed % 1000 == 0 else None


def _metres(text: str) -> float | None:
    match = LENGTH.fullmatch(text)
    return float(match[1]) if match else None


def _lossless(row: Row) -> tuple[int, ...]:
    return tuple(sorted({one for one in numbers(row.get("pfc_enable", "")) if one < 8}))


def _map(tables: Tables, table: str, field: str) -> dict[int, int]:
    """The map that most ports have; else that of all of the switch, else the only one."""
    rows, maps = tables.get("PORT_QOS_MAP", NOTHING), tables.get(table, NOTHING)
    named = most(_reference(row, field) or None for key, row in rows.items() if key != "global")
    name = named or _reference(rows.get("global", NO_ROW), field) or (next(iter(maps)) if len(maps) == 1 else "")
    pairs = ((number(key), number(value)) for key, value in maps.get(name, NO_ROW).items())
    return {key: value for key, value in pairs if key is not None and value is not None}


def _qos(tables: Tables) -> ExistingQos:
    queues = _map(tables, "TC_TO_QUEUE_MAP", "tc_to_queue_map")
    classes = _map(tables, "DSCP_TO_TC_MAP", "dscp_to_tc_map")
    dscps = {dscp: queues.get(one, one) for dscp, one in classes.items()}
    # The CPU's own packets have a queue that no DSCP leads to.
    used = set(dscps.values()) or set(range(CONTROL_QUEUE))
    schedulers = {queue: row for queue, row in _schedulers(tables).items() if queue in used}
    ports = [row for key, row in tables.get("PORT_QOS_MAP", NOTHING).items() if key != "global"]
    strict = tuple(sorted(queue for queue, row in schedulers.items() if row.get("type") == "STRICT"))
    weights = {
        queue: weight
        for queue, row in sorted(schedulers.items())
        if row.get("type") in {"DWRR", "WRR"} and (weight := number(row.get("weight"))) is not None
    }
    watchdog = tables.get("PFC_WD", NOTHING)
    timers = [row for key, row in watchdog.items() if key != "GLOBAL"]
    pool = tables.get("BUFFER_POOL", NOTHING).get("ingress_lossless_pool", NO_ROW)
    return ExistingQos(
        dscp_to_priority=dscps,
        lossless=tuple(sorted({one for row in ports for one in _lossless(row)})),
        strict=strict,
        weights=weights,
        cnp_shape_percent=_shape(tables, strict),
        watchdog_poll_ms=number(watchdog.get("GLOBAL", NO_ROW).get("POLL_INTERVAL")),
        watchdog_detection_ms=number(most(row.get("detection_time") for row in timers)),
        watchdog_restoration_ms=number(most(row.get("restoration_time") for row in timers)),
        watchdog_action=most(row.get("action") for row in timers) or "",
        pool_percent=number(pool.get("percentage")),
    )


def _schedulers(tables: Tables) -> dict[int, Row]:
    """The scheduler of each queue, as most ports have it."""
    rows = tables.get("SCHEDULER", NOTHING)
    found: dict[int, Counter[str]] = {}
    for _, queue, row in _cells(tables.get("QUEUE", NOTHING)):
        if (name := _reference(row, "scheduler")) in rows:
            found.setdefault(queue, Counter())[_kind(rows[name])] += 1
    kinds = {_kind(row): row for row in rows.values()}
    return {queue: kinds[counted.most_common(1)[0][0]] for queue, counted in found.items()}


def _kind(row: Row) -> str:
    """What schedulers are compared by: a rate depends on the speed of the port."""
    return f"{row.get('type')} {row.get('weight')}"


def _shape(tables: Tables, strict: Iterable[int]) -> int | None:
    """The cap of strict queues as a share of the port, as most ports have it."""
    rows, ports = tables.get("SCHEDULER", NOTHING), tables.get("PORT", NOTHING)
    wanted, found = frozenset(strict), []
    for port, queue, row in _cells(tables.get("QUEUE", NOTHING)):
        scheduler = rows.get(_reference(row, "scheduler"), NO_ROW)
        rate, speed = number(scheduler.get("pir")), _gbps(ports.get(port, NO_ROW))
        if queue in wanted and rate and speed and scheduler.get("meter_type") != "packets":
            found.append(round(100 * rate / (speed * BYTES_PER_S_PER_GBPS)))
    return most(percent for percent in found if 1 <= percent <= 100)


def _services(tables: Tables, device: Row) -> ExistingServices:
    snmp = tables.get("SNMP", NOTHING)
    return ExistingServices(
        ntp=tuple(tables.get("NTP_SERVER", NOTHING)),
        dns=tuple(tables.get("DNS_NAMESERVER", NOTHING)),
        syslog=tuple(
            (key, number(row.get("port")) or SYSLOG_PORT, row.get("protocol") or SYSLOG_PROTOCOL)
            for key, row in tables.get("SYSLOG_SERVER", NOTHING).items()
        ),
        snmp_users=tuple(key for key in tables.get("SNMP_USER", NOTHING) if key != SECRET),
        snmp_location=snmp.get("LOCATION", NO_ROW).get("Location", ""),
        snmp_contact=snmp.get("CONTACT", NO_ROW).get("Contact", ""),
        timezone=device.get("timezone", ""),
    )


EXISTING = existing
