"""The databases of a switch, made from configuration and hardware, and `sonic-db-cli`. Only CONFIG_DB is writable."""

import fnmatch
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping

from netkit.lab.agents import lldp_neighbor
from netkit.lab.personalities.sonic import port_tables
from netkit.lab.personalities.sonic.commands import Commands, SonicArguments, SonicCommand, SonicUsageError, serial
from netkit.lab.personalities.sonic.port_tables import (
    PORT,
    QUEUE,
    group_counts,
    group_watermarks,
    port_counts,
    queue_counts,
    queue_watermarks,
)
from netkit.lab.personalities.sonic.switch import cable_length_m
from netkit.lab.personalities.sonic.system import SonicSystem
from netkit.lab.personalities.sonic.tables import SEPARATOR, Tables, natural, parts, text
from netkit.lab.personality import Call, Elem, GnmiLeaf
from netkit.lab.reading import SwitchPortReading, TransceiverReading
from netkit.lab.routing import NEVER, LinkChange, link_changes
from netkit.lab.state import PRIORITIES

COMPUTED = "NULL"
Fields = Mapping[str, str]


def buffers(system: SonicSystem) -> Mapping[str, Fields]:
    """Return the priority groups with their profiles, and the profiles."""
    found: dict[str, Fields] = {}
    for name, row in system.running.get("BUFFER_PROFILE", {}).items():
        found[f"BUFFER_PROFILE_TABLE:{name}"] = {leaf: str(value) for leaf, value in row.items()}
    for key, row in system.running.get("BUFFER_PG", {}).items():
        port, groups = parts(key)
        profiles = dict(_computed(system, port)) if row.get("profile") == COMPUTED else {}
        name = next(iter(profiles), str(row.get("profile", "")))
        if name != COMPUTED:
            found[f"BUFFER_PG_TABLE:{port}:{groups}"] = {"profile": name}
        found |= {f"BUFFER_PROFILE_TABLE:{made}": fields for made, fields in profiles.items()}
    return found


def _computed(system: SonicSystem, port: str) -> Iterator[tuple[str, Fields]]:
    """Yield the profile for a port's speed and cable; what the maker's table lacks, the lab does not make up."""
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
Makers = Mapping[str, Callable[[SonicSystem], Hashes]]
"""What a key begins with → what makes those rows."""
FIRST_WITH_SPLIT_STATUS = 202505
MEASURES_PAUSES = "Spectrum"
"""The chips whose watchdog asks how long pauses last and how full its queues are."""
LITERAL = re.compile(r"[^*?\[\\]*")
KINDS = {"port": 0x1, "queue": 0x15, "group": 0x1A}


def config_db(system: SonicSystem) -> Hashes:
    """Return CONFIG_DB as redis holds it: a list has `@` after its name, an empty row one field of its own."""
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
    """Whether the branch counts ECN marks of each `QUEUE` or `PORT`, and is told to."""
    status = text(system.running, "FLEX_COUNTER_TABLE", f"WRED_ECN_{kind}", "FLEX_COUNTER_STATUS")
    return system.branch >= FIRST_WITH_ECN_COUNTERS and status == "enable"


def watched_queues(system: SonicSystem, port: str) -> list[int]:
    """Return the queues the watchdog looks after: those of the port's row, once the port has times."""
    row = system.running.get("PFC_WD", {}).get(port, {})
    queues = text(system.running, "PORT_QOS_MAP", port, "pfcwd_sw_enable")
    return [int(queue) for queue in queues.split(",") if queue] if "detection_time" in row else []


def counters_db(system: SonicSystem) -> Hashes:
    """Return COUNTERS_DB: names to object ids, and counters under those."""
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
    found["COUNTERS_PORT_NAME_MAP"][reading.name] = port
    found[f"COUNTERS:{port}"] = _text({**port_counts(reading), **_pauses(system, reading), **_marks(system, reading)})
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
        counts = _text(queue_counts(reading, index, has_ecn=counts_ecn(system, "QUEUE")))
        found[f"COUNTERS:{queue}"] = {**counts, **_watchdog(system, reading, index)}
        found[f"USER_WATERMARKS:{queue}"] = _text(queue_watermarks(reading, index))
    for index in range(len(reading.buffers)):
        group = _oid("group", number * PRIORITIES + index)
        found["COUNTERS_PG_NAME_MAP"][f"{reading.name}:{index}"] = group
        found[f"COUNTERS:{group}"] = _text(group_counts(reading, index))
        found[f"USER_WATERMARKS:{group}"] = _text(group_watermarks(reading, index))


def _pauses(system: SonicSystem, reading: SwitchPortReading) -> Mapping[str, int]:
    """Return how long pauses held the port up, where the watchdog asks for it."""
    if not system.switch.model.asic.startswith(MEASURES_PAUSES) or not watched_queues(system, reading.name):
        return {}
    times = enumerate(reading.priorities)
    return {f"{PORT}PFC_{number}_RX_PAUSE_DURATION_US": priority.rx_pause_us for number, priority in times}


