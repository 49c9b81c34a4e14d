"""The databases of a switch, derived from configuration and hardware; `sonic-db-cli`. Only CONFIG_DB is writable."""

import fnmatch
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from netkit.lab.agents import lldp_daemon
from netkit.lab.personalities.sonic.commands import (
    LLDP_COMMAND,
    Commands,
    SonicArguments,
    SonicCommand,
    SonicUsageError,
    serial,
)
from netkit.lab.personalities.sonic.switch import cable_length_m
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import SEPARATOR, natural, parts, text
from netkit.lab.personality import Call, Elem, GnmiLeaf
from netkit.lab.reading import SwitchPortReading, TransceiverReading
from netkit.lab.routing import NEVER, link_changes
from netkit.lab.state import PRIORITIES

DYNAMIC = "NULL"
"""The profile name that lets the dynamic buffer model compute the profile."""
Fields = Mapping[str, str]


def buffers(system: SonicSystem) -> Mapping[str, Fields]:
    """The buffer profiles, and the profile of each priority group."""
    found: dict[str, Fields] = {}
    for name, row in system.running.get("BUFFER_PROFILE", {}).items():
        found[f"BUFFER_PROFILE_TABLE:{name}"] = {leaf: str(value) for leaf, value in row.items()}
    for key, row in system.running.get("BUFFER_PG", {}).items():
        port, groups = parts(key)
        profiles = dict(_dynamic_profile(system, port)) if row.get("profile") == DYNAMIC else {}
        name = next(iter(profiles), str(row.get("profile", "")))
        if name != DYNAMIC:
            found[f"BUFFER_PG_TABLE:{port}:{groups}"] = {"profile": name}
        found |= {f"BUFFER_PROFILE_TABLE:{profile}": fields for profile, fields in profiles.items()}
    return found


def _dynamic_profile(system: SonicSystem, port: str) -> Iterator[tuple[str, Fields]]:
    """Yield the dynamic profile for a port's speed and cable; none if the vendor's table has no row for it."""
    speed, cable_m = int(text(system.running, "PORT", port, "speed", "0")), cable_length_m(system.running, port)
    threshold = text(system.running, "DEFAULT_LOSSLESS_BUFFER_PARAMETER", "AZURE", "default_dynamic_th", "0")
    for row in system.switch.model.headroom_rows:
        if row.speed_gbps * 1000 == speed and row.cable_m == cable_m:
            yield (
                f"pg_lossless_{speed}_{cable_m:g}m_profile",
                {
                    "pool": "ingress_lossless_pool",
                    "size": str(row.size_bytes),
                    "xon": str(row.xon_bytes),
                    "xoff": str(row.xoff_bytes),
                    "dynamic_th": threshold,
                },
            )
            return


Hashes = Mapping[str, Mapping[str, str]]
Sources = Mapping[str, Callable[[SonicSystem], Hashes]]
"""Prefix of keys → the function that returns those rows."""
FIRST_WITH_SPLIT_STATUS = 202505
MEASURES_PAUSES = "Spectrum"
"""The ASICs whose watchdog polls pause durations and queue occupancy."""
LITERAL = re.compile(r"[^*?\[\\]*")
KINDS = {"port": 0x1, "queue": 0x15, "group": 0x1A}
COPIED_LEAVES = ("alias", "lanes", "fec", "description")
"""Leaves of the port's configuration that its APPL_DB row repeats."""


def config_db(system: SonicSystem) -> Hashes:
    """CONFIG_DB as in redis: a list has `@` after its name, and an empty row the field NULL."""
    found: dict[str, Mapping[str, str]] = {}
    for table, rows in system.running.items():
        for key, row in rows.items():
            fields = {
                f"{leaf}@" if isinstance(value, list) else leaf: (value if isinstance(value, str) else ",".join(value))
                for leaf, value in row.items()
            }
            found[f"{table}|{key}"] = fields or {"NULL": "NULL"}
    return found


FIRST_WITH_ECN_COUNTERS = 202505


