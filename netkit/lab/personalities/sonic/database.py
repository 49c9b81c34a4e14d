"""What `sonic-db-cli` reads: the databases of a switch, made from its configuration and from what hardware shows."""

from collections.abc import Callable, Mapping

from netkit.lab.agents import lldp_neighbor
from netkit.lab.personalities.sonic import transceiver
from netkit.lab.personalities.sonic.counters import (
    group_counts,
    group_watermarks,
    port_counts,
    queue_counts,
    queue_watermarks,
)
from netkit.lab.personalities.sonic.show_lossless import counts_ecn
from netkit.lab.personalities.sonic.show_transceiver import module_of
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import natural
from netkit.lab.personalities.sonic.watchdog import watched_queues
from netkit.lab.reading import PortReading
from netkit.lab.state import PRIORITIES

Hashes = Mapping[str, Mapping[str, str]]
FIRST_WITH_SPLIT_STATUS = 202505
KINDS = {"port": 0x1, "queue": 0x15, "group": 0x1A}


def config_db(system: System) -> Hashes:
    """Return CONFIG_DB as redis holds it: a list has `@` after its name, an empty row one field of its own."""
    found: dict[str, Mapping[str, str]] = {}
    for table, rows in system.running.items():
        for key, row in rows.items():
            fields = {f"{leaf}@" if isinstance(value, list) else leaf: _joined(value) for leaf, value in row.items()}
            found[f"{table}|{key}"] = fields or {"NULL": "NULL"}
    return found


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ",".join(value)


def counters_db(system: System) -> Hashes:
    """Return COUNTERS_DB: names to object ids, and counters under those."""
    found: dict[str, dict[str, str]] = {
        "COUNTERS_PORT_NAME_MAP": {},
        "COUNTERS_QUEUE_NAME_MAP": {},
        "COUNTERS_PG_NAME_MAP": {},
    }
    for reading in system.node.ports():
        _add_port(found, system, reading)
    return found


def _add_port(found: dict[str, dict[str, str]], system: System, reading: PortReading) -> None:
    number = sorted(system.node.kernel_names, key=natural).index(reading.name)
    port = _oid("port", number)
    found["COUNTERS_PORT_NAME_MAP"][reading.name] = port
    found[f"COUNTERS:{port}"] = _text(port_counts(reading))
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
        counts = _text(queue_counts(reading, index, has_ecn=counts_ecn(system)))
        found[f"COUNTERS:{queue}"] = {**counts, **_watchdog(system, reading, index)}
        found[f"USER_WATERMARKS:{queue}"] = _text(queue_watermarks(reading, index))
    for index in range(len(reading.buffers)):
        group = _oid("group", number * PRIORITIES + index)
        found["COUNTERS_PG_NAME_MAP"][f"{reading.name}:{index}"] = group
        found[f"COUNTERS:{group}"] = _text(group_counts(reading, index))
        found[f"USER_WATERMARKS:{group}"] = _text(group_watermarks(reading, index))


def _watchdog(system: System, reading: PortReading, queue: int) -> Mapping[str, str]:
    if queue not in watched_queues(system, reading.name):
        return {}
    found, row = reading.watchdogs[queue], system.running["PFC_WD"][reading.name]
    return {
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


def state_db(system: System) -> Hashes:
    """Return STATE_DB: ports as the hardware has them, and the modules in their cages."""
    found: dict[str, Mapping[str, str]] = {}
    status = "TRANSCEIVER_STATUS" if system.branch < FIRST_WITH_SPLIT_STATUS else "TRANSCEIVER_STATUS_SW"
    for reading in system.node.ports():
        speeds = sorted({split.speed_gbps * 1000 for split in system.switch.model.splits}, reverse=True)
        found[f"PORT_TABLE|{reading.name}"] = {
            "state": "ok",
            "netdev_oper_status": "up" if reading.is_up else "down",
            "admin_status": "up" if reading.is_enabled else "down",
            "mtu": str(reading.mtu_bytes),
            "speed": str(reading.speed_gbps * 1000),
            "fec": reading.fec.mode or "N/A",
            "supported_fecs": "none,rs,fc",
            "supported_speeds": ",".join(map(str, speeds)),
        }
        module = module_of(system, reading)
        if module:
            found[f"TRANSCEIVER_INFO|{reading.name}"] = transceiver.info(module)
            found[f"TRANSCEIVER_DOM_SENSOR|{reading.name}"] = transceiver.sensors(module)
            found[f"TRANSCEIVER_DOM_THRESHOLD|{reading.name}"] = transceiver.thresholds(module)
            found[f"{status}|{reading.name}"] = transceiver.status(module)
    return found


def appl_db(system: System) -> Hashes:
    """Return APPL_DB: the state of the ports, and who was heard on them."""
    found: dict[str, Mapping[str, str]] = {}
    for reading in system.node.ports():
        found[f"PORT_TABLE:{reading.name}"] = {
            "oper_status": "up" if reading.is_up else "down",
            "admin_status": "up" if reading.is_enabled else "down",
            "flap_count": str(reading.carrier_changes // 2),
            "speed": str(reading.speed_gbps * 1000),
            "mtu": str(reading.mtu_bytes),
        }
    heard = system.node.run("/usr/sbin/lldpcli", "-f", "json0", "show", "neighbors").stdout
    for one in lldp_neighbor.neighbors(heard):
        found[f"LLDP_ENTRY_TABLE:{one.interface}"] = {
            "lldp_rem_sys_name": one.chassis.name,
            "lldp_rem_chassis_id": one.chassis.identifier,
            "lldp_rem_port_id": one.port,
            "lldp_rem_port_desc": one.port_description,
        }
    return found


DATABASES: Mapping[str, Callable[[System], Hashes]] = {
    "CONFIG_DB": config_db,
    "COUNTERS_DB": counters_db,
    "STATE_DB": state_db,
    "APPL_DB": appl_db,
}