def _marks(system: SonicSystem, reading: SwitchPortReading) -> Mapping[str, int]:
    if not counts_ecn(system, "PORT"):
        return {}
    return {f"{PORT}ECN_MARKED_PACKETS": sum(queue.ecn_marked_packets for queue in reading.queues)}


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


def _chassis(system: SonicSystem) -> Hashes:
    return {"CHASSIS_INFO|chassis 1": {"serial": serial(system), "model": system.switch.model.name, "revision": "N/A"}}


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
    """Return the module of a port; the daemon finds its cage by the port's index alone."""
    return reading.module if text(system.running, "PORT", reading.name, "index") else None


def _modules(system: SonicSystem) -> Hashes:
    """Return the modules in their cages; who writes their status was divided among several tables later."""
    found: dict[str, Mapping[str, str]] = {}
    is_split = system.branch >= FIRST_WITH_SPLIT_STATUS
    for reading in system.node.ports():
        module = module_of(system, reading)
        if module:
            found[f"TRANSCEIVER_INFO|{reading.name}"] = port_tables.info(module)
            found[f"TRANSCEIVER_DOM_SENSOR|{reading.name}"] = port_tables.sensors(module)
            found[f"TRANSCEIVER_DOM_THRESHOLD|{reading.name}"] = port_tables.thresholds(module)
            tables = port_tables.split_status(module) if is_split else {"STATUS": port_tables.status(module)}
            found |= {f"TRANSCEIVER_{table}|{reading.name}": row for table, row in tables.items()}
    return found


def _ports(system: SonicSystem) -> Hashes:
    changes = link_changes(system.node)
    return {
        f"PORT_TABLE:{reading.name}": {
            **_configured(system, reading.name),
            "oper_status": "up" if reading.is_up else "down",
            "admin_status": "up" if reading.is_enabled else "down",
            # Each way counts, up and down.
            "flap_count": str(reading.carrier_changes),
            **_stamps(changes.get(reading.name, NEVER)),
            "speed": str(reading.speed_gbps * 1000),
            "mtu": str(reading.mtu_bytes),
        }
        for reading in system.node.ports()
    }


def _stamps(last: LinkChange) -> Mapping[str, str]:
    """Return when the link went and came, in UTC; there is no field before the first time."""
    ways = (("last_down_time", last.went_s), ("last_up_time", last.came_s))
    return {name: time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(at_s)) for name, at_s in ways if at_s is not None}


def _configured(system: SonicSystem, port: str) -> Mapping[str, str]:
    row = system.running.get("PORT", {}).get(port, {})
    return {leaf: str(row[leaf]) for leaf in ("alias", "lanes", "fec", "description") if leaf in row}


def _heard(system: SonicSystem) -> Hashes:
    heard = system.node.run("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors").stdout
    return {
        f"LLDP_ENTRY_TABLE:{one.interface}": {
            "lldp_rem_sys_name": one.chassis.name,
            "lldp_rem_chassis_id": one.chassis.identifier,
            "lldp_rem_port_id": one.port,
            "lldp_rem_port_desc": one.port_description,
        }
        for one in lldp_neighbor.neighbors(heard)
    }


DATABASES: Mapping[str, Makers] = {
    "CONFIG_DB": {"": config_db},
    "COUNTERS_DB": {"": counters_db},
    "STATE_DB": {"CHASSIS_INFO|": _chassis, "PORT_TABLE|": _port_states, "TRANSCEIVER_": _modules},
    "APPL_DB": {"PORT_TABLE:": _ports, "LLDP_ENTRY_TABLE:": _heard, "BUFFER_": buffers},
}


def rows(system: SonicSystem, database: str, pattern: str) -> Hashes:
    """Return all rows of those kinds that a key or pattern can mean: some of them cost a process."""
    found = LITERAL.match(pattern)
    start = found[0] if found else ""
    made: dict[str, Mapping[str, str]] = {}
    for prefix, maker in DATABASES[database].items():
        if prefix.startswith(start) or start.startswith(prefix):
            made |= maker(system)
    return made


Read = Callable[[Hashes, tuple[str, ...]], str]
MANY = 10_000
DEFAULT = "APPL_DB"