def counts_ecn(system: SonicSystem, kind: str) -> bool:
    """Whether ECN marks per `QUEUE` or `PORT` are supported by the branch and enabled."""
    status = text(system.running, "FLEX_COUNTER_TABLE", f"WRED_ECN_{kind}", "FLEX_COUNTER_STATUS")
    return system.branch >= FIRST_WITH_ECN_COUNTERS and status == "enable"


def watched_queues(system: SonicSystem, port: str) -> list[int]:
    """The queues the PFC watchdog monitors on a port."""
    row = system.running.get("PFC_WD", {}).get(port, {})
    queues = text(system.running, "PORT_QOS_MAP", port, "pfcwd_sw_enable")
    return [int(queue) for queue in queues.split(",") if queue] if "detection_time" in row else []


def counters_db(system: SonicSystem) -> Hashes:
    """COUNTERS_DB: name maps to object IDs, and counters per object ID."""
    found: dict[str, dict[str, str]] = {
        "COUNTERS_PORT_NAME_MAP": {},
        "COUNTERS_QUEUE_NAME_MAP": {},
        "COUNTERS_PG_NAME_MAP": {},
    }
    for reading in system.node.ports():
        _add_port(found, system, reading)
    return found


def _add_port(found: dict[str, dict[str, str]], system: SonicSystem, reading: SwitchPortReading) -> None:
    number = sorted(system.node.kernel_names, key=natural).index(reading.name)
    port = _oid("port", number)
    counts = dict(port_counts(reading))
    if system.switch.model.asic.startswith(MEASURES_PAUSES) and watched_queues(system, reading.name):
        times = {index: priority.rx_pause_us for index, priority in enumerate(reading.priorities)}
        counts |= {f"{PORT}PFC_{index}_RX_PAUSE_DURATION_US": pause_us for index, pause_us in times.items()}
    if counts_ecn(system, "PORT"):
        counts[f"{PORT}ECN_MARKED_PACKETS"] = sum(queue.ecn_marked_packets for queue in reading.queues)
    found["COUNTERS_PORT_NAME_MAP"][reading.name] = port
    found[f"COUNTERS:{port}"] = _text(counts)
    rate = system.rates.of(reading)
    found[f"RATES:{port}"] = {
        "RX_BPS": str(rate.rx_bytes_per_s),
        "TX_BPS": str(rate.tx_bytes_per_s),
        "FEC_PRE_BER": str(reading.fec.pre_fec_ber),
        "FEC_POST_BER": str(reading.fec.effective_ber),
    }
    for index in range(len(reading.queues)):
        queue = _oid("queue", number * PRIORITIES + index)
        found["COUNTERS_QUEUE_NAME_MAP"][f"{reading.name}:{index}"] = queue
        queue_fields = _text(queue_counts(reading, index, has_ecn=counts_ecn(system, "QUEUE")))
        found[f"COUNTERS:{queue}"] = {**queue_fields, **_watchdog(system, reading, index)}
        found[f"USER_WATERMARKS:{queue}"] = _text(queue_watermarks(reading, index))
    for index in range(len(reading.buffers)):
        group = _oid("group", number * PRIORITIES + index)
        found["COUNTERS_PG_NAME_MAP"][f"{reading.name}:{index}"] = group
        found[f"COUNTERS:{group}"] = _text(group_counts(reading, index))
        found[f"USER_WATERMARKS:{group}"] = _text(group_watermarks(reading, index))


def _watchdog(system: SonicSystem, reading: SwitchPortReading, queue: int) -> Mapping[str, str]:
    if queue not in watched_queues(system, reading.name):
        return {}
    found, row = reading.watchdogs[queue], system.running["PFC_WD"][reading.name]
    is_measured = system.switch.model.asic.startswith(MEASURES_PAUSES)
    size = {f"{QUEUE}CURR_OCCUPANCY_BYTES": str(reading.queues[queue].occupancy_bytes)} if is_measured else {}
    return {
        **size,
        "PFC_WD_STATUS": "stormed" if found.is_stormed else "operational",
        "PFC_WD_ACTION": str(row.get("action", "drop")),
        "PFC_WD_DETECTION_TIME": f"{int(str(row['detection_time'])) * 1000}",
        "PFC_WD_RESTORATION_TIME": f"{int(str(row.get('restoration_time', '0'))) * 1000}",
        "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": str(found.storms_detected),
        "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": str(found.storms_restored),
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": str(found.dropped_packets),
    }