def _answer(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    if line.arguments == ("PING",):
        call.out("PONG\n")
        return
    if len(line.arguments) < 2:
        raise SonicUsageError("give a database and a command")
    name, verb, *rest = line.arguments
    if name not in DATABASES:
        raise SonicUsageError(f"Invalid database name input : '{name}'")
    verb = verb.lower()
    if verb in READS:
        call.out(f"{READS[verb](rows(system, name, rest[0] if rest else '*'), tuple(rest))}\n")
    elif verb in WRITES and name == "CONFIG_DB":
        tables = system.edited()
        count = WRITES[verb](tables, tuple(rest))
        system.write({table: rows for table, rows in tables.items() if rows})
        call.out(f"{count}\n")
    else:
        raise SonicUsageError(f"the lab answers {', '.join([*READS, *WRITES])}, and writes CONFIG_DB alone")


def _dump(system: SonicSystem, call: Call, line: SonicArguments) -> None:
    name = line.options.get("-n", line.options.get("--dbname", DEFAULT))
    if name not in DATABASES:
        raise SonicUsageError(f"Invalid database name input : '{name}'")
    pattern = line.options.get("-k", line.options.get("--keys", "*"))
    found = rows(system, name, pattern)
    shown = {
        key: {"expireat": None, "ttl": -1, "type": "hash", "value": dict(found[key])}
        for key in fnmatch.filter(found, pattern.replace("[^", "[!"))
    }
    call.out(json.dumps(shown, indent=2 if line.has("-y", "--pretty") else None, sort_keys=True))


def _keys(found: Hashes, words: tuple[str, ...]) -> str:
    pattern = words[0] if words else "*"
    return "\n".join(key for key in found if fnmatch.fnmatchcase(key, pattern))


def _hgetall(found: Hashes, words: tuple[str, ...]) -> str:
    return str(dict(found.get(_key(words), {})))


def _hget(found: Hashes, words: tuple[str, ...]) -> str:
    return found.get(_key(words), {}).get(words[1] if len(words) > 1 else "", "")


def _key(words: tuple[str, ...]) -> str:
    if not words:
        raise SonicUsageError("wrong number of arguments")
    return words[0]


def _place(words: tuple[str, ...]) -> tuple[str, str]:
    table, separator, key = _key(words).partition(SEPARATOR)
    if not separator:
        raise SonicUsageError(f"{table} is no row of a table")
    return table, key


def _delete(tables: Tables, words: tuple[str, ...]) -> int:
    places = [_place((word,)) for word in words]
    return sum(tables.get(table, {}).pop(key, None) is not None for table, key in places)


def _clear_watermarks(system: SonicSystem, call: Call, line: SonicArguments) -> None:  # noqa: ARG001
    # A watermark is a peak the chip holds: clearing it is done there, for every user.
    system.node.clear_counters()


READS: dict[str, Read] = {"keys": _keys, "hgetall": _hgetall, "hget": _hget}
WRITES: dict[str, Callable[[Tables, tuple[str, ...]], int]] = {"del": _delete}
COMMANDS: Commands = {(): SonicCommand(_answer, MANY)}
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


def told(system: SonicSystem, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
    """Yield the tree at a path; LookupError when the database has none there."""
    names = [name for name, _ in path]
    if target not in DATABASES or not names:
        raise LookupError(f"{target}: no such database")
    if target == "COUNTERS_DB" and names[0] == COUNTERS:
        found = _counted(system, names[1:])
    else:
        found = _rows(system, target, names)
    if not found:
        raise LookupError(f"{target}: {'/'.join(names)}")
    yield path, found


def _counted(system: SonicSystem, names: list[str]) -> Mapping[str, object]:
    """Return the counters of ports, or of their queues."""
    if not names or len(names) > 2 or (len(names) == 2 and names[1] != QUEUES):
        return {}
    database = rows(system, "COUNTERS_DB", "COUNTERS")
    kind = "COUNTERS_QUEUE_NAME_MAP" if len(names) == 2 else "COUNTERS_PORT_NAME_MAP"
    found = {name: database[f"{COUNTERS}:{oid}"] for name, oid in database.get(kind, {}).items()}
    if names[0] == EVERY_PORT:
        return {_called(system, name): row for name, row in found.items()}
    wanted = {name: row for name, row in found.items() if names[0] in _names(system, name.partition(":")[0])}
    return wanted if len(names) == 2 else next(iter(wanted.values()), {})


def _called(system: SonicSystem, name: str) -> str:
    """Return how the server calls a port or a queue of it."""
    port, separator, queue = name.partition(":")
    return f"{_alias(system, port)}{separator}{queue}"


def _names(system: SonicSystem, port: str) -> tuple[str, str]:
    return port, _alias(system, port)


def _alias(system: SonicSystem, port: str) -> str:
    return text(system.running, "PORT", port, "alias") or port


def _rows(system: SonicSystem, target: str, names: list[str]) -> Mapping[str, object]:
    """Return a table by row, or one row of it."""
    separator = SEPARATORS.get(target, ":")
    prefix = f"{names[0]}{separator}"
    database: Hashes = rows(system, target, prefix)
    found = {key.removeprefix(prefix): row for key, row in database.items() if key.startswith(prefix)}
    return found if len(names) == 1 else found.get(names[1], {})