def _oid(kind: str, number: int) -> str:
    return f"oid:0x{KINDS[kind]:x}{number:012x}"


def _text(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def _port_states(system: SonicSystem) -> Hashes:
    speeds = sorted({split.speed_gbps * 1000 for split in system.switch.model.splits}, reverse=True)
    return {
        f"PORT_TABLE|{reading.name}": {
            "state": "ok",
            "netdev_oper_status": "up" if reading.is_up else "down",
            "admin_status": "up" if reading.is_enabled else "down",
            "mtu": str(reading.mtu_bytes),
            "speed": str(reading.speed_gbps * 1000),
            "fec": reading.fec.mode or "N/A",
            "supported_fecs": "none,rs,fc",
            "supported_speeds": ",".join(map(str, speeds)),
        }
        for reading in system.node.ports()
    }


def module_of(system: SonicSystem, reading: SwitchPortReading) -> TransceiverReading | None:
    """The transceiver of a port; xcvrd finds its cage by the port's `index`."""
    return reading.module if text(system.running, "PORT", reading.name, "index") else None


def _modules(system: SonicSystem) -> Hashes:
    """The transceiver tables; later branches split the status into several tables."""
    found: dict[str, Mapping[str, str]] = {}
    is_split = system.branch >= FIRST_WITH_SPLIT_STATUS
    for reading in system.node.ports():
        module = module_of(system, reading)
        if module:
            found[f"TRANSCEIVER_INFO|{reading.name}"] = info(module)
            found[f"TRANSCEIVER_DOM_SENSOR|{reading.name}"] = sensors(module)
            found[f"TRANSCEIVER_DOM_THRESHOLD|{reading.name}"] = thresholds(module)
            tables = split_status(module) if is_split else {"STATUS": status(module)}
            found |= {f"TRANSCEIVER_{table}|{reading.name}": row for table, row in tables.items()}
    return found


def _ports(system: SonicSystem) -> Hashes:
    changes = link_changes(system.node)
    found: dict[str, Mapping[str, str]] = {}
    for reading in system.node.ports():
        configured = system.running.get("PORT", {}).get(reading.name, {})
        fields = {leaf: str(configured[leaf]) for leaf in COPIED_LEAVES if leaf in configured}
        fields |= {
            "oper_status": "up" if reading.is_up else "down",
            "admin_status": "up" if reading.is_enabled else "down",
            "flap_count": str(reading.carrier_changes),  # counts both directions
        }
        # UTC; a field is absent until its first change.
        last = changes.get(reading.name, NEVER)
        for name, at_s in (("last_down_time", last.went_s), ("last_up_time", last.came_s)):
            if at_s is not None:
                fields[name] = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(at_s))
        fields |= {"speed": str(reading.speed_gbps * 1000), "mtu": str(reading.mtu_bytes)}
        found[f"PORT_TABLE:{reading.name}"] = fields
    return found


def _lldp_entries(system: SonicSystem) -> Hashes:
    return {
        f"LLDP_ENTRY_TABLE:{one.interface}": {
            "lldp_rem_sys_name": one.chassis.name,
            "lldp_rem_chassis_id": one.chassis.identifier,
            "lldp_rem_port_id": one.port,
            "lldp_rem_port_desc": one.port_description,
        }
        for one in lldp_daemon.neighbors(system.node.run(*LLDP_COMMAND).stdout)
    }


DATABASES: Mapping[str, Sources] = {
    "CONFIG_DB": {"": config_db},
    "COUNTERS_DB": {"": counters_db},
    "STATE_DB": {
        "CHASSIS_INFO|": lambda system: {
            "CHASSIS_INFO|chassis 1": {
                "serial": serial(system),
                "model": system.switch.model.name,
                "revision": "N/A",
            }
        },
        "PORT_TABLE|": _port_states,
        "TRANSCEIVER_": _modules,
    },
    "APPL_DB": {"PORT_TABLE:": _ports, "LLDP_ENTRY_TABLE:": _lldp_entries, "BUFFER_": buffers},
}


def rows(system: SonicSystem, database: str, pattern: str) -> Hashes:
    """The rows that a key or pattern can match; some tables cost a process, so others are skipped."""
    literal = LITERAL.match(pattern)
    start = literal[0] if literal else ""
    found: dict[str, Mapping[str, str]] = {}
    for prefix, source in DATABASES[database].items():
        if prefix.startswith(start) or start.startswith(prefix):
            found |= source(system)
    return found


NO_LIMIT = 10_000
DEFAULT_DATABASE = "APPL_DB"
VERBS = ("keys", "hgetall", "hget", "del")


def _answer(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    if line.arguments == ("PING",):
        call.out("PONG\n")
        return
    if len(line.arguments) < 2:
        raise SonicUsageError("a database and a command are required")
    name, verb, *words = line.arguments
    if name not in DATABASES:
        raise SonicUsageError(f"Invalid database name input : '{name}'")
    match verb.lower():
        case "keys":
            pattern = words[0] if words else "*"
            keys = (key for key in rows(system, name, pattern) if fnmatch.fnmatchcase(key, pattern))
            call.out("\n".join(keys) + "\n")
        case "hgetall" | "hget" if not words:
            raise SonicUsageError("wrong number of arguments")
        case "hgetall":
            call.out(f"{dict(rows(system, name, words[0]).get(words[0], {}))}\n")
        case "hget":
            row = rows(system, name, words[0]).get(words[0], {})
            call.out(f"{row.get(words[1], '') if len(words) > 1 else ''}\n")
        case "del" if name == "CONFIG_DB":
            call.out(f"{_delete(system, words)}\n")
        case _:
            raise SonicUsageError(f"the lab supports {', '.join(VERBS)}, and writes only to CONFIG_DB")


def _delete(system: SonicSystem, keys: Sequence[str]) -> int:
    tables, count = system.edited(), 0
    for name in keys:
        table, separator, key = name.partition(SEPARATOR)
        if not separator:
            raise SonicUsageError(f"{name} is not the key of a row")
        count += tables.get(table, {}).pop(key, None) is not None
    system.write({table: rows for table, rows in tables.items() if rows})
    return count


def _dump(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    name = line.options.get("-n", line.options.get("--dbname", DEFAULT_DATABASE))
    if name not in DATABASES:
        raise SonicUsageError(f"Invalid database name input : '{name}'")
    pattern = line.options.get("-k", line.options.get("--keys", "*"))
    found = rows(system, name, pattern)
    shown = {
        key: {"expireat": None, "ttl": -1, "type": "hash", "value": dict(found[key])}
        for key in fnmatch.filter(found, pattern.replace("[^", "[!"))
    }
    call.out(json.dumps(shown, indent=2 if line.has("-y", "--pretty") else None, sort_keys=True))


def _clear_watermarks(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    # The ASIC holds the watermarks, so clearing affects every user.
    system.node.clear_counters()


COMMANDS: Commands = {(): SonicCommand(_answer, NO_LIMIT)}
CLEAR: Commands = {
    ("queue", "watermark", "unicast"): SonicCommand(_clear_watermarks),
    ("priority-group", "watermark", "shared"): SonicCommand(_clear_watermarks),
    ("priority-group", "watermark", "headroom"): SonicCommand(_clear_watermarks),
}
DUMP: Commands = {
    (): SonicCommand(_dump, 0, frozenset({"-y", "--pretty"}), frozenset({"-n", "--dbname", "-k", "--keys"})),
}


COUNTERS, EVERY_PORT, QUEUES = "COUNTERS", "Ethernet*", "Queues"
SEPARATORS = {"CONFIG_DB": "|", "STATE_DB": "|"}


def gnmi(system: SonicSystem, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
    """Yield the tree at a gNMI path; raise LookupError if the database has none."""
    names = [name for name, _ in path]
    if target not in DATABASES or not names:
        raise LookupError(f"{target}: no such database")
    found: Mapping[str, object]
    if target == "COUNTERS_DB" and names[0] == COUNTERS:
        found = _counters(system, names[1:])
    else:
        prefix = f"{names[0]}{SEPARATORS.get(target, ':')}"
        database = rows(system, target, prefix)
        found = {key.removeprefix(prefix): row for key, row in database.items() if key.startswith(prefix)}
        if len(names) > 1:
            found = database.get(f"{prefix}{names[1]}", {})
    if not found:
        raise LookupError(f"{target}: {'/'.join(names)}")
    yield path, found


def _counters(system: SonicSystem, names: list[str]) -> Mapping[str, object]:
    """The counters of ports or of their queues."""
    if not names or len(names) > 2 or (len(names) == 2 and names[1] != QUEUES):
        return {}
    database = rows(system, "COUNTERS_DB", "COUNTERS")
    kind = "COUNTERS_QUEUE_NAME_MAP" if len(names) == 2 else "COUNTERS_PORT_NAME_MAP"
    found: dict[str, object] = {}
    for name, oid in database.get(kind, {}).items():
        port, separator, queue = name.partition(":")
        alias = text(system.running, "PORT", port, "alias") or port
        row = database[f"{COUNTERS}:{oid}"]
        if names[0] == EVERY_PORT:
            found[f"{alias}{separator}{queue}"] = row
        elif names[0] in {port, alias}:
            if len(names) == 1:
                return row
            found[name] = row
    return found


Counts = Mapping[str, int]
PORT, QUEUE, GROUP = "SAI_PORT_STAT_", "SAI_QUEUE_STAT_", "SAI_INGRESS_PRIORITY_GROUP_STAT_"
FEC_BINS = 16
"""COUNTERS_DB counts codewords with 0 to 15 symbol errors."""
PAUSE_FREE: Mapping[str, int] = {f"{PORT}PAUSE_RX_PKTS": 0, f"{PORT}PAUSE_TX_PKTS": 0}


def port_counts(reading: SwitchPortReading) -> Counts:
    traffic, fec = reading.traffic, reading.fec
    found = {
        "IF_IN_OCTETS": traffic.rx_bytes,
        "IF_IN_UCAST_PKTS": traffic.rx_packets,
        "IF_IN_DISCARDS": traffic.rx_dropped,
        "IF_IN_ERRORS": traffic.rx_errors,
        "IF_OUT_OCTETS": traffic.tx_bytes,
        "IF_OUT_UCAST_PKTS": traffic.tx_packets,
        "IF_OUT_DISCARDS": traffic.tx_dropped,
        "IF_OUT_ERRORS": traffic.tx_errors,
        "IF_IN_FEC_CORRECTABLE_FRAMES": fec.corrected_codewords,
        "IF_IN_FEC_NOT_CORRECTABLE_FRAMES": fec.uncorrectable_codewords,
        "IF_IN_FEC_SYMBOL_ERRORS": sum(index * count for index, count in enumerate(fec.histogram)),
    }
    found |= {f"IF_IN_FEC_CODEWORD_ERRORS_S{index}": count for index, count in enumerate(fec.histogram[:FEC_BINS])}
    for number, priority in enumerate(reading.priorities):
        found |= {f"PFC_{number}_RX_PKTS": priority.rx_pause, f"PFC_{number}_TX_PKTS": priority.tx_pause}
    return {**{f"{PORT}{name}": count for name, count in found.items()}, **PAUSE_FREE}


def queue_counts(reading: SwitchPortReading, queue: int, *, has_ecn: bool) -> Counts:
    """The counters of an egress queue; dropped bytes are not modelled."""
    found = reading.queues[queue]
    counts = {
        f"{QUEUE}PACKETS": found.tx_packets,
        f"{QUEUE}BYTES": found.tx_bytes,
        f"{QUEUE}DROPPED_PACKETS": found.dropped_packets,
    }
    return {**counts, f"{QUEUE}WRED_ECN_MARKED_PACKETS": found.ecn_marked_packets} if has_ecn else counts


def group_counts(reading: SwitchPortReading, group: int) -> Counts:
    return {f"{GROUP}DROPPED_PACKETS": reading.buffers[group].dropped_packets}


def queue_watermarks(reading: SwitchPortReading, queue: int) -> Counts:
    return {f"{QUEUE}SHARED_WATERMARK_BYTES": reading.queues[queue].peak_bytes}


def group_watermarks(reading: SwitchPortReading, group: int) -> Counts:
    found = reading.buffers[group]
    return {
        f"{GROUP}SHARED_WATERMARK_BYTES": found.peak_bytes,
        f"{GROUP}XOFF_ROOM_WATERMARK_BYTES": found.headroom_peak_bytes,
    }


LANES = 8
NOT_AVAILABLE = "N/A"
TYPES = {"OSFP": "OSFP 8X Pluggable Transceiver", "QSFP-DD": "QSFP-DD Double Density 8X Pluggable Transceiver"}
MEDIA = {
    "optic": "sm_media_interface",
    "active": "active_cable_media_interface",
    "copper": "passive_copper_media_interface",
}


def info(module: TransceiverReading) -> Fields:
    return {
        "type": TYPES.get(module.identifier, module.identifier),
        "manufacturer": module.vendor,
        "model": module.part,
        "serial": module.serial,
        "vendor_rev": module.revision,
        "vendor_oui": NOT_AVAILABLE,
        "vendor_date": NOT_AVAILABLE,
        "active_firmware": module.firmware or NOT_AVAILABLE,
        "inactive_firmware": NOT_AVAILABLE,
        "cable_length": f"{module.length_m:g}",
        "cable_type": "Length Cable Assembly(m)",
        "connector": "No separable connector" if module.kind != "optic" else "MPO 1x12",
        "specification_compliance": MEDIA[module.kind],
        "media_interface_technology": "Copper cable unequalized" if module.kind == "copper" else NOT_AVAILABLE,
        "is_replaceable": "True",
        "dom_capability": NOT_AVAILABLE,
    }


def sensors(module: TransceiverReading) -> Fields:
    """TRANSCEIVER_DOM_SENSOR; a module without diagnostics has no values."""
    is_powered = module.temperature_limits is not None
    found = {
        "temperature": str(module.temperature_c) if is_powered else NOT_AVAILABLE,
        "voltage": str(module.voltage_v) if is_powered else NOT_AVAILABLE,
    }
    lanes = dict(enumerate(module.lanes, module.first_lane))
    for number in range(1, LANES + 1):
        lane = lanes.get(number)
        found |= {
            f"rx{number}power": str(lane.rx_dbm) if lane else NOT_AVAILABLE,
            f"tx{number}power": str(lane.tx_dbm) if lane else NOT_AVAILABLE,
            f"tx{number}bias": str(lane.bias_ma) if lane else NOT_AVAILABLE,
        }
    return found


def thresholds(module: TransceiverReading) -> Fields:
    found: dict[str, str] = {}
    for name, limits in (
        ("rxpower", module.rx_limits),
        ("txbias", module.bias_limits),
        ("txpower", module.tx_limits),
        ("temp", module.temperature_limits),
        ("vcc", module.voltage_limits),
    ):
        found |= {
            f"{name}highalarm": str(limits.alarm_high) if limits else NOT_AVAILABLE,
            f"{name}highwarning": str(limits.warning_high) if limits else NOT_AVAILABLE,
            f"{name}lowalarm": str(limits.alarm_low) if limits else NOT_AVAILABLE,
            f"{name}lowwarning": str(limits.warning_low) if limits else NOT_AVAILABLE,
        }
    return found


def status(module: TransceiverReading) -> Fields:
    """TRANSCEIVER_STATUS: the module state, and which lanes have lost the signal."""
    lanes = dict(enumerate(module.lanes, module.first_lane))
    dark = {
        f"rxlos{number}": str(lane.rx_dbm <= module.rx_limits.alarm_low) if module.rx_limits else NOT_AVAILABLE
        for number, lane in lanes.items()
    }
    faults = {f"txfault{number}": "False" for number in lanes}
    return {"cmis_state": "READY", "module_state": "ModuleReady", **dark, **faults}


def split_status(module: TransceiverReading) -> Mapping[str, Fields]:
    """The status as later branches split it: software state, module state and flags."""
    found = status(module)
    flags = {name: value for name, value in found.items() if name.startswith(("rxlos", "txfault"))}
    return {
        "STATUS_SW": {"status": "1", "cmis_state": found["cmis_state"]},
        "STATUS": {"module_state": found["module_state"]},
        "STATUS_FLAG": flags,
    }
